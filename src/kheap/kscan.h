// SPDX-License-Identifier: MIT
// Looking at canaries, releasing what was freed, telling what is wrong.
//
// A group of entries is in the hands of one warp, or one part of a warp, at a time. Nobody else looks at its blocks'
// canaries and nobody else releases them, so between the look and the release no block can become another. free only ever
// changes a head canary that is right into one that is right too.
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

// --- a block ------------------------------------------------------------------------------------------------

// Where in the pool a block begins and what it is.
struct kscan_block {
    uint64_t address;  // its first byte; what the program has is 16 behind
    uint32_t chunk, what, index;
    uint64_t bytes;
};

// false: no block begins there. Says nothing of whether it is in use.
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

// What is found around a block: of enum kheap_flags, 0 if it is in use and all is as it should be.
KPRIM uint32_t kscan_verify(uint64_t heap, const struct kscan_block *b, struct kheap_record *r)
{
    uint64_t user = b->address + KLAYOUT_HEAD, cover = kcanary_cover(heap, user), unfree = kcanary_free(heap);
    // Pairs with the release in kalloc_mark: whoever finds the block freed comes after all that its owner did.
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
    // Neither canary fits that size: it is most likely not the block's.
    return flags ? KHEAP_HEAD | KHEAP_SIZE_LOST : KHEAP_HEAD;
}

// --- records ------------------------------------------------------------------------------------------------

KPRIM void kscan_tell(uint64_t heap, const struct kheap_record *r)
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

// Tells of the block, as it is now, or of the address where none begins.
KPRIM_FAR void kscan_complain(uint64_t heap, uint64_t address, uint32_t kind, uint32_t flags, uint32_t array)
{
    struct kscan_block b;
    struct kheap_record r = {.kind = kind, .flags = flags, .array = array};
    if (kscan_block(heap, address, &b)) {
        kscan_verify(heap, &b, &r);
        r.capacity = (uint32_t)(b.bytes / 16);
    }
    r.address = address + KLAYOUT_HEAD;
    kscan_tell(heap, &r);
}

// --- entries ------------------------------------------------------------------------------------------------

// An entry of a group that is ours. A block whose head is damaged is not released: nobody knows whether it was freed.
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
        // The next scan sees to the rest.
        kprim_or32(place.header, (uint32_t)KENTRY_REPORTED << place.shift, KPRIM_RELAXED);
        kscan_complain(heap, b.address, KHEAP_OVERRUN, flags, array);
        return;
    }
    if (flags & KHEAP_HEAD || !(flags & KHEAP_FREED))
        return;
    kentry_expire(heap, array, &place);
    kscan_release(heap, &b);
    // Last, so that who finds nothing waiting finds the block.
    kprim_add64(KSCAN_PENDING(heap), (uint64_t)0 - b.bytes, KPRIM_RELEASE);
}

// --- groups -------------------------------------------------------------------------------------------------

// Whether there is a live entry in the group: for one that is empty, nobody needs to have it.
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

// By a team, all of which must come here. false: somebody else has the group.
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
    // Orders what the others did before the leader's release.
    kprim_sync(t.mask);
    if (!t.rank)
        kentry_unlock(heap, array, group);
    return true;
}

// n groups, in turn of all arrays, from number `turn` on. Returns how many of them somebody else had.
KPRIM_FAR uint32_t kscan_some(uint64_t heap, uint32_t turn, uint32_t n, uint32_t mask)
{
    struct kscan_team t = kscan_team(mask);
    uint32_t arrays = KSLAB_FIELD32(heap, arrays), held = 0;
    for (; n--; turn++) {
        uint32_t array = turn % arrays, count = kprim_share32(mask, kentry_groups(heap, array), t.leader);
        held += !kscan_group(heap, array, turn / arrays % count, t);
    }
    return held;
}

// Where the next n groups begin that nobody looks at yet.
KPRIM uint32_t kscan_turn(uint64_t heap, uint32_t n, struct kscan_team t)
{
    uint32_t turn = 0;
    if (!t.rank)
        turn = kprim_add32(heap + __builtin_offsetof(struct kheap, cursor), n, KPRIM_RELAXED);
    return kprim_share32(t.mask, turn, t.leader);
}

// How many turns make a round: arrays are not of one length.
KPRIM uint32_t kscan_turns(uint64_t heap)
{
    uint32_t arrays = KSLAB_FIELD32(heap, arrays), most = 0;
    for (uint32_t array = 0; array < arrays; array++) {
        uint32_t n = kentry_groups(heap, array);
        most = n > most ? n : most;
    }
    return most * arrays;
}

// All groups of all arrays, by warp number `warp` of `warps`.
KPRIM void kscan_all(uint64_t heap, uint32_t warp, uint32_t warps, struct kscan_team t)
{
    uint32_t arrays = KSLAB_FIELD32(heap, arrays);
    for (uint32_t array = 0; array < arrays; array++) {
        uint32_t count = kprim_share32(t.mask, kentry_groups(heap, array), t.leader);
        // Not all arrays begin with the same warp.
        for (uint32_t group = (warp + array * 7) % warps; group < count; group += warps)
            kscan_group(heap, array, group, t);
    }
}

#endif
