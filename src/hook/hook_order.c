// SPDX-License-Identifier: MIT
// Calls that give the work of streams an order, or let the host know of its progress, and that no other hook
// sees: mode_order. Modes hear of each before and after it, since other threads may launch in between.
#include "core/guard.h"
#include "hook/hook.h"
#include "mode/mode.h"

#define ORDER(symbol, what, parameters, arguments) \
    CUresult hook_##symbol parameters              \
    {                                              \
        mode_order(what);                          \
        CUresult r = guard.real.symbol arguments;  \
        mode_order(what);                          \
        return r;                                  \
    }
#define ORDERS(symbol, what, parameters, arguments) \
    ORDER(symbol, what, parameters, arguments)      \
    ORDER(symbol##_ptsz, what, parameters, arguments)

// Events.
ORDERS(cuEventRecord, MODE_ORDER_RECORD, (CUevent e, CUstream q), (e, q))
ORDERS(cuEventRecordWithFlags, MODE_ORDER_RECORD, (CUevent e, CUstream q, unsigned flags), (e, q, flags))
ORDER(cuCtxRecordEvent, MODE_ORDER_RECORD, (CUcontext c, CUevent e), (c, e))
ORDER(cuGreenCtxRecordEvent, MODE_ORDER_RECORD, (CUgreenCtx c, CUevent e), (c, e))
ORDERS(cuStreamWaitEvent, MODE_ORDER_EVENT, (CUstream q, CUevent e, unsigned flags), (q, e, flags))
ORDER(cuCtxWaitEvent, MODE_ORDER_EVENT, (CUcontext c, CUevent e), (c, e))
ORDER(cuGreenCtxWaitEvent, MODE_ORDER_EVENT, (CUgreenCtx c, CUevent e), (c, e))
ORDER(cuEventElapsedTime, MODE_ORDER_EVENT, (float *ms, CUevent a, CUevent b), (ms, a, b))
ORDER(cuEventElapsedTime_v2, MODE_ORDER_EVENT, (float *ms, CUevent a, CUevent b), (ms, a, b))

// Functions of the host, and the ends of streams.
ORDERS(cuLaunchHostFunc, MODE_ORDER_ALL, (CUstream q, CUhostFn f, void *data), (q, f, data))
ORDERS(cuStreamAddCallback, MODE_ORDER_ALL, (CUstream q, CUstreamCallback f, void *data, unsigned flags),
       (q, f, data, flags))
ORDER(cuStreamDestroy, MODE_ORDER_ALL, (CUstream q), (q))
ORDER(cuStreamDestroy_v2, MODE_ORDER_ALL, (CUstream q), (q))

// Returns whether this is all of a buffer that has surroundings: the driver attaches whole allocations only.
static bool is_whole(CUdeviceptr p, size_t n)
{
    struct mode_answer a;
    return mode_ask(p, &a) == MODE_BUFFER && a.base == p && (!n || n == a.size);
}

static CUdeviceptr start_of(CUdeviceptr p)
{
    CUdeviceptr base = p;
    size_t size;
    return guard.real.cuMemGetAddressRange_v2(&base, &size, p) ? p : base;
}

// Work that is ordered in streams, and that moat knows nothing else of.
ORDERS(cuStreamAttachMemAsync, MODE_ORDER_ALL, (CUstream q, CUdeviceptr p, size_t n, unsigned flags),
       (q, is_whole(p, n) ? start_of(p) : p, is_whole(p, n) ? 0 : n, flags))
ORDERS(cuMemPrefetchAsync, MODE_ORDER_ALL, (CUdeviceptr p, size_t n, CUdevice d, CUstream q), (p, n, d, q))
ORDERS(cuMemPrefetchAsync_v2, MODE_ORDER_ALL,
       (CUdeviceptr p, size_t n, CUmemLocation l, unsigned flags, CUstream q), (p, n, l, flags, q))
ORDERS(cuMemPrefetchBatchAsync, MODE_ORDER_ALL,
       (CUdeviceptr * p, size_t *n, size_t count, CUmemLocation *l, size_t *i, size_t nl,
        unsigned long long flags, CUstream q),
       (p, n, count, l, i, nl, flags, q))
ORDERS(cuMemDiscardAndPrefetchBatchAsync, MODE_ORDER_ALL,
       (CUdeviceptr * p, size_t *n, size_t count, CUmemLocation *l, size_t *i, size_t nl,
        unsigned long long flags, CUstream q),
       (p, n, count, l, i, nl, flags, q))
ORDERS(cuMemDiscardBatchAsync, MODE_ORDER_ALL,
       (CUdeviceptr * p, size_t *n, size_t count, unsigned long long flags, CUstream q),
       (p, n, count, flags, q))
ORDERS(cuMemBatchDecompressAsync, MODE_ORDER_ALL,
       (CUmemDecompressParams * p, size_t count, unsigned flags, size_t *failed, CUstream q),
       (p, count, flags, failed, q))
ORDERS(cuMemMapArrayAsync, MODE_ORDER_ALL, (CUarrayMapInfo * list, unsigned count, CUstream q),
       (list, count, q))
ORDERS(cuGraphicsMapResources, MODE_ORDER_GRAPHICS, (unsigned count, CUgraphicsResource *list, CUstream q),
       (count, list, q))
ORDERS(cuGraphicsUnmapResources, MODE_ORDER_GRAPHICS, (unsigned count, CUgraphicsResource *list, CUstream q),
       (count, list, q))

// Words in memory, and semaphores of others: a stream may wait for what a kernel has yet to write.
ORDERS(cuStreamWaitValue32, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint32_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamWaitValue32_v2, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint32_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamWaitValue64, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint64_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamWaitValue64_v2, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint64_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamWriteValue32, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint32_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamWriteValue32_v2, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint32_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamWriteValue64, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint64_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamWriteValue64_v2, MODE_ORDER_NEVER, (CUstream q, CUdeviceptr p, cuuint64_t v, unsigned flags),
       (q, p, v, flags))
ORDERS(cuStreamBatchMemOp, MODE_ORDER_NEVER,
       (CUstream q, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags), (q, count, list, flags))
ORDERS(cuStreamBatchMemOp_v2, MODE_ORDER_NEVER,
       (CUstream q, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags), (q, count, list, flags))
ORDERS(cuSignalExternalSemaphoresAsync, MODE_ORDER_NEVER,
       (const CUexternalSemaphore *list, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *p, unsigned count,
        CUstream q),
       (list, p, count, q))
ORDERS(cuWaitExternalSemaphoresAsync, MODE_ORDER_NEVER,
       (const CUexternalSemaphore *list, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *p, unsigned count,
        CUstream q),
       (list, p, count, q))
