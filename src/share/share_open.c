// SPDX-License-Identifier: MIT
#include "share/share_open.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "core/lock.h"
#include "core/guard.h"
#include "context/context.h"
#include "context/context_copy.h"
#include "share/share.h"
#include "core/slab_pool.h"

struct opened {
    struct opened *next;
    CUipcMemHandle handle;
    CUcontext context;  // as with the driver, each context has a pointer of its own
    uint64_t base, bytes, offset, size;
    bool mapped;  // by us, at base; false: by the driver's cuIpcOpenMemHandle
    unsigned times;
};

static struct lock lock = LOCK_INIT(SHARE_OPEN);  // of the list
static struct slab_pool pool = SLAB_POOL(struct opened);
static struct opened *all;
static _Atomic(bool) used;  // relaxed: a hint whether to take the lock

// Maps one piece at an address.
static CUresult map_piece(uint64_t at, uint64_t bytes, int fd)
{
    CUmemGenericAllocationHandle handle;
    if (guard.real.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_MAP_FAILED;
    CUresult r = guard.real.cuMemMap(at, bytes, 0, handle, 0);
    guard.real.cuMemRelease(handle);  // the mapping keeps it
    return r;
}

// Gets the size of the first piece, which is what the others leave. Returns false if they are too large: the
// other process may send anything.
static bool first_piece(const struct share_memory *m, uint64_t *bytes)
{
    *bytes = m->bytes;
    for (unsigned i = 0; i < m->more; i++) {
        if (!m->parts[i] || m->parts[i] >= *bytes)
            return false;
        *bytes -= m->parts[i];
    }
    return true;
}

static CUresult map(struct opened *o, const struct share_memory *m, CUdevice device)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr base;
    uint64_t done = 0, first;
    if (!first_piece(m, &first) || guard.real.cuMemAddressReserve(&base, o->bytes, 0, 0, 0))
        return CUDA_ERROR_MAP_FAILED;
    for (unsigned i = 0; i <= m->more; i++) {
        uint64_t part = i ? m->parts[i - 1] : first;
        if (map_piece(base + done, part, i ? m->fds[i - 1] : m->fd))
            break;
        done += part;
    }
    if (done == o->bytes && !guard.real.cuMemSetAccess(base, o->bytes, &access, 1)) {
        o->base = base;
        return CUDA_SUCCESS;
    }
    if (done)
        guard.real.cuMemUnmap(base, done);
    guard.real.cuMemAddressFree(base, o->bytes);
    return CUDA_ERROR_MAP_FAILED;
}

static CUresult import(struct opened *o, const struct share_memory *m)
{
    CUdevice device;
    if (!guard.real.cuMemImportFromShareableHandle || !guard.real.cuMemAddressReserve ||
        !guard.real.cuMemMap || !guard.real.cuMemSetAccess || !guard.real.cuMemUnmap ||
        !guard.real.cuMemRelease)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult r = guard.real.cuCtxGetDevice(&device);
    if (r)
        return r;
    o->mapped = true;
    return map(o, m, device);
}

static CUresult make(struct opened *o, const CUipcMemHandle *handle, unsigned flags, share_open_fn *open)
{
    struct share_memory m;
    CUdeviceptr base;
    if (share_ask(handle, &m))
        return CUDA_ERROR_MAP_FAILED;
    *o = (struct opened){.handle = *handle, .bytes = m.bytes, .offset = m.offset, .size = m.size, .times = 1};
    if (m.fd >= 0) {
        CUresult r = import(o, &m);
        share_close_fds(&m);
        return r;
    }
    CUresult r = open(&base, m.handle, flags);
    o->base = base;
    return r;
}

CUresult share_open(CUdeviceptr *pointer, size_t *size, const CUipcMemHandle *handle, unsigned flags,
                    share_open_fn *open)
{
    CUcontext context = NULL;
    CUresult r = CUDA_SUCCESS;
    if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (share_is_own(handle) || guard.real.cuCtxGetCurrent(&context) || !context)
        return CUDA_ERROR_INVALID_CONTEXT;
    lock_take(&lock);
    struct opened *o = all;
    while (o && (o->context != context || memcmp(&o->handle, handle, sizeof *handle) != 0))
        o = o->next;
    if (o) {
        o->times++;
    } else if (!(o = slab_pool_get(&pool))) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else if ((r = make(o, handle, flags, open))) {
        slab_pool_put(&pool, o);
    } else {
        o->context = context;
        o->next = all;
        all = o;
        atomic_store_explicit(&used, true, memory_order_relaxed);
    }
    if (!r) {
        *pointer = o->base + o->offset;
        *size = o->size;
    }
    lock_give(&lock);
    return r;
}

static CUresult undo(const struct opened *o)
{
    bool pushed = false;
    if (!o->mapped)
        return guard.real.cuIpcCloseMemHandle(o->base);
    // Work that was launched may still use it: the driver's own call waits for that, too.
    struct context *ctx = context_enter(o->context, &pushed);
    CUresult r = ctx ? context_wait_as_free(ctx) : CUDA_SUCCESS;
    context_leave(pushed);
    r = r ? r : guard.real.cuMemUnmap(o->base, o->bytes);
    return r ? r : guard.real.cuMemAddressFree(o->base, o->bytes);
}

bool share_close(CUdeviceptr pointer, CUresult *r, bool *last)
{
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        return false;
    lock_take(&lock);
    struct opened **link = &all, *o;
    while ((o = *link) && o->base + o->offset != pointer)
        link = &o->next;
    *r = CUDA_SUCCESS;
    *last = o && o->times == 1;
    if (*last && !(*r = undo(o))) {
        *link = o->next;
        slab_pool_put(&pool, o);
    } else if (o && !*last) {
        o->times--;
    }
    lock_give(&lock);
    return o;
}

void share_open_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
}
