// SPDX-License-Identifier: MIT
// Stream-ordered allocation. Memory is taken when the call is made; it returns to the pool when the stream
// reaches the free. Until then the same stream may get it again, as everything that the stream does with it
// comes after the free.
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/graph_memory.h"
#include "cpu/memory_pool.h"
#include "cpu/stream.h"
#include "exec/space.h"

enum {
    POOL_CHUNK = 32 << 20,
    POOL_SLACK = 64 << 20,  // bytes of empty chunks beyond the threshold that need not be freed at once
};

// A free that its stream has not reached. It is in the pool's list while it has its piece, which the stream
// may take again.
struct memory_pending {
    struct memory_range *piece;
    struct CUmemPoolHandle_st *pool;  // NULL: memory of no pool, in one of the next two
    struct memory_block *plain;
    struct graph_memory *graph;
    struct CUstream_st *stream;
    struct memory_pending *next, *prev;
};

// There is a default pool for each device, for the host, and for managed memory.
enum { OF_HOST = CONFIG_DEVICES, OF_MANAGED, NDEFAULTS };

static struct CUmemPoolHandle_st defaults[NDEFAULTS];
static struct CUmemPoolHandle_st *current[NDEFAULTS];
static struct CUmemPoolHandle_st *pools;

// --- life --------------------------------------------------------------------------------------------------

CUresult memory_pool_add(struct CUmemPoolHandle_st *p, const CUmemPoolProps *props)
{
    if (handle_add(p, HANDLE_POOL))
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->props = *props;
    p->slabs.granule = MEMORY_GRANULE;
    p->slabs.chunk = POOL_CHUNK;
    p->slabs.keep = UINT64_MAX;
    p->slabs.device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : 0;
    p->access = 1u << p->slabs.device;
    p->slabs.host = props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
                    props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (props->maxSize)
        p->slabs.limit = (props->maxSize + POOL_CHUNK - 1) / POOL_CHUNK * POOL_CHUNK;
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    p->references = 1;
    p->next = pools;
    pools = p;
    return CUDA_SUCCESS;
}

static CUresult default_pool(unsigned which, struct CUmemPoolHandle_st **out)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    props.location.type = which == OF_HOST ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    if (which < OF_HOST)
        props.location.id = (int)which;
    if (which == OF_MANAGED)
        props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    struct CUmemPoolHandle_st *p = &defaults[which];
    if (!p->built_in) {
        CUresult r = memory_pool_add(p, &props);
        if (r)
            return r;
        p->built_in = true;
        current[which] = p;
    }
    *out = p;
    return CUDA_SUCCESS;
}

static void unlink_pool(struct CUmemPoolHandle_st *p)
{
    struct CUmemPoolHandle_st **at = &pools;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
}

static void unreference(struct CUmemPoolHandle_st *p)
{
    if (--p->references)
        return;
    memory_slab_trim(&p->slabs, 0);
    unlink_pool(p);
    memory_file_end(&p->file);
    if (p->imported)
        close(p->file.fd);
    mem_free(p);
}

static void give(struct CUmemPoolHandle_st *p, struct memory_range *piece)
{
    if (p->imported) {
        memory_pool_share_give(piece);
        return;
    }
    memory_slab_give(&p->slabs, piece);
    if (p->slabs.reserved > p->threshold && p->slabs.empty > POOL_SLACK)
        memory_slab_trim(&p->slabs, p->threshold);
}

void memory_pool_trim(bool all)
{
    for (struct CUmemPoolHandle_st *p = pools; p; p = p->next)
        memory_slab_trim(&p->slabs, all ? 0 : p->threshold);
}

void memory_pool_release(struct memory_block *b)
{
    b->pool->used -= b->node.size;
    give(b->pool, b->piece);
    unreference(b->pool);
    mem_free(b);
}

const struct memory_range *memory_pool_chunk(const struct memory_block *b)
{
    return memory_slab_chunk(&b->pool->slabs, b->node.base);
}

bool memory_pool_known(CUmemoryPool p)
{
    return p && handle_is(p, HANDLE_POOL);
}

static CUresult check_props(const CUmemPoolProps *p)
{
    if (p->allocType != CU_MEM_ALLOCATION_TYPE_PINNED && p->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    bool host = false;
    return memory_managed_location(p->location.type, p->location.id, &host) ? CUDA_ERROR_INVALID_VALUE
                                                                            : CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!out || !props || check_props(props))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUmemPoolHandle_st *p = mem_zalloc(1, sizeof *p);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mutex_lock(&memory_lock);
    r = memory_pool_add(p, props);
    if (!r && (r = memory_pool_share_make(p))) {
        handle_remove(p);
        unlink_pool(p);
    }
    mutex_unlock(&memory_lock);
    if (r)
        mem_free(p);
    else
        *out = p;
    return r;
}

CUresult cuMemPoolDestroy(CUmemoryPool p)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    bool mine = memory_pool_known(p) && !p->built_in;
    if (mine) {
        handle_remove(p);
        for (unsigned i = 0; i < NDEFAULTS; i++) {
            if (current[i] == p)
                current[i] = &defaults[i];
        }
        p->destroyed = true;
        unreference(p);
    }
    mutex_unlock(&memory_lock);
    return mine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t keep)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    bool good = memory_pool_known(p);
    if (good)
        memory_slab_trim(&p->slabs, keep);
    mutex_unlock(&memory_lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// --- which pool --------------------------------------------------------------------------------------------

static CUresult get_pool(CUmemoryPool *out, unsigned which, bool now)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    struct CUmemPoolHandle_st *p;
    CUresult r = default_pool(which, &p);
    if (!r)
        *out = now ? current[which] : p;
    mutex_unlock(&memory_lock);
    return r;
}

static CUresult set_pool(CUmemoryPool p, unsigned which)
{
    mutex_lock(&memory_lock);
    struct CUmemPoolHandle_st *standard;
    CUresult r = default_pool(which, &standard);
    if (!r && memory_pool_known(p) && !p->imported && (which >= OF_HOST || p->slabs.device == (int)which))
        current[which] = p;
    else if (!r)
        r = CUDA_ERROR_INVALID_VALUE;
    mutex_unlock(&memory_lock);
    return r;
}

static CUresult of_device(CUdevice device)
{
    CUresult r = device_ready();
    return r ? r : (unsigned)device < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    CUresult r = of_device(device);
    return r ? r : get_pool(out, (unsigned)device, false);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    CUresult r = of_device(device);
    return r ? r : get_pool(out, (unsigned)device, true);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool p)
{
    CUresult r = of_device(device);
    return r ? r : set_pool(p, (unsigned)device);
}

static CUresult of_location(const CUmemLocation *l, CUmemAllocationType type, unsigned *which)
{
    CUresult r = device_ready();
    if (r)
        return r;
    bool host = false;
    if (!l || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    r = memory_managed_location(l->type, l->id, &host);
    *which = type == CU_MEM_ALLOCATION_TYPE_MANAGED ? OF_MANAGED : host ? OF_HOST : (unsigned)l->id;
    return r;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *l, CUmemAllocationType type)
{
    unsigned which;
    CUresult r = of_location(l, type, &which);
    return r ? r : get_pool(out, which, false);
}

CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *l, CUmemAllocationType type)
{
    unsigned which;
    CUresult r = of_location(l, type, &which);
    return r ? r : get_pool(out, which, true);
}

CUresult cuMemSetMemPool(CUmemLocation *l, CUmemAllocationType type, CUmemoryPool p)
{
    unsigned which;
    CUresult r = of_location(l, type, &which);
    return r ? r : set_pool(p, which);
}

// --- attributes --------------------------------------------------------------------------------------------

static CUresult get_attribute(struct CUmemPoolHandle_st *p, CUmemPool_attribute a, void *value)
{
    cuuint64_t v;
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(value, &p->reuse[a - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES], sizeof p->reuse[0]);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: v = p->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        memory_slab_trim(&p->slabs, p->threshold);
        v = p->slabs.reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: v = p->slabs.high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: v = p->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: v = p->used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &v, sizeof v);
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct CUmemPoolHandle_st *p, CUmemPool_attribute a, const void *value)
{
    cuuint64_t v;
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(&p->reuse[a - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES], value, sizeof p->reuse[0]);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        memcpy(&p->threshold, value, sizeof p->threshold);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        memcpy(&v, value, sizeof v);
        if (v)
            return CUDA_ERROR_INVALID_VALUE;
        if (a == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            p->used_high = p->used;
        else
            p->slabs.high = p->slabs.reserved;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *value)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    r = memory_pool_known(p) && value ? get_attribute(p, a, value) : CUDA_ERROR_INVALID_VALUE;
    mutex_unlock(&memory_lock);
    return r;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *value)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    mutex_lock(&memory_lock);
    r = memory_pool_known(p) && value ? set_attribute(p, a, value) : CUDA_ERROR_INVALID_VALUE;
    mutex_unlock(&memory_lock);
    return r;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool p, CUmemLocation *l)
{
    CUresult r = memory_map_ready();
    bool host = false;
    if (r)
        return r;
    if (!flags || !l || !memory_pool_known(p) || memory_managed_location(l->type, l->id, &host))
        return CUDA_ERROR_INVALID_VALUE;
    bool may = p->slabs.host || (!host && p->access >> l->id & 1);
    *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool p, const CUmemAccessDesc *desc, size_t count)
{
    CUresult r = memory_map_ready();
    if (r)
        return r;
    if (!memory_pool_known(p) || (count && !desc))
        return CUDA_ERROR_INVALID_VALUE;
    // The pool's own device always has the access that the pool was made with. Kernels of other devices have
    // access in any case.
    for (size_t i = 0; i < count; i++) {
        bool host = false;
        r = memory_managed_location(desc[i].location.type, desc[i].location.id, &host);
        if (r)
            return r;
        bool none = desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE,
             own = desc[i].location.id == p->slabs.device;
        if (none && (host || own))
            return CUDA_ERROR_INVALID_DEVICE;
        if ((!none && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) || (host && !p->slabs.host))
            return CUDA_ERROR_NOT_SUPPORTED;
        unsigned bit = host ? 0 : 1u << desc[i].location.id;
        p->access = none ? p->access & ~bit : p->access | bit;
    }
    return CUDA_SUCCESS;
}

// --- allocations -------------------------------------------------------------------------------------------

static void unlink_pending(struct memory_pending *f)
{
    if (f->prev)
        f->prev->next = f->next;
    else
        f->pool->pending = f->next;
    if (f->next)
        f->next->prev = f->prev;
}

// Returns a piece that this stream has freed, if it fits well enough; NULL otherwise.
static struct memory_range *reuse_freed(struct CUmemPoolHandle_st *p, const struct CUstream_st *s,
                                        uint64_t size)
{
    uint64_t most = 2 * size + MEMORY_GRANULE;
    for (struct memory_pending *f = p->pending; f; f = f->next) {
        struct memory_range *piece = f->piece;
        if (f->stream == s && piece->size >= size && piece->size <= most) {
            unlink_pending(f);
            f->piece = NULL;
            return piece;
        }
    }
    return NULL;
}

// Adds the block to the pool.
void memory_pool_take(struct CUmemPoolHandle_st *p, struct memory_block *b, uint64_t base, uint64_t size)
{
    b->pool = p;
    b->device = p->slabs.device;
    if (p->props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        b->flags = CU_MEM_ATTACH_GLOBAL;
    p->references++;
    p->used += size;
    if (p->used > p->used_high)
        p->used_high = p->used;
    memory_block_add(b, base, size);
}

// The pool may be destroyed by the time the lock is taken, and the block freed as soon as it is released.
static CUresult take(struct CUmemPoolHandle_st *p, const struct CUstream_st *s, struct memory_block *b,
                     uint64_t size, CUdeviceptr *out)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&memory_lock);
    if (!memory_pool_known(p) || p->imported)
        goto unlock;
    b->piece = reuse_freed(p, s, size);
    if (!b->piece)
        b->piece = memory_slab_take(&p->slabs, size, MEMORY_GRANULE);
    r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!b->piece)
        goto unlock;
    memory_pool_take(p, b, b->piece->base, size);
    *out = b->node.base;
    r = CUDA_SUCCESS;
unlock:
    mutex_unlock(&memory_lock);
    return r;
}

static CUresult alloc(struct CUmemPoolHandle_st *p, struct CUstream_st *s, uint64_t size, CUdeviceptr *out)
{
    struct memory_block *b = memory_block_new(MEMORY_POOL, NULL);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = take(p, s, b, size, out);
    // Pending frees, and memory that other pools keep, may make room, unless the request is larger than the
    // device.
    if (r == CUDA_ERROR_OUT_OF_MEMORY && size <= device_memory()) {
        r = cpu_context_wait(s->ctx);
        mutex_lock(&memory_lock);
        memory_slab_trim(memory_slab_of(memory_plain, p->slabs.device), 0);
        memory_pool_trim(true);
        mutex_unlock(&memory_lock);
        if (!r)
            r = take(p, s, b, size, out);
    }
    if (r)
        mem_free(b);
    return r;
}

// Adds the allocation to the stream's capture as a node.
static bool alloc_captured(const struct CUmemPoolHandle_st *p, struct CUstream_st *s, uint64_t size,
                           CUdeviceptr *out, CUresult *r)
{
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                              .alloc = {.poolProps = p->props, .bytesize = size}};
    bool taken = capture_take(s, &node, NULL, 0, r);
    if (taken && !*r)
        *out = node.alloc.dptr;
    return taken;
}

static CUresult alloc_from(CUdeviceptr *out, size_t size, CUmemoryPool p, CUstream stream, bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = stream_get(stream, per_thread, &s);
    if (r)
        return r;
    if (!out || !memory_pool_known(p))
        return CUDA_ERROR_INVALID_VALUE;
    *out = 0;
    if (!size)
        return CUDA_SUCCESS;
    if (stream_captures(s) && alloc_captured(p, s, size, out, &r))
        return r;
    r = capture_refuse(s);
    if (!r)
        r = capture_unsafe();
    return r ? r : alloc(p, s, size, out);
}

static CUresult alloc_current(CUdeviceptr *out, size_t size, CUstream stream, bool per_thread)
{
    CUmemoryPool p = NULL;
    struct CUstream_st *s;
    CUresult r = stream_get(stream, per_thread, &s);
    if (!r)
        r = get_pool(&p, (unsigned)s->ctx->device, true);
    return r ? r : alloc_from(out, size, p, stream, per_thread);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
    return alloc_current(out, size, stream, false);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t size, CUstream stream)
{
    return alloc_current(out, size, stream, true);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool p, CUstream stream)
{
    return alloc_from(out, size, p, stream, false);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t size, CUmemoryPool p, CUstream stream)
{
    return alloc_from(out, size, p, stream, true);
}

// Called when the stream reaches the free. The memory is freed even if the context is in error.
static void freed(void *arg, bool run)
{
    struct memory_pending *f = arg;
    mutex_lock(&memory_lock);
    if (f->plain)
        memory_plain_release(f->plain);
    if (f->graph)
        graph_memory_retired(f->graph);
    if (f->pool) {
        if (f->piece) {
            unlink_pending(f);
            give(f->pool, f->piece);
        }
        unreference(f->pool);
    }
    mutex_unlock(&memory_lock);
    mem_free(f);
}

// Removes the allocation at p from the application's view. f becomes the pending free.
static CUresult retire(CUdeviceptr p, struct memory_pending *f)
{
    struct memory_block *b = memory_block_at(p);
    if (!b || b->node.base != p)
        return CUDA_ERROR_INVALID_VALUE;
    if (b->kind == MEMORY_GRAPH)
        return (f->graph = graph_memory_retire(b)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (b->kind != MEMORY_POOL && b->kind != MEMORY_PLAIN)
        return b->kind == MEMORY_MANAGED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    memory_block_remove(b);
    if (b->kind == MEMORY_PLAIN) {
        f->plain = b;
        return CUDA_SUCCESS;
    }
    f->pool = b->pool;
    f->piece = b->piece;
    f->next = f->pool->pending;
    if (f->next)
        f->next->prev = f;
    f->pool->pending = f;
    f->pool->used -= b->node.size;
    mem_free(b);
    return CUDA_SUCCESS;
}

static CUresult free_async(CUdeviceptr p, CUstream stream, bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = stream_get(stream, per_thread, &s);
    if (r || !p)
        return r;
    if (stream_captures(s)) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {p}};
        if (capture_take(s, &node, NULL, 0, &r))
            return r;
    }
    r = capture_refuse(s);
    if (!r)
        r = capture_unsafe();
    if (r)
        return r;
    struct memory_pending *f = mem_zalloc(1, sizeof *f);
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->stream = s;
    mutex_lock(&memory_lock);
    r = retire(p, f);
    mutex_unlock(&memory_lock);
    if (r) {
        mem_free(f);
        return r;
    }
    if (stream_push(s, freed, f)) {
        // Out of memory for the operation: the memory is freed after waiting for everything before the free.
        r = stream_wait(s);
        freed(f, true);
    }
    return r;
}

CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
    return free_async(p, stream, false);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream stream)
{
    return free_async(p, stream, true);
}
