// SPDX-License-Identifier: MIT
// Attributes of pointers.
#include <string.h>

#include "base/mutex.h"
#include "cpu/memory.h"
#include "exec/space.h"

// A value in the size of its attribute.
struct answer {
    union {
        int number;
        unsigned long long wide;
        void *pointer;
        CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    };
    size_t size;
};

static struct answer number(int n)
{
    return (struct answer){.number = n, .size = sizeof n};
}

static struct answer wide(unsigned long long n)
{
    return (struct answer){.wide = n, .size = sizeof n};
}

static struct answer pointer(const void *p)
{
    return (struct answer){.pointer = (void *)p, .size = sizeof p};
}

static const struct answer none = {.size = 0};  // the attribute does not exist for this kind of memory

static bool is_managed(const struct memory_block *b)
{
    return b->kind == MEMORY_MANAGED || (b->kind == MEMORY_POOL && b->flags == CU_MEM_ATTACH_GLOBAL);
}

// Managed memory counts as device memory.
static bool on_host(const struct memory_block *b)
{
    return memory_block_is_host(b) && !is_managed(b) && b->kind != MEMORY_MAPPED;
}

// Returns the mapping that holds the block, in the device's tables.
static struct memory_range mapping(const struct memory_block *b)
{
    uint64_t low = b->node.base & ~(uint64_t)(MEMORY_PAGE - 1);
    uint64_t high = (memory_range_end(&b->node) + MEMORY_PAGE - 1) & ~(uint64_t)(MEMORY_PAGE - 1);
    const struct memory_range *chunk = NULL;
    if (b->kind == MEMORY_PLAIN)
        chunk = memory_slab_chunk(&memory_plain[b->device], b->node.base);
    if (b->kind == MEMORY_POOL)
        chunk = memory_pool_chunk(b);
    return chunk ? *chunk : (struct memory_range){.base = low, .size = high - low};
}

// Returns the whole range that the application requested at once.
static struct memory_range whole(const struct memory_block *b)
{
    struct memory_range r = b->node;
    uint64_t base = b->kind == MEMORY_MAPPED ? memory_map_reservation(r.base, &r.size) : 0;
    if (base)
        r.base = base;
    return r;
}

static int handle_types(const struct memory_block *b)
{
    CUmemAllocationProp p;
    return memory_map_properties(b, &p) ? (int)p.requestedHandleTypes : 0;
}

static struct answer answer(const struct memory_block *b, CUpointer_attribute a, CUdeviceptr p)
{
    switch (a) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return pointer(b->ctx);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return number(on_host(b) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return b->rights ? wide(p) : none;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return memory_block_is_host(b) ? wide(p) : none;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return on_host(b) ? none : (struct answer){.size = sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS)};
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return number(b->sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return wide(b->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return number(is_managed(b));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return number(b->device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return number(b->kind == MEMORY_PLAIN);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return number(0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return wide(whole(b).base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return wide(whole(b).size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return number(1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return wide((unsigned)handle_types(b));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return number(b->rights);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return pointer(b->pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return wide(mapping(b).size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return wide(mapping(b).base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return wide(b->id);
    }
    return none;
}

// Returns what cuPointerGetAttributes reports for an unknown pointer, and for an attribute that its memory
// does not have.
static struct answer default_answer(CUpointer_attribute a)
{
    static const struct memory_block blank = {.kind = MEMORY_VARIABLE};
    struct answer v = answer(&blank, a, 0);
    size_t size = v.size;
    if (a == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || a == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        size = sizeof(void *);
    memset(&v, 0, sizeof v);
    v.size = size;
    if (a == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        v.number = CU_DEVICE_INVALID;
    return v;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a, CUdeviceptr p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current_any(&ctx);
    if (r)
        return r;
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at(p);
    struct answer v = b ? answer(b, a, p) : none;
    mutex_unlock(&memory_lock);
    if (!v.size || !out)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &v, v.size);
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **out,
                                CUdeviceptr p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current_any(&ctx);
    if (r)
        return r;
    if (!count || !attributes || !out)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!out[i] || !default_answer(attributes[i]).size)
            return CUDA_ERROR_INVALID_VALUE;
    }
    mutex_lock(&memory_lock);
    const struct memory_block *b = memory_block_at(p);
    for (unsigned i = 0; i < count; i++) {
        struct answer v = b ? answer(b, attributes[i], p) : none;
        if (!v.size)
            v = default_answer(attributes[i]);
        memcpy(out[i], &v, v.size);
    }
    mutex_unlock(&memory_lock);
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute a, CUdeviceptr p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!value || a != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    struct memory_block *b = memory_block_at(p);
    bool device = b && !on_host(b);
    if (device) {
        int on;
        memcpy(&on, value, sizeof on);
        b->sync_memops = on != 0;
    }
    mutex_unlock(&memory_lock);
    return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
