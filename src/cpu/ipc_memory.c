// SPDX-License-Identifier: MIT
// Memory of cuMemAlloc between processes. A handle opens the whole chunk that the allocation lies in, as with
// a GPU, whose drivers share at least 2 MiB; the application sees only the allocation.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/capture.h"
#include "cpu/memory.h"
#include "cpu/share_file.h"
#include "exec/space.h"

// Within a context the same handle yields the same pointer.
struct ipc_opened {
    CUipcMemHandle handle;
    struct memory_range *place;  // addresses of the chunk
    unsigned times;
};

// --- export ------------------------------------------------------------------------------------------------

static struct memory_block *exportable(CUdeviceptr p)
{
    struct memory_block *b = memory_block_at(p);
    return b && b->kind == MEMORY_PLAIN ? b : NULL;
}

// Exports the allocation at p. moving: nobody writes, so the chunk may be moved to a file. *done is false if
// it would have to be moved and must not. memory_lock must be held.
static CUresult export(CUdeviceptr p, bool moving, bool *done, CUipcMemHandle *out)
{
    struct memory_block *b = exportable(p);
    if (!b)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory_share **share = memory_slab_share(&memory_plain[b->device], b->node.base);
    *done = *share || moving;
    if (!*done)
        return CUDA_SUCCESS;
    if (!*share) {
        const struct memory_range *chunk = memory_slab_chunk(&memory_plain[b->device], b->node.base);
        *share = memory_share_new(chunk->base, chunk->size);
    }
    const struct memory_share *s = *share;
    struct share_ticket t = {.bytes = b->node.size, .id = b->id, .device = (uint32_t)b->device};
    if (!s || share_file_ticket(&t, SHARE_MEMORY, s->fd))
        return CUDA_ERROR_OUT_OF_MEMORY;
    t.size = s->size;
    t.offset = b->node.base - s->base;
    b->exported = true;
    // Partner: the load in lives, in another process.
    atomic_store_explicit(memory_share_id(s, b->node.base), b->id, memory_order_release);
    share_file_write(&t, out);
    return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    bool done = false;
    if (r || !out || !p)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = capture_unsafe();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    r = export(p, false, &done, out);
    mutex_unlock(&memory_lock);
    if (r || done)
        return r;
    memory_share_pause();
    mutex_lock(&memory_lock);
    r = export(p, true, &done, out);
    mutex_unlock(&memory_lock);
    memory_share_resume();
    return r;
}

void ipc_memory_freed(struct memory_block *b)
{
    struct memory_share **share = memory_slab_share(&memory_plain[b->device], b->node.base);
    if (*share)
        atomic_store_explicit(memory_share_id(*share, b->node.base), 0, memory_order_release);
}

// --- import ------------------------------------------------------------------------------------------------

static bool sound(const struct share_ticket *t)
{
    return t->size && t->size % MEMORY_UNIT == 0 && t->size <= (uint64_t)1 << 44 && t->offset < t->size &&
           t->offset % MEMORY_GRANULE == 0 && t->bytes && t->bytes <= t->size - t->offset && t->id;
}

// Returns whether the exported allocation still exists.
static bool lives(const struct share_ticket *t, int fd)
{
    uint64_t words = memory_share_ids_size(t->size);
    if (!share_file_fit(fd, t->size + words))
        return false;
    _Atomic uint64_t *ids = mmap(NULL, words, PROT_READ, MAP_SHARED, fd, (off_t)t->size);
    if (ids == MAP_FAILED)
        return false;
    // Partner: the stores in export and ipc_memory_freed, in another process.
    uint64_t id = atomic_load_explicit(&ids[t->offset / MEMORY_GRANULE], memory_order_acquire);
    munmap(ids, words);
    return id == t->id;
}

static CUresult map(const struct share_ticket *t, int fd, struct ipc_opened *o)
{
    o->place = memory_slab_addresses(t->size, MEMORY_UNIT, 0);
    if (!o->place)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!memory_file_map(fd, 0, o->place->base, t->size))
        return CUDA_SUCCESS;
    memory_slab_addresses_free(o->place);
    return CUDA_ERROR_MAP_FAILED;
}

static CUresult open_chunk(const struct share_ticket *t, struct ipc_opened *o)
{
    int fd = sound(t) ? share_file_open(t) : -1;
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = lives(t, fd) ? map(t, fd, o) : CUDA_ERROR_INVALID_VALUE;
    close(fd);
    return r;
}

static struct memory_block *find_opened(struct CUctx_st *ctx, const CUipcMemHandle *handle)
{
    struct memory_block *b = memory_block_of(ctx, 0);
    while (b && (b->kind != MEMORY_OPENED || memcmp(&b->opened->handle, handle, sizeof *handle) != 0))
        b = memory_block_of(ctx, memory_range_end(&b->node));
    return b;
}

// Opens a handle that is not open in the context. memory_lock must be held.
static CUresult open_new(struct CUctx_st *ctx, const CUipcMemHandle *handle, const struct share_ticket *t,
                         CUdeviceptr *out)
{
    struct memory_block *b = memory_block_new(MEMORY_OPENED, ctx);
    struct ipc_opened *o = mem_zalloc(1, sizeof *o);
    CUresult r = b && o ? open_chunk(t, o) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        mem_free(b);
        mem_free(o);
        return r;
    }
    o->handle = *handle;
    o->times = 1;
    b->opened = o;
    if (t->device < device_count())
        b->device = (int)t->device;
    memory_block_add(b, o->place->base + t->offset, t->bytes);
    space_set(o->place->base, o->place->size, SPACE_READ | SPACE_WRITE);
    *out = b->node.base;
    return CUDA_SUCCESS;
}

static CUresult open_handle(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags)
{
    struct CUctx_st *ctx;
    struct share_ticket t;
    CUresult r = cpu_context_current(&ctx);
    if (r || !out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (!share_file_read(&t, SHARE_MEMORY, handle))
        return CUDA_ERROR_INVALID_VALUE;
    if (share_file_own(&t))
        return CUDA_ERROR_INVALID_CONTEXT;
    r = capture_unsafe();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    struct memory_block *b = find_opened(ctx, handle);
    if (b) {
        b->opened->times++;
        *out = b->node.base;
    } else {
        r = open_new(ctx, handle, &t, out);
    }
    mutex_unlock(&memory_lock);
    return r;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    return open_handle(out, &handle, flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    return open_handle(out, &handle, flags);
}

void ipc_memory_release(struct memory_block *b)
{
    struct memory_range *place = b->opened->place;
    space_set(place->base, place->size, 0);
    memory_slab_clear(place->base, place->size);
    memory_slab_addresses_free(place);
    mem_free(b->opened);
    mem_free(b);
}

static struct memory_block *closable(CUdeviceptr p)
{
    struct memory_block *b = memory_block_at(p);
    return b && b->kind == MEMORY_OPENED && b->node.base == p ? b : NULL;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr p)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (!r)
        r = capture_unsafe();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    struct memory_block *b = closable(p);
    bool last = b && b->opened->times == 1;
    if (b && !last)
        b->opened->times--;
    struct CUctx_st *owner = b ? b->ctx : NULL;
    mutex_unlock(&memory_lock);
    if (!last)
        return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    // As with a free, kernels that use the memory run to their end. No lock is held meanwhile.
    r = cpu_context_wait(ctx);
    if (!r && owner != ctx)
        r = cpu_context_wait(owner);
    if (r)
        return r;
    mutex_lock(&memory_lock);
    b = closable(p);
    if (b && --b->opened->times == 0) {
        memory_block_remove(b);
        ipc_memory_release(b);
    }
    mutex_unlock(&memory_lock);
    return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
