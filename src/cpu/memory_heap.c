// SPDX-License-Identifier: MIT
// malloc and free of kernels: a heap for each context, of the size that its limit says at the first use. Kernels may
// touch all of it, as on a GPU. Many threads of the pool allocate at once: nothing here takes long.
#include <assert.h>

#include "base/mem.h"
#include "cpu/memory.h"

enum { GRANULE = 16 };

struct heap {
    struct CUctx_st *ctx;
    struct memory_range *piece;
    struct memory_tree free, taken;
    struct heap *next;
};

static struct memory_slabs slabs = {.granule = MEMORY_UNIT, .chunk = MEMORY_UNIT};
static struct heap *heaps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank: outside of memory_lock

static struct heap *find(const struct CUctx_st *ctx)
{
    struct heap *h = heaps;
    while (h && h->ctx != ctx)
        h = h->next;
    return h;
}

static struct heap *make(struct CUctx_st *ctx)
{
    uint64_t size = ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    struct heap *h = mem_zalloc(1, sizeof *h);
    struct memory_range *all = mem_zalloc(1, sizeof *all);
    if (h && all && size) {
        pthread_mutex_lock(&memory_lock);
        h->piece = memory_slab_take(&slabs, size, MEMORY_UNIT);
        pthread_mutex_unlock(&memory_lock);
    }
    if (!h || !h->piece) {
        mem_free(h);
        mem_free(all);
        return NULL;
    }
    h->ctx = ctx;
    all->base = h->piece->base;
    all->size = h->piece->size;
    memory_range_insert(&h->free, all);
    h->next = heaps;
    return heaps = h;
}

uint64_t memory_heap_alloc(struct CUctx_st *ctx, uint64_t size)
{
    uint64_t at = 0;
    if (!size || size >> 60)
        return 0;
    size = (size + GRANULE - 1) & ~(uint64_t)(GRANULE - 1);
    pthread_mutex_lock(&lock);
    struct heap *h = find(ctx);
    if (!h)
        h = make(ctx);
    struct memory_range *r = h ? memory_range_fit(&h->free, size, GRANULE, &at) : NULL;
    if (r)
        r = memory_range_take(&h->free, r, at, size);
    if (r)
        memory_range_insert(&h->taken, r);
    pthread_mutex_unlock(&lock);
    return r ? at : 0;
}

bool memory_heap_free(struct CUctx_st *ctx, uint64_t addr)
{
    pthread_mutex_lock(&lock);
    struct heap *h = find(ctx);
    struct memory_range *r = h ? memory_range_at(&h->taken, addr) : NULL;
    bool ours = r && r->base == addr;
    if (ours) {
        memory_range_remove(&h->taken, r);
        memory_range_give(&h->free, r, 0, UINT64_MAX);
    }
    pthread_mutex_unlock(&lock);
    return ours;
}

static void free_all(struct memory_tree *t)
{
    while (t->root) {
        struct memory_range *r = t->root;
        memory_range_remove(t, r);
        mem_free(r);
    }
}

void memory_heap_context_free(struct CUctx_st *ctx)
{
    pthread_mutex_lock(&lock);
    for (struct heap **at = &heaps; *at; at = &(*at)->next) {
        struct heap *h = *at;
        if (h->ctx != ctx)
            continue;
        *at = h->next;
        free_all(&h->free);
        free_all(&h->taken);
        pthread_mutex_lock(&memory_lock);
        memory_slab_give(&slabs, h->piece);
        pthread_mutex_unlock(&memory_lock);
        mem_free(h);
        break;
    }
    pthread_mutex_unlock(&lock);
}
