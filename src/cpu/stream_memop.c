// SPDX-License-Identifier: MIT
// Streams that wait for a word of memory and write one.
//
// A batch is one operation that is polled until its last step is done: a waiting stream occupies no thread.
#include <string.h>

#include "base/mem.h"
#include "cpu/memory.h"
#include "cpu/stream.h"
#include "exec/space.h"

enum { MOST_STEPS = 256 };

struct batch {
    struct CUctx_st *ctx;
    unsigned count, at;
    CUstreamBatchMemOpParams step[];
};

static bool is_wait(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static unsigned width_of(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;
}

// The orders pair with the accesses of kernels and of the host to that word.
static uint64_t load_word(uint64_t address, unsigned width)
{
    void *p = space_host(address);
    return width == 8 ? __atomic_load_n((uint64_t *)p, __ATOMIC_ACQUIRE)
                      : __atomic_load_n((uint32_t *)p, __ATOMIC_ACQUIRE);
}

static void store_word(uint64_t address, unsigned width, uint64_t value)
{
    void *p = space_host(address);
    if (width == 8)
        __atomic_store_n((uint64_t *)p, value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint32_t *)p, (uint32_t)value, __ATOMIC_SEQ_CST);
}

static bool holds(const CUstreamBatchMemOpParams *step)
{
    unsigned width = width_of(step->operation);
    uint64_t have = load_word(step->waitValue.address, width);
    uint64_t want = width == 8 ? step->waitValue.value64 : step->waitValue.value;
    uint64_t all = width == 8 ? UINT64_MAX : UINT32_MAX;
    switch (step->waitValue.flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: return !((have - want) >> (width * 8 - 1) & 1);
    case CU_STREAM_WAIT_VALUE_EQ: return have == want;
    case CU_STREAM_WAIT_VALUE_AND: return have & want;
    default: return ~(have | want) & all;
    }
}

// Checks that the memory was not freed since the call.
static bool reachable(struct batch *b, uint64_t address, unsigned width, bool write)
{
    if (space_allows(address, width, write ? SPACE_WRITE : SPACE_READ))
        return true;
    pool_fail(b->ctx, &(struct exec_fault){.kind = EXEC_ILLEGAL_ADDRESS,
                                           .address = address,
                                           .size = width,
                                           .write = write,
                                           .space = "global"});
    return false;
}

static bool poll_batch(void *arg)
{
    struct batch *b = arg;
    for (; b->at < b->count; b->at++) {
        const CUstreamBatchMemOpParams *step = &b->step[b->at];
        CUstreamBatchMemOpType type = step->operation;
        unsigned width = width_of(type);
        bool wait = is_wait(type);
        if (type == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES || type == CU_STREAM_MEM_OP_BARRIER)
            continue;
        if (!reachable(b, step->waitValue.address, width, !wait))
            return true;
        if (wait && !holds(step))
            return false;
        if (!wait)
            store_word(step->writeValue.address, width,
                       width == 8 ? step->writeValue.value64 : step->writeValue.value);
    }
    return true;
}

static void release_batch(void *arg, bool run)
{
    mem_free(arg);
}

static CUresult check_address(uint64_t address, unsigned width, unsigned right)
{
    enum memory_where where = address % width ? MEMORY_BAD : memory_block_check(address, width, right);
    return where == MEMORY_BAD || where == MEMORY_UNKNOWN ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult check_flush(void)
{
    return device_attribute(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES) > 0 ? CUDA_SUCCESS
                                                                             : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult check_step(const CUstreamBatchMemOpParams *step)
{
    unsigned flags = step->waitValue.flags, flush = CU_STREAM_WAIT_VALUE_FLUSH;
    switch (step->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        if (flags & ~(3u | flush))
            return CUDA_ERROR_INVALID_VALUE;
        if (flags & flush && check_flush())
            return CUDA_ERROR_NOT_SUPPORTED;
        return check_address(step->waitValue.address, width_of(step->operation), SPACE_READ);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (flags)
            return CUDA_ERROR_INVALID_VALUE;
        return check_address(step->writeValue.address, width_of(step->operation), SPACE_WRITE);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return step->flushRemoteWrites.flags ? CUDA_ERROR_INVALID_VALUE : check_flush();
    case CU_STREAM_MEM_OP_BARRIER:
        return step->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_ERROR_INVALID_VALUE
                                                                             : CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult stream_memop_check(unsigned count, const CUstreamBatchMemOpParams *steps, unsigned flags)
{
    if (flags || count > MOST_STEPS || (count && !steps))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && !rc; i++)
        rc = check_step(&steps[i]);
    return rc;
}

struct pool_op *stream_memop_op(struct CUctx_st *ctx, unsigned count, const CUstreamBatchMemOpParams *steps)
{
    struct batch *b = mem_alloc(sizeof *b + count * sizeof *steps);
    struct pool_op *op = b ? pool_op_new(POOL_POLL, ctx) : NULL;
    if (!op) {
        mem_free(b);
        return NULL;
    }
    b->ctx = ctx;
    b->count = count;
    b->at = 0;
    memcpy(b->step, steps, count * sizeof *steps);
    op->poll = poll_batch;
    op->release = release_batch;
    op->arg = b;
    return op;
}

static CUresult push_batch(bool per_thread, CUstream handle, unsigned count, CUstreamBatchMemOpParams *steps,
                           unsigned flags)
{
    struct CUstream_st *s;
    CUresult rc = stream_get(handle, per_thread, &s);
    if (!rc)
        rc = stream_memop_check(count, steps, flags);
    if (rc || !count)
        return rc;
    if (stream_captures(s)) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                  .memOp = {.ctx = s->ctx, .count = count, .paramArray = steps}};
        if (capture_take(s, &node, NULL, 0, &rc))
            return rc;
    }
    struct pool_op *op = stream_memop_op(s->ctx, count, steps);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct batch *b = op->arg;
    rc = stream_add(s, op, NULL, false);
    if (rc)
        mem_free(b);
    return rc;
}

#define BATCH_PARAMETERS \
    (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *steps, unsigned int flags)
STREAM_CALL(cuStreamBatchMemOp, push_batch, BATCH_PARAMETERS, handle, count, steps, flags)
STREAM_CALL(cuStreamBatchMemOp_v2, push_batch, BATCH_PARAMETERS, handle, count, steps, flags)

static CUresult push_step(bool per_thread, CUstream handle, CUstreamBatchMemOpType type, CUdeviceptr address,
                          uint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams step = {.waitValue = {.operation = type, .address = address, .flags = flags}};
    if (width_of(type) == 8)
        step.waitValue.value64 = value;
    else
        step.waitValue.value = (cuuint32_t)value;
    return push_batch(per_thread, handle, 1, &step, 0);
}

#define VALUE_CALL(name, type, bits, ignored)                                                               \
    STREAM_CALL(name, push_step,                                                                            \
                (CUstream handle, CUdeviceptr address, cuuint##bits##_t value, unsigned int flags), handle, \
                type, address, value, flags & ~(unsigned)(ignored))
// The second version no longer has the flag that permits a weaker order; the first may order more strictly
// than requested.
VALUE_CALL(cuStreamWaitValue32, CU_STREAM_MEM_OP_WAIT_VALUE_32, 32, 0)
VALUE_CALL(cuStreamWaitValue32_v2, CU_STREAM_MEM_OP_WAIT_VALUE_32, 32, 0)
VALUE_CALL(cuStreamWaitValue64, CU_STREAM_MEM_OP_WAIT_VALUE_64, 64, 0)
VALUE_CALL(cuStreamWaitValue64_v2, CU_STREAM_MEM_OP_WAIT_VALUE_64, 64, 0)
VALUE_CALL(cuStreamWriteValue32, CU_STREAM_MEM_OP_WRITE_VALUE_32, 32, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
VALUE_CALL(cuStreamWriteValue32_v2, CU_STREAM_MEM_OP_WRITE_VALUE_32, 32, 0)
VALUE_CALL(cuStreamWriteValue64, CU_STREAM_MEM_OP_WRITE_VALUE_64, 64, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
VALUE_CALL(cuStreamWriteValue64_v2, CU_STREAM_MEM_OP_WRITE_VALUE_64, 64, 0)
