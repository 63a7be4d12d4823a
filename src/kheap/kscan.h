// SPDX-License-Identifier: MIT
// Verifies canaries, releases freed blocks, and writes error records.
//
// A group of entries is held by one warp, or by one part of a warp, at a time. Nobody else verifies the
// canaries of its blocks or releases them, so between verification and release no block can become another
// one. free only ever changes a valid head canary into another valid one.
#ifndef MOAT_KHEAP_KSCAN_H
#define MOAT_KHEAP_KSCAN_H

#include "kheap/kcanary.h"
#include "kheap/kentry.h"
#include "ring/error_ring_write.h"

// The lanes that work together.
struct kscan_team {
    uint32_t mask, rank, size, leader;
};

KPRIM struct kscan_team kscan_team(uint32_t mask)
{
    return (struct kscan_team){mask, (uint32_t)__builtin_popcount(mask & kprim_below()),
                               (uint32_t)__builtin_popcount(mask), (uint32_t)__builtin_ctz(mask)};
}

KPRIM uint64_t kscan_counts(uint64_t heap)
{
    return KSLAB_FIELD(heap, counts) + (kprim_smid() % KHEAP_COUNTS) * sizeof(struct kheap_counts);
}

#define KSCAN_COUNT(heap, field, n) \
    kprim_add64(kscan_counts(heap) + __builtin_offsetof(struct kheap_counts, field), n, KPRIM_RELAXED)
#define KSCAN_PENDING(heap) ((heap) + __builtin_offsetof(struct kheap, pending))

// --- a block -----------------------------------------------------------------------------------------------

// A block's position in the pool, and its kind.
struct kscan_block {
    uint64_t address;  // its first byte; the program's buffer is 16 behind
    uint32_t chunk, what, index;
    uint64_t bytes;
};

// Returns false if no block begins at the address. Does not say whether the block is in use.
KPRIM bool kscan_block(uint64_t heap, uint64_t address, struct kscan_block *b)
{
    uint64_t offset = address - KSLAB_FIELD(heap, pool);
    if (offset >= (uint64_t)KSLAB_FIELD32(heap, chunks) * KLAYOUT_CHUNK)
        return false;
    uint32_t within = offset % KLAYOUT_CHUNK;
    b->address = address;
    b->chunk = (uint32_t)(offset / KLAYOUT_CHUNK);
    b->what = kslab_what(kprim_ld64(kslab_state(heap, b->chunk), KPRIM_RELAXED));
    b->index = 0;
    if (b->what == KLAYOUT_RUN) {
        b->bytes = (uint64_t)krun_length(heap, b->chunk) * KLAYOUT_CHUNK;
        return !within;
    }
    if (!kslab_is_class(b->what))
        return false;
    b->bytes = kslab_size(b->what);
    b->index = within / (uint32_t)b->bytes;
    return b->index * (uint32_t)b->bytes == within && b->index < kslab_blocks(b->what);
}

KPRIM void kscan_release(uint64_t heap, const struct kscan_block *b)
{
    if (b->what == KLAYOUT_RUN)
        krun_release(heap, b->chunk);
    else
        kslab_release(heap, b->chunk, b->index);
}

// Verifies a block's canaries. Returns enum kheap_flags; 0 if the block is in use and intact.
KPRIM uint32_t kscan_verify(uint64_t heap, const struct kscan_block *b, struct kheap_record *r)
{
    uint64_t user = b->address + KLAYOUT_HEAD, cover = kcanary_cover(heap, user), unfree = kcanary_free(heap);
    // Pairs with the release in kalloc_mark: a reader that finds the block freed comes after all that its
    // owner did.
    r->found_head = kprim_ld64(b->address, KPRIM_ACQUIRE);
    r->found_size = kprim_get64(b->address + 8);
    r->size = canary_shape_reveal(r->found_size, cover);
    if (r->size > b->bytes - KLAYOUT_HEAD - KLAYOUT_TAIL)
        return KHEAP_HEAD | KHEAP_SIZE_LOST;
    struct kcanary made = kcanary_make(heap, user, r->size, cover);
    r->made_head = made.head;
    r->made_size = made.size;
    r->made_tail = made.tail;
    r->found_tail = kcanary_get_tail(user + r->size);
    uint32_t flags = r->found_tail != made.tail ? KHEAP_TAIL : 0;
    if (r->found_head == (made.head ^ unfree)) {
        r->made_head = r->found_head;
        return flags | KHEAP_FREED;
    }
    if (r->found_head == made.head)
        return flags;
    // Neither canary fits that size, so the size is most likely damaged.
    return flags ? KHEAP_HEAD | KHEAP_SIZE_LOST : KHEAP_HEAD;
}

// --- records -----------------------------------------------------------------------------------------------

KPRIM void kscan_write_record(uint64_t heap, const struct kheap_record *r)
{
    uint64_t n, writer = heap + __builtin_offsetof(struct kheap, errors);
    uint64_t at =
        error_ring_write_begin(writer, ERROR_RING_WHAT(ERROR_RING_KHEAP, r->kind, 0), r->address, &n);
    if (!at)
        return;
    error_ring_write_word(at, KHEAP_WORD_FLAGS, (uint64_t)r->array << 32 | r->flags);
    error_ring_write_word(at, KHEAP_WORD_CAPACITY, r->capacity);
    error_ring_write_word(at, KHEAP_WORD_SIZE, r->size);
    error_ring_write_word(at, KHEAP_WORD_FOUND_HEAD, r->found_head);
    error_ring_write_word(at, KHEAP_WORD_FOUND_SIZE, r->found_size);
    error_ring_write_word(at, KHEAP_WORD_FOUND_TAIL, r->found_tail);
    error_ring_write_word(at, KHEAP_WORD_MADE_HEAD, r->made_head);
    error_ring_write_word(at, KHEAP_WORD_MADE_SIZE, r->made_size);
    error_ring_write_word(at, KHEAP_WORD_MADE_TAIL, r->made_tail);
    error_ring_write_end(at, n);
}

// Reports the block, as it is now, or the address where none begins.
KPRIM_FAR void kscan_complain(uint64_t heap, uint64_t address, uint32_t kind, uint32_t flags, uint32_t array)
{
    struct kscan_block b;
    struct kheap_record r = {.kind = kind, .flags = flags, .array = array};
    if (kscan_block(heap, address, &b)) {
        kscan_verify(heap, &b, &r);
        r.capacity = (uint32_t)(b.bytes / 16);
    }
    r.address = address + KLAYOUT_HEAD;
    kscan_write_record(heap, &r);
}

// --- entries -----------------------------------------------------------------------------------------------

// Checks an entry of a group that we hold. A block with a damaged head is not released, as it is unknown
// whether it was freed.
KPRIM void kscan_entry(uint64_t heap, uint32_t array, uint32_t i)
{
    struct kentry_place place = kentry_place(heap, array, kentry_array(heap, array), i);
    uint32_t header = kprim_ld32(place.header, KPRIM_ACQUIRE) >> place.shift;
    struct kscan_block b;
    struct kheap_record r;
    if (!(header & KENTRY_LIVE) || !kscan_block(heap, kprim_get64(place.address), &b))
        return;
    uint32_t flags = kscan_verify(heap, &b, &r);
    if (flags & (KHEAP_HEAD | KHEAP_TAIL) && !(header & KENTRY_REPORTED)) {
        // The next scan continues with this entry.
        kprim_or32(place.header, (uint32_t)KENTRY_REPORTED << place.shift, KPRIM_RELAXED);
        kscan_complain(heap, b.address, KHEAP_OVERRUN, flags, array);
        return;
    }
    if (flags & KHEAP_HEAD || !(flags & KHEAP_FREED))
        return;
    kentry_expire(heap, array, &place);
    kscan_release(heap, &b);
    // Last, so that a thread that finds nothing waiting finds the block.
    kprim_add64(KSCAN_PENDING(heap), (uint64_t)0 - b.bytes, KPRIM_RELEASE);
}

// --- groups ------------------------------------------------------------------------------------------------

// Returns whether the group has a live entry; an empty group need not be held.
KPRIM bool kscan_occupied(uint64_t heap, uint32_t array, uint32_t group, struct kscan_team t)
{
    uint32_t any = 0;
    for (uint32_t i = t.rank * 4; i < KLAYOUT_GROUP; i += t.size * 4) {
        struct kentry_place place =
            kentry_place(heap, array, kentry_array(heap, array), group * KLAYOUT_GROUP + i);
        any |= kprim_ld32(place.header, KPRIM_RELAXED);
    }
    return kprim_ballot(t.mask, any & (KENTRY_LIVE * 0x01010101u));
}

// Scans a group with a team, all lanes of which must come here. Returns false if another team holds the
// group.
KPRIM bool kscan_group(uint64_t heap, uint32_t array, uint32_t group, struct kscan_team t)
{
    uint32_t ours = 0;
    if (!kscan_occupied(heap, array, group, t))
        return true;
    if (!t.rank)
        ours = kentry_lock(heap, array, group);
    if (!kprim_share32(t.mask, ours, t.leader))
        return false;
    for (uint32_t i = t.rank; i < KLAYOUT_GROUP; i += t.size)
        kscan_entry(heap, array, group * KLAYOUT_GROUP + i);
    // Orders the work of the other lanes before the leader's release.
    kprim_sync(t.mask);
    if (!t.rank)
        kentry_unlock(heap, array, group);
    return true;
}

// Scans n groups, in turn from all arrays, from number `turn` on. Returns how many of them another team held.
KPRIM_FAR uint32_t kscan_some(uint64_t heap, uint32_t turn, uint32_t n, uint32_t mask)
{
    struct kscan_team t = kscan_team(mask);
    uint32_t arrays = KSLAB_FIELD32(heap, arrays), held = 0;
    for (; n--; turn++) {
        uint32_t array = KPRIM_REST(turn, arrays),
                 count = kprim_share32(mask, kentry_groups(heap, array), t.leader);
        held += !kscan_group(heap, array, turn / arrays % count, t);
    }
    return held;
}

// Reserves the next n groups and returns the number of the first.
KPRIM uint32_t kscan_turn(uint64_t heap, uint32_t n, struct kscan_team t)
{
    uint32_t turn = 0;
    if (!t.rank)
        turn = kprim_add32(heap + __builtin_offsetof(struct kheap, cursor), n, KPRIM_RELAXED);
    return kprim_share32(t.mask, turn, t.leader);
}

// Returns the number of turns in a round: that of the longest array, for each array.
KPRIM uint32_t kscan_turns(uint64_t heap)
{
    uint32_t arrays = KSLAB_FIELD32(heap, arrays), most = 0;
    for (uint32_t array = 0; array < arrays; array++) {
        uint32_t n = kentry_groups(heap, array);
        most = n > most ? n : most;
    }
    return most * arrays;
}

// Scans all groups of all arrays, as warp number `warp` of `warps`.
KPRIM void kscan_all(uint64_t heap, uint32_t warp, uint32_t warps, struct kscan_team t)
{
    uint32_t arrays = KSLAB_FIELD32(heap, arrays);
    for (uint32_t array = 0; array < arrays; array++) {
        uint32_t count = kprim_share32(t.mask, kentry_groups(heap, array), t.leader);
        // Arrays begin with different warps.
        for (uint32_t group = (warp + array * 7) % warps; group < count; group += warps)
            kscan_group(heap, array, group, t);
    }
}

#endif
