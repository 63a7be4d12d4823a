// SPDX-License-Identifier: MIT
// The origin of device memory: addresses in units of 2 MiB, chunks of units with memory mapped behind them,
// and slabs that cut chunks into pieces.
//
//   sum of sizes of a set's chunks == reserved, of those without a taken piece == empty
//   every byte of a chunk is in exactly one free range of its set or in one taken piece
//   no free range crosses the end of a chunk: so a chunk is empty <=> one free range is as large as it
#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "cpu/memory.h"
#include "exec/space.h"

pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static struct memory_tree addresses;  // free addresses of the device
static bool addresses_made;
static uint64_t used[CONFIG_DEVICES];

struct chunk {
    struct memory_range node;    // first
    struct memory_range *place;  // addresses; NULL: host memory
    struct memory_share *share;  // file that the bytes were moved to; NULL: none
    struct memory_range *part;   // part of the set's file; NULL: private pages
};

// --- addresses ---------------------------------------------------------------------------------------------

static bool make_addresses(void)
{
    if (addresses_made)
        return true;
    struct memory_range *all = space_init() ? NULL : mem_zalloc(1, sizeof *all);
    if (!all)
        return false;
    all->base = space.device_base;
    all->size = space.device_size;
    memory_range_insert(&addresses, all);
    return addresses_made = true;
}

struct memory_range *memory_slab_addresses(uint64_t size, uint64_t align, uint64_t at)
{
    assert(size && size % MEMORY_UNIT == 0 && at % MEMORY_UNIT == 0);
    if (!make_addresses())
        return NULL;
    if (at) {
        struct memory_range *r = memory_range_at(&addresses, at);
        if (r && memory_range_end(r) - at >= size && at % align == 0)
            return memory_range_take(&addresses, r, at, size);
    }
    if (align < MEMORY_UNIT)
        align = MEMORY_UNIT;
    struct memory_range *r = memory_range_fit(&addresses, size, align, &at);
    return r ? memory_range_take(&addresses, r, at, size) : NULL;
}

void memory_slab_addresses_free(struct memory_range *r)
{
    memory_range_give(&addresses, r, 0, UINT64_MAX);
}

int memory_slab_clear(uint64_t addr, uint64_t size)
{
    void *want = space_host(addr);
    void *got = mmap(want, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return got == want ? 0 : -ENOMEM;
}

bool memory_slab_charge(int device, uint64_t size)
{
    uint64_t total = device_memory();
    if (size > total || used[device] > total - size)
        return false;
    used[device] += size;
    return true;
}

void memory_slab_uncharge(int device, uint64_t size)
{
    assert(used[device] >= size);
    used[device] -= size;
}

uint64_t memory_slab_used(int device)
{
    return used[device];
}

// --- chunks ------------------------------------------------------------------------------------------------

// Maps memory for a chunk that has its addresses.
static int map_bytes(struct memory_slabs *s, struct chunk *c, uint64_t size)
{
    if (!s->file)
        return memory_slab_clear(c->node.base, size);
    c->part = memory_file_take(s->file, size);
    if (!c->part)
        return -ENOMEM;
    if (!memory_file_map(s->file->fd, c->part->base, c->node.base, size))
        return 0;
    memory_file_give(s->file, c->part);
    return -ENOMEM;
}

static int map_device(struct memory_slabs *s, struct chunk *c, uint64_t size)
{
    if (!memory_slab_charge(s->device, size))
        return -ENOMEM;
    c->place = memory_slab_addresses(size, MEMORY_UNIT, 0);
    if (!c->place)
        goto uncharge;
    c->node.base = c->place->base;
    if (map_bytes(s, c, size))
        goto give_back;
    // Huge pages are worth it if all of the chunk is used; small pieces are cheaper in small pages.
    if (size > MEMORY_UNIT)
        madvise(space_host(c->node.base), size, MADV_HUGEPAGE);
    return 0;
give_back:
    memory_slab_addresses_free(c->place);
uncharge:
    memory_slab_uncharge(s->device, size);
    return -ENOMEM;
}

static int map_host(struct chunk *c, uint64_t size)
{
    void *p = memory_host_map(size, MEMORY_UNIT);
    c->node.base = (uintptr_t)p;
    return p ? 0 : -ENOMEM;
}

static bool new_chunk(struct memory_slabs *s, uint64_t size)
{
    if (s->limit && (size > s->limit || s->reserved > s->limit - size))
        return false;
    struct chunk *c = mem_zalloc(1, sizeof *c);
    struct memory_range *room = mem_zalloc(1, sizeof *room);
    if (!c || !room || (s->host ? map_host(c, size) : map_device(s, c, size))) {
        mem_free(c);
        mem_free(room);
        return false;
    }
    c->node.size = room->size = size;
    room->base = c->node.base;
    memory_range_insert(&s->chunks, &c->node);
    memory_range_insert(&s->free, room);
    s->reserved += size;
    s->empty += size;
    if (s->reserved > s->high)
        s->high = s->reserved;
    space_set(c->node.base, size, SPACE_READ | SPACE_WRITE);
    return true;
}

// Frees a chunk; room is the free range that covers all of it.
static void free_chunk(struct memory_slabs *s, struct chunk *c, struct memory_range *room)
{
    uint64_t base = c->node.base, size = c->node.size;
    assert(room->base == base && room->size == size);
    space_set(base, size, 0);
    memory_range_remove(&s->free, room);
    memory_range_remove(&s->chunks, &c->node);
    s->reserved -= size;
    s->empty -= size;
    if (c->share)
        memory_share_free(c->share);
    if (c->part) {
        memory_slab_clear(base, size);
        memory_file_give(s->file, c->part);
    }
    if (c->place) {
        madvise(space_host(base), size, MADV_DONTNEED);
        memory_slab_addresses_free(c->place);
        memory_slab_uncharge(s->device, size);
    } else {
        munmap(space_host(base), size);
    }
    mem_free(room);
    mem_free(c);
}

const struct memory_range *memory_slab_chunk(const struct memory_slabs *s, uint64_t addr)
{
    return memory_range_at(&s->chunks, addr);
}

uint64_t memory_slab_offset(const struct memory_slabs *s, uint64_t addr)
{
    const struct chunk *c = (const struct chunk *)memory_range_at(&s->chunks, addr);
    return c->part->base + (addr - c->node.base);
}

struct memory_share **memory_slab_share(const struct memory_slabs *s, uint64_t addr)
{
    return &((struct chunk *)memory_range_at(&s->chunks, addr))->share;
}

// --- slabs -------------------------------------------------------------------------------------------------

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

struct memory_range *memory_slab_take(struct memory_slabs *s, uint64_t size, uint64_t align)
{
    assert(size && align && (align & (align - 1)) == 0);
    if (size > (uint64_t)1 << 60 || align > MEMORY_UNIT)
        return NULL;
    if (align < s->granule)
        align = s->granule;
    // A piece larger than a unit gets whole units, as on a GPU.
    size = round_up(size, size > MEMORY_UNIT ? MEMORY_UNIT : s->granule);
    if (size > MEMORY_UNIT)
        align = MEMORY_UNIT;
    uint64_t at;
    struct memory_range *r = memory_range_fit(&s->free, size, align, &at);
    if (!r) {
        uint64_t unit = round_up(size, MEMORY_UNIT);
        if (!(unit < s->chunk && new_chunk(s, s->chunk)) && !new_chunk(s, unit))
            return NULL;
        r = memory_range_fit(&s->free, size, align, &at);
    }
    const struct memory_range *c = memory_range_at(&s->chunks, at);
    bool whole = r->size == c->size;
    r = memory_range_take(&s->free, r, at, size);
    if (r && whole)
        s->empty -= c->size;
    return r;
}

static struct memory_range *empty_chunk(const struct memory_slabs *s, uint64_t *from)
{
    for (struct memory_range *r; (r = memory_range_after(&s->chunks, *from)); *from = memory_range_end(r)) {
        struct memory_range *room = memory_range_at(&s->free, r->base);
        if (room && room->base == r->base && room->size == r->size)
            return room;
    }
    return NULL;
}

void memory_slab_give(struct memory_slabs *s, struct memory_range *r)
{
    struct memory_range *c = memory_range_at(&s->chunks, r->base);
    assert(c && memory_range_end(r) <= memory_range_end(c));
    r = memory_range_give(&s->free, r, c->base, memory_range_end(c));
    if (r->size != c->size)
        return;
    s->empty += c->size;
    // A chunk that other processes can read is not kept for later allocations.
    if (s->empty > s->keep || ((struct chunk *)c)->share)
        free_chunk(s, (struct chunk *)c, r);
}

void memory_slab_trim(struct memory_slabs *s, uint64_t keep)
{
    uint64_t from = 0;
    while (s->reserved > keep) {
        struct memory_range *room = empty_chunk(s, &from);
        if (!room)
            break;
        struct memory_range *c = memory_range_at(&s->chunks, room->base);
        from = memory_range_end(c);
        free_chunk(s, (struct chunk *)c, room);
    }
}

bool memory_slab_valid(const struct memory_slabs *s)
{
    uint64_t reserved = 0, empty = 0;
    const struct memory_range *c = NULL;
    for (const struct memory_range *r = memory_range_after(&s->chunks, 0); r;
         r = memory_range_after(&s->chunks, memory_range_end(r))) {
        const struct memory_range *room = memory_range_at(&s->free, r->base);
        reserved += r->size;
        empty += room && room->base == r->base && room->size == r->size ? r->size : 0;
    }
    for (const struct memory_range *r = memory_range_after(&s->free, 0); r;
         r = memory_range_after(&s->free, memory_range_end(r))) {
        c = memory_range_at(&s->chunks, r->base);
        if (!c || memory_range_end(r) > memory_range_end(c) || r->base % s->granule || r->size % s->granule)
            return false;
    }
    return reserved == s->reserved && empty == s->empty && memory_range_valid(&s->chunks) &&
           memory_range_valid(&s->free);
}
