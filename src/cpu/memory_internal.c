// SPDX-License-Identifier: MIT
// Memory for internal use and for module variables.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/memory.h"
#include "exec/space.h"

// Variables lie side by side, as on a GPU.
static struct memory_slabs slabs[CONFIG_DEVICES] = {
    [0 ... CONFIG_DEVICES - 1] = {.granule = 16, .chunk = MEMORY_UNIT, .keep = MEMORY_UNIT},
};

struct internal {
    struct memory_range node;    // first
    struct memory_range *piece;  // piece of slabs; NULL: host pages
    int device;
    uint64_t readonly, readonly_size;  // pages that kernels cannot write
};

static struct memory_tree internals;

static uint64_t pages_of(uint64_t size)
{
    return (size + MEMORY_PAGE - 1) & ~(uint64_t)(MEMORY_PAGE - 1);
}

static int zero(const struct memory_range *piece)
{
    if (piece->size > MEMORY_UNIT)
        return memory_slab_clear(piece->base, piece->size);
    memset(space_host(piece->base), 0, piece->size);
    return 0;
}

uint64_t memory_internal_alloc(uint64_t size, uint64_t align)
{
    struct internal *n = mem_zalloc(1, sizeof *n);
    if (!n)
        return 0;
    struct CUctx_st *ctx;
    n->device = cpu_context_current_any(&ctx) ? 0 : ctx->device;
    mutex_lock(&memory_lock);
    struct memory_slabs *from = memory_slab_of(slabs, n->device);
    n->piece = memory_slab_take(from, size ? size : 1, align ? align : 1);
    if (n->piece && zero(n->piece)) {
        memory_slab_give(from, n->piece);
        n->piece = NULL;
    }
    uint64_t at = n->piece ? n->piece->base : 0;
    if (at) {
        n->node.base = at;
        n->node.size = n->piece->size;
        memory_range_insert(&internals, &n->node);
    }
    mutex_unlock(&memory_lock);
    if (!at)
        mem_free(n);
    return at;
}

uint64_t memory_internal_managed(uint64_t size, uint64_t align)
{
    struct internal *n = mem_zalloc(1, sizeof *n);
    size = pages_of(size ? size : 1);
    void *p = n ? memory_host_map(size, align) : NULL;
    if (!p) {
        mem_free(n);
        return 0;
    }
    n->node.base = (uintptr_t)p;
    n->node.size = size;
    mutex_lock(&memory_lock);
    memory_range_insert(&internals, &n->node);
    space_set(n->node.base, size, SPACE_READ | SPACE_WRITE);
    mutex_unlock(&memory_lock);
    return (uintptr_t)p;
}

void memory_internal_protect(uint64_t addr, uint64_t size, bool writable)
{
    mutex_lock(&memory_lock);
    struct internal *n = (struct internal *)memory_range_at(&internals, addr);
    space_set(addr, size, writable ? SPACE_READ | SPACE_WRITE : SPACE_READ);
    if (n && !writable) {
        uint64_t end = n->readonly + n->readonly_size;
        n->readonly = n->readonly_size && n->readonly < addr ? n->readonly : addr;
        n->readonly_size = (end > addr + size ? end : addr + size) - n->readonly;
    }
    mutex_unlock(&memory_lock);
}

void memory_internal_free(uint64_t addr)
{
    mutex_lock(&memory_lock);
    struct internal *n = (struct internal *)memory_range_at(&internals, addr);
    if (n && n->node.base == addr) {
        memory_range_remove(&internals, &n->node);
        if (n->readonly_size)
            space_set(n->readonly, n->readonly_size, SPACE_READ | SPACE_WRITE);
        if (n->piece) {
            memory_slab_give(memory_slab_of(slabs, n->device), n->piece);
        } else {
            space_set(addr, n->node.size, 0);
            munmap(space_host(addr), n->node.size);
        }
        mem_free(n);
    }
    mutex_unlock(&memory_lock);
}

int memory_track_variable(struct CUctx_st *ctx, uint64_t addr, uint64_t size, bool managed)
{
    struct memory_block *b = memory_block_new(managed ? MEMORY_MANAGED : MEMORY_VARIABLE, ctx);
    if (!b)
        return -ENOMEM;
    b->flags = managed ? CU_MEM_ATTACH_GLOBAL : 0;
    b->preferred.id = b->prefetched.id = CU_DEVICE_INVALID;
    mutex_lock(&memory_lock);
    memory_block_add(b, addr, size ? size : 1);
    mutex_unlock(&memory_lock);
    return 0;
}

void memory_untrack_variable(uint64_t addr)
{
    mutex_lock(&memory_lock);
    struct memory_block *b = memory_block_at(addr);
    bool variable = b && (b->kind == MEMORY_VARIABLE || (b->kind == MEMORY_MANAGED && !b->pages));
    if (variable) {
        memory_block_remove(b);
        mem_free(b);
    }
    mutex_unlock(&memory_lock);
}
