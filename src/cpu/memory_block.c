// SPDX-License-Identifier: MIT
// Blocks by address: device and host memory of the application.
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/memory.h"
#include "exec/space.h"

static struct memory_tree blocks;
static uint64_t ids;

struct memory_block *memory_block_new(enum memory_kind kind, struct CUctx_st *ctx)
{
    struct memory_block *b = mem_zalloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->kind = kind;
    b->ctx = ctx;
    b->device = ctx ? ctx->device : 0;
    b->rights = SPACE_READ | SPACE_WRITE;
    b->sync_memops = kind != MEMORY_HOST && kind != MEMORY_REGISTERED;
    return b;
}

void memory_block_add(struct memory_block *b, uint64_t base, uint64_t size)
{
    b->node.base = base;
    b->node.size = size;
    b->id = ++ids;
    memory_range_insert(&blocks, &b->node);
}

void memory_block_remove(struct memory_block *b)
{
    memory_range_remove(&blocks, &b->node);
}

struct memory_block *memory_block_at(uint64_t addr)
{
    return (struct memory_block *)memory_range_at(&blocks, addr);
}

struct memory_block *memory_block_after(uint64_t addr)
{
    return (struct memory_block *)memory_range_after(&blocks, addr);
}

bool memory_block_touches(uint64_t base, uint64_t size)
{
    struct memory_block *b = memory_block_after(base);
    return b && b->node.base < base + size;
}

bool memory_block_is_host(const struct memory_block *b)
{
    return b->kind == MEMORY_HOST || b->kind == MEMORY_REGISTERED || b->kind == MEMORY_MANAGED ||
           (b->kind == MEMORY_POOL && !space_is_device(b->node.base)) || b->host_rights;
}

struct memory_block *memory_block_of(struct CUctx_st *ctx, uint64_t from)
{
    struct memory_block *b = memory_block_after(from);
    while (b && b->ctx != ctx)
        b = memory_block_after(memory_range_end(&b->node));
    return b;
}

static enum memory_where kind_where(const struct memory_block *b)
{
    switch (b->kind) {
    case MEMORY_HOST:
    case MEMORY_REGISTERED: return MEMORY_PINNED;
    case MEMORY_MANAGED: return MEMORY_EITHER;
    case MEMORY_POOL: return memory_block_is_host(b) ? MEMORY_PINNED : MEMORY_ON_DEVICE;
    default: return MEMORY_ON_DEVICE;
    }
}

// Returns whether the address is the device's or internal, so that no pageable memory can be there.
static bool reserved(uint64_t addr)
{
    return addr - space.device_base < space.device_size + space.alias ||
           addr - space.shared_window < 2 * SPACE_WINDOW;
}

static enum memory_where check(uint64_t addr, uint64_t size, unsigned rights)
{
    const struct memory_block *b = memory_block_at(addr);
    if (!b)
        return reserved(addr) ? MEMORY_BAD : MEMORY_UNKNOWN;
    enum memory_where where = kind_where(b);
    // One copy may span adjacent mappings.
    for (;;) {
        if ((b->rights & rights) != rights)
            return MEMORY_BAD;
        uint64_t left = memory_range_end(&b->node) - addr;
        if (size <= left)
            return where;
        addr += left;
        size -= left;
        bool mapped = b->kind == MEMORY_MAPPED;
        b = memory_block_at(addr);
        if (!mapped || !b || b->kind != MEMORY_MAPPED)
            return MEMORY_BAD;
    }
}

enum memory_where memory_block_check(uint64_t addr, uint64_t size, unsigned rights)
{
    if (addr + size < addr || space_init())
        return MEMORY_BAD;
    mutex_lock(&memory_lock);
    enum memory_where where = check(addr, size, rights);
    mutex_unlock(&memory_lock);
    return where;
}
