// SPDX-License-Identifier: MIT
// malloc and free inside kernels.
//
// Lanes that ask for the same class at the same time form a team: one of them takes blocks for all. free does
// not release a block; a scan does. When many freed bytes wait, malloc scans a group of entries itself, so
// that a program which leaves no room for the guard's kernel still gets its memory back and its errors
// detected.
#ifndef MOAT_KHEAP_KALLOC_H
#define MOAT_KHEAP_KALLOC_H

#include "kheap/kfind.h"
#include "kheap/kscan.h"

enum {
    KALLOC_RUN = 0,  // in place of a class: a run of chunks
    KALLOC_IMPOSSIBLE = 255,
    KALLOC_HELP = 8,            // groups scanned between two attempts
    KALLOC_ROUNDS = 4,          // through all groups, at most
    KALLOC_IDLE = 8,            // rounds without any change, before malloc returns NULL
    KALLOC_PATIENCE = 1 << 14,  // pauses at most
};

KPRIM uint32_t kalloc_class(uint64_t heap, uint64_t size)
{
    if (size > (uint64_t)KSLAB_FIELD32(heap, chunks) * KLAYOUT_CHUNK - (KLAYOUT_HEAD + KLAYOUT_TAIL))
        return KALLOC_IMPOSSIBLE;
    uint64_t bytes = size + KLAYOUT_HEAD + KLAYOUT_TAIL;
    return bytes <= KLAYOUT_SLAB_MOST ? kslab_class((uint32_t)bytes) : KALLOC_RUN;
}

// Takes blocks for the lanes of the team that have none. The leader finds them; lanes get them by rank.
KPRIM uint64_t kalloc_slab(uint64_t heap, uint32_t class, uint64_t block, struct kscan_team t)
{
    uint64_t pool = KSLAB_FIELD(heap, pool);
    uint32_t size = kslab_size(class), missing;
    while ((missing = kprim_ballot(t.mask, !block))) {
        struct kslab_due due = {0};
        if (!t.rank)
            due = kslab_unpack(kslab_take(heap, class, (uint32_t)__builtin_popcount(missing)));
        uint32_t n = kprim_share32(t.mask, due.n, t.leader),
                 chunk = kprim_share32(t.mask, due.chunk, t.leader);
        if (!n)
            break;
        uint32_t place = (uint32_t)__builtin_popcount(missing & kprim_below());
        while (n) {
            uint64_t bits = 0;
            uint32_t word = 0;
            if (!t.rank)
                word = kslab_find(heap, class, &due, &bits);
            word = kprim_share32(t.mask, word, t.leader);
            bits = kprim_share64(t.mask, bits, t.leader);
            uint32_t got = (uint32_t)__builtin_popcountll(bits);
            if (!block && place < got)
                block =
                    pool + (uint64_t)chunk * KLAYOUT_CHUNK + (uint64_t)(word + kslab_nth(bits, place)) * size;
            place -= got;
            n -= got;
        }
    }
    return block;
}

KPRIM uint64_t kalloc_run(uint64_t heap, uint64_t size)
{
    uint64_t bytes = size + KLAYOUT_HEAD + KLAYOUT_TAIL;
    uint32_t run = krun_take(heap, (uint32_t)((bytes + KLAYOUT_CHUNK - 1) / KLAYOUT_CHUNK));
    return run ? KSLAB_FIELD(heap, pool) + (uint64_t)(run - 1) * KLAYOUT_CHUNK : 0;
}

// Returns the bytes that were freed and not released yet; the same value for the whole team.
KPRIM uint64_t kalloc_waiting(uint64_t heap, struct kscan_team t)
{
    uint64_t bytes = 0;
    if (!t.rank)
        bytes = kprim_ld64(KSCAN_PENDING(heap), KPRIM_ACQUIRE);
    return kprim_share64(t.mask, bytes, t.leader);
}

// Scans some groups if many freed bytes wait; more groups for more bytes.
KPRIM void kalloc_help(uint64_t heap, uint64_t waiting, struct kscan_team t)
{
    uint64_t eighth = (uint64_t)KSLAB_FIELD32(heap, chunks) * (KLAYOUT_CHUNK / 8);
    uint32_t n = waiting < eighth ? 0 : waiting < 2 * eighth ? 1 : waiting < 4 * eighth ? 2 : 4;
    if (n)
        kscan_some(heap, kscan_turn(heap, n, t), n, t.mask);
}

// The state of a malloc that found no memory and scans all groups for freed blocks.
struct kalloc_round {
    uint64_t waiting;   // freed bytes when the round began
    uint32_t turn;      // the next group
    uint32_t left;      // groups left in this round
    uint32_t budget;    // groups left in all rounds
    uint32_t patience;  // pauses left; 0: no round has begun
    uint32_t idle;      // rounds in which nothing changed
};

// Begins a round over what is freed now. The acquire pairs with the release in kscan_entry: bytes that are no
// longer waiting can be allocated.
KPRIM void kalloc_begin(uint64_t heap, struct kalloc_round *r, struct kscan_team t)
{
    r->waiting = kalloc_waiting(heap, t);
    r->left = r->waiting ? kprim_share32(t.mask, kscan_turns(heap), t.leader) : 0;
}

// After a failed attempt: returns whether to try again. Scans some more groups; if another team holds one of
// them, it will release it soon, so this waits and begins the round anew. A complete round after which as
// many bytes wait as before shows that there is nothing to release; a few such rounds are made, as others may
// be about to free blocks.
KPRIM_FAR bool kalloc_more(uint64_t heap, uint32_t mask, struct kalloc_round *r)
{
    struct kscan_team t = kscan_team(mask);
    if (!r->patience) {
        r->patience = KALLOC_PATIENCE;
        r->turn = kscan_turn(heap, KALLOC_HELP, t);
        kalloc_begin(heap, r, t);
        r->budget = r->left * KALLOC_ROUNDS + KALLOC_PATIENCE;
        return true;
    }
    if (r->left) {
        uint32_t n = r->left < KALLOC_HELP ? r->left : KALLOC_HELP;
        bool held = kscan_some(heap, r->turn, n, mask);
        r->turn += n;
        r->left -= n;
        if (r->budget < n)
            return false;
        r->budget -= n;
        if (!held)
            return true;
        r->left = kprim_share32(mask, kscan_turns(heap), t.leader);
    } else {
        uint64_t before = r->waiting;
        kalloc_begin(heap, r, t);
        r->idle = r->waiting == before ? r->idle + 1 : 0;
        r->left = r->idle ? 0 : r->left;
        if (r->idle > KALLOC_IDLE)
            return false;
    }
    kprim_pause();
    return --r->patience;
}

// Returns a block for each lane of the team, as far as there are any; 0 for the others.
KPRIM uint64_t kalloc_block(uint64_t heap, uint32_t class, uint64_t size, struct kscan_team t)
{
    // The load completes while a block is being searched for.
    uint64_t block = 0, waiting = t.rank ? 0 : kprim_ld64(KSCAN_PENDING(heap), KPRIM_RELAXED);
    struct kalloc_round round = {0};
    for (bool first = true;; first = false) {
        if (class != KALLOC_RUN)
            block = kalloc_slab(heap, class, block, t);
        else if (!block)
            block = kalloc_run(heap, size);
        if (first)
            kalloc_help(heap, kprim_share64(t.mask, waiting, t.leader), t);
        if (!kprim_ballot(t.mask, !block) || !kalloc_more(heap, t.mask, &round))
            return block;
    }
}

KPRIM bool kalloc_register(uint64_t heap, uint64_t block)
{
    uint32_t arrays = KSLAB_FIELD32(heap, arrays), array = kprim_number() % arrays;
    for (uint32_t i = 0; i < arrays; i++) {
        if (kentry_insert(heap, array, block))
            return true;
        array = array + 1 < arrays ? array + 1 : 0;
    }
    return false;
}

// Lets the block be found by its addresses, if the heap is one for that.
KPRIM void kalloc_found(uint64_t heap, uint64_t block, uint64_t size, uint32_t offset)
{
    struct kscan_block b;
    if (KSLAB_FIELD(heap, bounds) && kscan_block(heap, block, &b))
        kfind_set(heap, b.chunk, b.index, size, offset,
                  b.what == KLAYOUT_RUN ? (uint32_t)(b.bytes / KLAYOUT_CHUNK) : 1);
}

// Writes the canaries and the entry. Returns the program's pointer, or 0 if there is no room for the entry;
// then the block is released. A buffer that is aligned to more than 16 bytes lies at the end of what the
// canaries enclose.
KPRIM uint64_t kalloc_finish(uint64_t heap, uint64_t block, uint64_t size, uint64_t align)
{
    uint64_t user = block + KLAYOUT_HEAD, wanted = user;
    uint32_t offset = (uint32_t)(((user + align - 1) & ~(align - 1)) - user);
    kalloc_found(heap, block, size, offset);
    wanted += offset;
    size += offset;
    struct kcanary c = kcanary_make(heap, user, size, kcanary_cover(heap, user));
    kprim_st64(block, c.head, KPRIM_RELAXED);
    kprim_put64(block + 8, c.size);
    kcanary_put_tail(user + size, c.tail);
    if (kalloc_register(heap, block))
        return wanted;
    // Without the team: the other lanes may be done.
    struct kalloc_round round = {0};
    while (kprim_ld64(KSCAN_PENDING(heap), KPRIM_ACQUIRE) &&
           kalloc_more(heap, (uint32_t)1 << kprim_lane(), &round))
        if (kalloc_register(heap, block))
            return wanted;
    struct kscan_block b;
    if (kscan_block(heap, block, &b))
        kscan_release(heap, &b);
    return 0;
}

// align: a power of 2, at least 16. More than that only where blocks can be found by their addresses, at most
// KHEAP_ALIGN_MOST.
KPRIM_FAR uint64_t kalloc_aligned(uint64_t heap, uint64_t size, uint64_t align)
{
    if (!heap)
        return 0;
    uint64_t room = size + (align - 16) < size ? UINT64_MAX : size + (align - 16);
    uint32_t class = kalloc_class(heap, room);
    struct kscan_team t = kscan_team(kprim_same(kprim_active(), class));
    uint64_t user = 0;
    if (class != KALLOC_IMPOSSIBLE) {
        uint64_t block = kalloc_block(heap, class, room, t);
        if (block)
            user = kalloc_finish(heap, block, size, align);
    }
    uint32_t good = (uint32_t)__builtin_popcount(kprim_ballot(t.mask, user != 0));
    if (!t.rank && good)
        KSCAN_COUNT(heap, mallocs, good);
    if (!t.rank && good < t.size)
        KSCAN_COUNT(heap, failed, t.size - good);
    return user;
}

KPRIM uint64_t kalloc_malloc(uint64_t heap, uint64_t size)
{
    return kalloc_aligned(heap, size, 16);
}

// --- free --------------------------------------------------------------------------------------------------

// Returns whether the block is in the allocator's hands.
KPRIM bool kalloc_unused(uint64_t heap, const struct kscan_block *b)
{
    if (b->what == KLAYOUT_RUN)
        return false;
    return kprim_ld64(kslab_bitmap(heap, b->chunk) + (uint64_t)(b->index / 64) * 8, KPRIM_RELAXED) >>
               b->index % 64 &
           1;
}

// Marks the block as freed and returns its size; 0 if the free is wrong, which is reported now or by the next
// scan.
KPRIM uint64_t kalloc_mark(uint64_t heap, uint64_t user)
{
    struct kscan_block b;
    if (user % 16 || !kscan_block(heap, user - KLAYOUT_HEAD, &b)) {
        kscan_complain(heap, user - KLAYOUT_HEAD, KHEAP_BAD_FREE, KHEAP_BY_THREAD, 0);
        return 0;
    }
    uint64_t unfree = kcanary_free(heap), cover = kcanary_cover(heap, user);
    uint64_t size = canary_shape_reveal(kprim_get64(b.address + 8), cover),
             head = kprim_ld64(b.address, KPRIM_RELAXED), before;
    struct kcanary made = kcanary_make(heap, user, size, cover);
    bool fits = size <= b.bytes - KLAYOUT_HEAD - KLAYOUT_TAIL;
    // Equation 3: a damaged head stays damaged. Of two threads that free at the same time, one finds the
    // other's mark. The release is for the block's next owner: what was done with the block comes before.
    for (;; head = before) {
        if (fits && head == (made.head ^ unfree)) {
            kscan_complain(heap, b.address, KHEAP_DOUBLE_FREE, KHEAP_BY_THREAD | KHEAP_FREED, 0);
            return 0;
        }
        bool right = fits && head == made.head;
        if (!right && kalloc_unused(heap, &b)) {
            kscan_complain(heap, b.address, KHEAP_BAD_FREE, KHEAP_BY_THREAD, 0);
            return 0;
        }
        if (right)
            kfind_set_freed(heap, b.chunk, b.index);
        before = kprim_mark64(b.address, head, head ^ unfree);
        if (before == head)
            return right ? b.bytes : 0;
    }
}

// Returns where the canaries of a buffer begin that is aligned to more than 16 bytes; the pointer itself for
// others.
KPRIM uint64_t kalloc_place(uint64_t heap, uint64_t user)
{
    struct kfind f = kfind_look(heap, user);
    return f.base == user ? user - f.offset : user;
}

KPRIM void kalloc_free(uint64_t heap, uint64_t user)
{
    if (!heap || !user)
        return;
    user = kalloc_place(heap, user);
    // Lanes that freed blocks of one size are counted together.
    uint32_t size = (uint32_t)(kalloc_mark(heap, user) / 16);
    struct kscan_team t = kscan_team(kprim_same(kprim_active(), size));
    if (size && !t.rank) {
        kprim_add64(KSCAN_PENDING(heap), (uint64_t)size * 16 * t.size, KPRIM_RELAXED);
        KSCAN_COUNT(heap, frees, t.size);
    }
}

#endif
