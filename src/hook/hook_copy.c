// SPDX-License-Identifier: MIT
// One-dimensional copies: both sides are checked before the driver sees the call.
#include "hook/bounds.h"
#include "hook/bounds_array.h"
#include "core/guard.h"
#include "hook/hook.h"

// One side of a copy.
struct side {
    uint64_t address;
    bool device;    // the call takes it for a device address
    CUarray array;  // replaces the address, which is then the offset in it
};

#define DEVICE(p) ((struct side){(p), true, NULL})
#define HOST(p) ((struct side){(uintptr_t)(p), false, NULL})
#define EITHER(p) ((struct side){(p), false, NULL})
#define ARRAY(a, offset) ((struct side){(offset), true, (a)})

static CUresult check_side(enum driver_id call, struct side s, size_t bytes, enum report_access access)
{
    if (s.array)
        return bounds_array(call, s.array, &(struct bounds_box){.x = s.address, .width = bytes, .line = true},
                            access);
    return bounds_check(call, &(struct bounds_range){s.address, bytes, access, s.device});
}

static CUresult check_copy(enum driver_id call, struct side to, struct side from, size_t bytes)
{
    guard_count(GUARD_TRANSFERS);
    CUresult r = check_side(call, from, bytes, REPORT_READ);
    return r ? r : check_side(call, to, bytes, REPORT_WRITE);
}

#define COPY(symbol, stream, parameters, arguments, to, from)                            \
    CUresult hook_##symbol parameters                                                    \
    {                                                                                    \
        CUresult r = check_copy(DRIVER_##symbol, to, from, n);                           \
        return r ? bounds_refused(r, stream) : bounds_done(guard.real.symbol arguments); \
    }

// A call and its variant for per-thread default streams.
#define COPIES(symbol, variant, parameters, arguments, to, from)          \
    COPY(symbol, BOUNDS_STREAM##variant, parameters, arguments, to, from) \
    COPY(symbol##variant, BOUNDS_STREAM##variant, parameters, arguments, to, from)

COPIES(cuMemcpy, _ptds, (CUdeviceptr d, CUdeviceptr s, size_t n), (d, s, n), EITHER(d), EITHER(s))
COPIES(cuMemcpyAsync, _ptsz, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream q), (d, s, n, q), EITHER(d),
       EITHER(s))
COPIES(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr d, const void *s, size_t n), (d, s, n), DEVICE(d), HOST(s))
COPIES(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr d, const void *s, size_t n, CUstream q), (d, s, n, q),
       DEVICE(d), HOST(s))
COPIES(cuMemcpyDtoH_v2, _ptds, (void *d, CUdeviceptr s, size_t n), (d, s, n), HOST(d), DEVICE(s))
COPIES(cuMemcpyDtoHAsync_v2, _ptsz, (void *d, CUdeviceptr s, size_t n, CUstream q), (d, s, n, q), HOST(d),
       DEVICE(s))
COPIES(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr d, CUdeviceptr s, size_t n), (d, s, n), DEVICE(d), DEVICE(s))
COPIES(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream q), (d, s, n, q),
       DEVICE(d), DEVICE(s))
COPIES(cuMemcpyPeer, _ptds, (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n),
       (d, dc, s, sc, n), DEVICE(d), DEVICE(s))
COPIES(cuMemcpyPeerAsync, _ptsz,
       (CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream q), (d, dc, s, sc, n, q),
       DEVICE(d), DEVICE(s))
COPIES(cuMemcpyAtoA_v2, _ptds, (CUarray d, size_t dx, CUarray s, size_t sx, size_t n), (d, dx, s, sx, n),
       ARRAY(d, dx), ARRAY(s, sx))
COPIES(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr d, CUarray s, size_t sx, size_t n), (d, s, sx, n), DEVICE(d),
       ARRAY(s, sx))
COPIES(cuMemcpyDtoA_v2, _ptds, (CUarray d, size_t dx, CUdeviceptr s, size_t n), (d, dx, s, n), ARRAY(d, dx),
       DEVICE(s))
COPIES(cuMemcpyAtoH_v2, _ptds, (void *d, CUarray s, size_t sx, size_t n), (d, s, sx, n), HOST(d),
       ARRAY(s, sx))
COPIES(cuMemcpyAtoHAsync_v2, _ptsz, (void *d, CUarray s, size_t sx, size_t n, CUstream q), (d, s, sx, n, q),
       HOST(d), ARRAY(s, sx))
COPIES(cuMemcpyHtoA_v2, _ptds, (CUarray d, size_t dx, const void *s, size_t n), (d, dx, s, n), ARRAY(d, dx),
       HOST(s))
COPIES(cuMemcpyHtoAAsync_v2, _ptsz, (CUarray d, size_t dx, const void *s, size_t n, CUstream q),
       (d, dx, s, n, q), ARRAY(d, dx), HOST(s))

static CUresult check_batch(enum driver_id call, const CUdeviceptr *to, const CUdeviceptr *from,
                            const size_t *bytes, size_t count)
{
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; !r && to && from && bytes && i < count; i++)
        r = check_copy(call, EITHER(to[i]), EITHER(from[i]), bytes[i]);
    return r;
}

#define BATCH(symbol, extra_parameter, extra_argument)                                                     \
    CUresult hook_##symbol(CUdeviceptr *d, CUdeviceptr *s, size_t *n, size_t count, CUmemcpyAttributes *a, \
                           size_t *ai, size_t na, extra_parameter CUstream q)                              \
    {                                                                                                      \
        CUresult r = check_batch(DRIVER_##symbol, d, s, n, count);                                         \
        return r ? bounds_refused(r, q)                                                                    \
                 : bounds_done(guard.real.symbol(d, s, n, count, a, ai, na, extra_argument q));            \
    }
#define FAILED_PARAMETER size_t *failed,
#define FAILED_ARGUMENT failed,

// clang-format off
BATCH(cuMemcpyBatchAsync, FAILED_PARAMETER, FAILED_ARGUMENT)
BATCH(cuMemcpyBatchAsync_ptsz, FAILED_PARAMETER, FAILED_ARGUMENT)
BATCH(cuMemcpyBatchAsync_v2, , )
BATCH(cuMemcpyBatchAsync_v2_ptsz, , )
// clang-format on
