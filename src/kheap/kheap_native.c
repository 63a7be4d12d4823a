// SPDX-License-Identifier: MIT
// The heap's functions for the CPU device, as far as they are common and find no error: everything else is
// declined before it has had an effect, and executed as PTX. Of a malloc that is: a block of a slab that was
// used last, with an entry in an array that need not grow. Of a free: a block
// that is in use and whose canary is intact.
#define KPRIM_NATIVE
#include "kheap/kheap_native.h"

#include "kheap/kalloc.h"

// --- malloc ------------------------------------------------------------------------------------------------

// Like kentry_insert, but leaves growing to it.
static bool insert(uint64_t heap, uint32_t array, uint64_t block)
{
    uint64_t at = kentry_array(heap, array);
    uint64_t control = kprim_add64(KENTRY_AT(at, control), (uint64_t)1 << 32 | 1, KPRIM_RELAXED);
    uint32_t used = (uint32_t)control, ticket = (uint32_t)(control >> 32);
    uint32_t count = kentry_count(kentry_level(at));
    struct kentry_place place;
    if (used == count - count / 5 || used >= count ||
        !kentry_claim(heap, array, at, count, ticket % count, &place)) {
        kprim_add64(KENTRY_AT(at, control), (uint64_t)-1, KPRIM_RELEASE);
        return false;
    }
    kprim_put64(place.address, block);
    kprim_or32(place.header, (uint32_t)KENTRY_LIVE << place.shift, KPRIM_RELEASE);
    return true;
}

// Writes what kalloc_finish writes. Returns the program's pointer.
static uint64_t fill(uint64_t heap, uint64_t block, uint32_t chunk, uint32_t index, uint64_t size,
                     uint64_t align)
{
    uint64_t user = block + KLAYOUT_HEAD;
    uint32_t offset = (uint32_t)(((user + align - 1) & ~(align - 1)) - user);
    kfind_set(heap, chunk, index, size, offset, 1);
    size += offset;
    struct kcanary c = kcanary_make(heap, user, size, kcanary_cover(heap, user));
    kprim_st64(block, c.head, KPRIM_RELAXED);
    kprim_put64(block + 8, c.size);
    kcanary_put_tail(user + size, c.tail);
    return user + offset;
}

// Returns the block's class, 0 if the call is declined.
static uint32_t take(uint64_t heap, uint64_t size, uint64_t align, uint64_t *user)
{
    uint64_t room = size + (align - 16) < size ? UINT64_MAX : size + (align - 16);
    uint32_t class = kalloc_class(heap, room);
    if (class == KALLOC_RUN || class == KALLOC_IMPOSSIBLE)
        return 0;
    uint32_t array = KPRIM_REST(kprim_number(), KSLAB_FIELD32(heap, arrays));
    struct kslab_due due = kslab_unpack(kslab_last(heap, class, 1));
    if (!due.n)
        return 0;
    uint64_t bits = 0;
    uint32_t word = kslab_find(heap, class, &due, &bits), index = word + (uint32_t)__builtin_ctzll(bits);
    uint64_t block =
        KSLAB_FIELD(heap, pool) + (uint64_t)due.chunk * KLAYOUT_CHUNK + (uint64_t)index * kslab_size(class);
    *user = fill(heap, block, due.chunk, index, size, align);
    if (insert(heap, array, block))
        return class;
    kslab_release(heap, due.chunk, index);
    return 0;
}

// Scans as many groups of entries as the lanes would do together: each class of theirs is a team.
static void help(uint64_t heap, uint64_t waiting, uint64_t classes)
{
    uint64_t eighth = (uint64_t)KSLAB_FIELD32(heap, chunks) * (KLAYOUT_CHUNK / 8);
    struct kscan_team alone = kscan_team(1);
    for (; waiting >= eighth && classes; classes &= classes - 1)
        kalloc_help(heap, waiting, alone);
}

static void take_each(struct native_call *c, struct kprim_native *here, const uint64_t *align)
{
    uint64_t heap = kprim_get64(c->variables[0]), classes = 0;
    if (!heap)
        return;
    uint64_t waiting = kprim_ld64(KSCAN_PENDING(heap), KPRIM_RELAXED);
    KPRIM_NATIVE_EACH(here, c->mask)
    {
        uint32_t l = here->lane, class = take(heap, c->argument[0][l], align ? align[l] : 16, &c->result[l]);
        if (!class)
            continue;
        classes |= (uint64_t)1 << class;
        here->done |= (uint32_t)1 << l;
    }
    if (!here->done)
        return;
    KSCAN_COUNT(heap, mallocs, (uint32_t)__builtin_popcount(here->done));
    help(heap, waiting, classes);
}

static void malloc_body(struct native_call *c, struct kprim_native *here)
{
    take_each(c, here, NULL);
}

static void aligned_body(struct native_call *c, struct kprim_native *here)
{
    take_each(c, here, c->argument[1]);
}

static uint32_t native_malloc(struct native_call *c)
{
    return kprim_native_run(c, malloc_body);
}

static uint32_t native_aligned(struct native_call *c)
{
    return kprim_native_run(c, aligned_body);
}

// --- free --------------------------------------------------------------------------------------------------

// Marks the block as freed, as kalloc_mark does, and returns its size; 0: something is wrong.
static uint64_t mark(uint64_t heap, uint64_t user)
{
    struct kscan_block b;
    if (user % 16 || !kscan_block(heap, user - KLAYOUT_HEAD, &b))
        return 0;
    uint64_t cover = kcanary_cover(heap, user), head = kprim_ld64(b.address, KPRIM_RELAXED);
    uint64_t size = canary_shape_reveal(kprim_get64(b.address + 8), cover);
    if (size > b.bytes - KLAYOUT_HEAD - KLAYOUT_TAIL || kcanary_make(heap, user, size, cover).head != head)
        return 0;
    kfind_set_freed(heap, b.chunk, b.index);
    return kprim_mark64(b.address, head, head ^ kcanary_free(heap)) == head ? b.bytes : 0;
}

static void free_body(struct native_call *c, struct kprim_native *here)
{
    uint64_t heap = kprim_get64(c->variables[0]), bytes = 0;
    uint32_t frees = 0;
    KPRIM_NATIVE_EACH(here, heap ? c->mask : 0)
    {
        uint64_t user = c->argument[0][here->lane];
        uint64_t size = user ? mark(heap, kalloc_place(heap, user)) : 0;
        bytes += size;
        frees += size != 0;
        if (!user || size)
            here->done |= (uint32_t)1 << here->lane;
    }
    if (!frees)
        return;
    kprim_add64(KSCAN_PENDING(heap), bytes, KPRIM_RELAXED);
    KSCAN_COUNT(heap, frees, frees);
}

static uint32_t native_free(struct native_call *c)
{
    return kprim_native_run(c, free_body);
}

const struct native_row kheap_native[KHEAP_NATIVE] = {
    {KHEAP_MALLOC, kheap_functions_ptx, {KHEAP_VARIABLE}, native_malloc},
    {KHEAP_ALIGNED, kheap_functions_ptx, {KHEAP_VARIABLE}, native_aligned},
    {KHEAP_FREE, kheap_functions_ptx, {KHEAP_VARIABLE}, native_free},
};
