// SPDX-License-Identifier: MIT
// The body of KCHECK_ACCESS (kcheck.h): judges an access that a quick comparison did not accept. The rules,
// the first that applies decides; "inside" means with all its bytes:
//
//   the access is known to be inside               performed
//   the root is a variable that the access left    KCHECK_OUTSIDE_VARIABLE
//   the address is not global memory               performed
//   the root is null                               performed if inside a live block: then a number was taken
//                                                  for the root; else KCHECK_NULL
//   the root's block is live                       performed if inside it, or if the root ends another live
//                                                  block and the access is inside that one; LOOSE: also if it
//                                                  is in other LOOSE blocks; else KCHECK_LEFT
//   the root ends a live block                     by the address
//   the root's block was freed                     KCHECK_USE_FREED
//   else                                           by the address
//
//   by the address: inside live blocks             performed
//                   in a freed block               KCHECK_USE_FREED
//                   in the first 64 KiB            KCHECK_NULL
//                   in the heap of malloc in kernels   KCHECK_IN_HEAP: nobody else has that memory
//                   else, if there is a shadow and it forbids the access, KCHECK_REDZONE: also inside a block
//                   that has POOL
//                   else                           KCHECK_STRAY, performed: the memory may be someone else's
//
// What would be performed but is not aligned is KCHECK_MISALIGNED.
#ifndef MOAT_KCHECK_KCHECK_JUDGE_H
#define MOAT_KCHECK_KCHECK_JUDGE_H

#include "kcheck/kcheck.h"
#include "kcheck/kcheck_shadow.h"
#include "kcheck/kcheck_state.h"
#include "kheap/kfind.h"
#include "kprim/kprim.h"
#include "ring/error_ring_write.h"

enum { KCHECK_NULL_PAGE = 1 << 16 };

struct kcheck_block {
    uint64_t base;  // 0: none
    uint64_t size;  // with KCHECK_FREED, KCHECK_LOOSE or KCHECK_POOL
};

struct kcheck_access {
    uint64_t what, address, root, launch;
    uint64_t width;
};

struct kcheck_judgement {
    uint32_t kind;  // enum kcheck_kind; 0: the access is good
    struct kcheck_block block;
};

#define KCHECK_WORD(directory, n) ((directory) + 8 * (uint64_t)(n))
#define KCHECK_RECORD(records, n) ((records) + sizeof(struct kcheck_record) * (uint64_t)(n))

KPRIM bool kcheck_judge_contains(struct kcheck_block b, uint64_t address)
{
    return b.base && address - b.base < (b.size & KCHECK_SIZE);
}

KPRIM bool kcheck_judge_is_live(struct kcheck_block b)
{
    return b.base && !(b.size & KCHECK_FREED);
}

// Returns the block in a list of a mixed slot: a live one before a freed one, an inner one before an outer
// one.
KPRIM struct kcheck_block kcheck_judge_search(uint64_t records, uint64_t first, uint64_t address)
{
    struct kcheck_block found = {0, 0};
    KPRIM_ROLLED
    for (uint64_t at = KCHECK_RECORD(records, first);; at += sizeof(struct kcheck_record)) {
        struct kcheck_block b = {kprim_get64(at), kprim_get64(at + 8)};
        if (!b.base)
            return found;
        if (!kcheck_judge_contains(b, address))
            continue;
        if (kcheck_judge_is_live(b))
            return b;
        if (!found.base)
            found = b;
    }
}

// Returns the block of the record that describes an address, which may end before it; for a mixed slot the
// one that contains the address. A base of 0: none.
KPRIM_FAR struct kcheck_block kcheck_judge_near(uint64_t directory, uint64_t records, uint64_t address)
{
    struct kcheck_block none = {0, 0};
    if (address >> KCHECK_ADDRESS_BITS)
        return none;
    uint64_t word = kprim_get64(KCHECK_WORD(directory, address >> KCHECK_CHUNK_BITS));
    if (!word)
        return none;
    uint64_t at = KCHECK_RECORD(records, (word >> 32) + kcheck_slot(address, (uint32_t)word));
    struct kcheck_block b = {kprim_get64(at), kprim_get64(at + 8)};
    if (b.size & KCHECK_MIXED)
        return kcheck_judge_search(records, b.size & KCHECK_SIZE, address);
    return b;
}

// Returns whether the address is in the heap of malloc in kernels.
KPRIM bool kcheck_judge_in_heap(const struct kcheck_module *m, uint64_t address)
{
    return m->heap && address - m->heap < m->heap_bytes;
}

KPRIM_FAR struct kfind kcheck_judge_find_in_heap(uint64_t heap, uint64_t address)
{
    return kfind_look(heap, address);
}

// Returns the block whose place the address is in, and which may not contain it.
KPRIM struct kcheck_block kcheck_judge_look_in_heap(uint64_t heap, uint64_t address)
{
    struct kfind found = kcheck_judge_find_in_heap(heap, address);
    return (struct kcheck_block){found.base, found.size | (found.freed ? KCHECK_FREED : 0)};
}

// The members of the module are arguments, so that it stays in registers. The function is called in many
// places, and the driver compiles it with each module.
KPRIM_FAR struct kcheck_block kcheck_judge_look(uint64_t directory, uint64_t records, uint64_t heap,
                                                uint64_t heap_bytes, uint64_t address)
{
    bool in_heap = heap && address - heap < heap_bytes;
    struct kcheck_block b =
        in_heap ? kcheck_judge_look_in_heap(heap, address) : kcheck_judge_near(directory, records, address);
    struct kcheck_block none = {0, 0};
    return kcheck_judge_contains(b, address) ? b : none;
}

// Returns the block that contains the address, or a base of 0.
KPRIM struct kcheck_block kcheck_judge_find(const struct kcheck_module *m, uint64_t address)
{
    return kcheck_judge_look(m->directory, m->records, m->heap, m->heap_bytes, address);
}

// Returns the live block that ends at the address, or a base of 0.
KPRIM struct kcheck_block kcheck_judge_ends_at(const struct kcheck_module *m, uint64_t address)
{
    struct kcheck_block b = kcheck_judge_find(m, address - 1), none = {0, 0};
    return kcheck_judge_is_live(b) && b.base + (b.size & KCHECK_SIZE) == address ? b : none;
}

KPRIM bool kcheck_judge_inside(struct kcheck_block b, const struct kcheck_access *a)
{
    uint64_t size = b.size & KCHECK_SIZE;
    return b.base && a->width <= size && a->address - b.base <= size - a->width;
}

// Returns whether the shadow forbids a byte. It is read anew: it may have changed since the quick test, for a
// kernel that runs on while the program allocates.
KPRIM_FAR bool kcheck_judge_forbids(const struct kcheck_module *m, uint64_t address)
{
    if (!m->shadow)
        return false;
    uint64_t byte = m->shadow + kcheck_shadow_offset(m->shift, address);
    uint64_t word = kprim_ld64(byte & ~(uint64_t)7, KPRIM_RELAXED);
    return kcheck_shadow_is_wrong(m->shift, (uint8_t)(word >> (byte & 7) * 8), address, 1);
}

// Returns whether all bytes are in live blocks: an access that leaves one may go on in the next one, or in
// one that surrounds it. Of what is in a pool, the first and the last byte decide.
KPRIM_FAR bool kcheck_judge_is_good(const struct kcheck_module *m, const struct kcheck_access *a,
                                    struct kcheck_block here)
{
    uint64_t at = a->address, last = at + a->width - 1;
    KPRIM_ROLLED
    while (kcheck_judge_is_live(here)) {
        if (here.size & KCHECK_POOL && (kcheck_judge_forbids(m, at) || kcheck_judge_forbids(m, last)))
            return false;
        at = here.base + (here.size & KCHECK_SIZE);
        if (at - a->address >= a->width)
            return true;
        here = kcheck_judge_find(m, at);
    }
    return false;
}

KPRIM struct kcheck_judgement kcheck_judge_by_address(const struct kcheck_module *m,
                                                      const struct kcheck_access *a)
{
    struct kcheck_block here = kcheck_judge_find(m, a->address);
    if (kcheck_judge_is_good(m, a, here))
        return (struct kcheck_judgement){0, here};
    if (here.size & KCHECK_FREED)
        return (struct kcheck_judgement){KCHECK_USE_FREED, here};
    if (a->address < KCHECK_NULL_PAGE)
        return (struct kcheck_judgement){KCHECK_NULL, here};
    if (kcheck_judge_in_heap(m, a->address))
        return (struct kcheck_judgement){KCHECK_IN_HEAP, kcheck_judge_look_in_heap(m->heap, a->address)};
    if (here.size & KCHECK_POOL || kcheck_judge_forbids(m, a->address + a->width - 1))
        return (struct kcheck_judgement){KCHECK_REDZONE,
                                         kcheck_judge_near(m->directory, m->records, a->address)};
    return (struct kcheck_judgement){KCHECK_STRAY, here};
}

// Judges by the root, or, without one, by the address. What judges by the address is inlined here, and only
// here: the driver compiles it with each module.
KPRIM struct kcheck_judgement kcheck_judge_by_root(const struct kcheck_module *m,
                                                   const struct kcheck_access *a, bool has_root)
{
    struct kcheck_block root = {0, 0}, before = {0, 0};
    if (has_root) {
        root = kcheck_judge_find(m, a->root);
        before = kcheck_judge_ends_at(m, a->root);
    }
    bool live = kcheck_judge_is_live(root), by_address = !root.base || (before.base && !live);
    if (live && (kcheck_judge_inside(root, a) || kcheck_judge_inside(before, a)))
        return (struct kcheck_judgement){0, root};
    struct kcheck_judgement there = {KCHECK_LEFT, root};
    if (by_address || (live && root.size & KCHECK_LOOSE))
        there = kcheck_judge_by_address(m, a);
    if (by_address || there.kind == KCHECK_USE_FREED || (!there.kind && there.block.size & KCHECK_LOOSE))
        return there;
    return (struct kcheck_judgement){live ? KCHECK_LEFT : KCHECK_USE_FREED, root};
}

// Judges a pointer that is about to be passed to free, as kalloc_free does; two threads that free at the same
// time are found by that only.
KPRIM struct kcheck_judgement kcheck_judge_free(const struct kcheck_module *m, uint64_t pointer)
{
    struct kcheck_judgement good = {0, {0, 0}};
    if (!pointer || !m->heap)
        return good;
    if (!kcheck_judge_in_heap(m, pointer) &&
        kprim_ld64(m->heap + __builtin_offsetof(struct kheap, foreign), KPRIM_RELAXED))
        return good;
    struct kfind found = {0, 0, false, 0};
    if (kcheck_judge_in_heap(m, pointer))
        found = kcheck_judge_find_in_heap(m->heap, pointer);
    if (!found.base || found.base != pointer)
        return (struct kcheck_judgement){KCHECK_BAD_FREE, kcheck_judge_find(m, pointer)};
    struct kcheck_block b = {found.base, found.size | KCHECK_FREED};
    return found.freed ? (struct kcheck_judgement){KCHECK_DOUBLE_FREE, b} : good;
}

KPRIM struct kcheck_judgement kcheck_judge_bounds(const struct kcheck_module *m,
                                                  const struct kcheck_access *a)
{
    uint64_t flags = a->what >> 48;
    struct kcheck_judgement none = {0, {0, 0}};
    if (flags & KCHECK_FREES)
        return kcheck_judge_free(m, a->address);
    if (flags & KCHECK_INSIDE)
        return (struct kcheck_judgement){0, kcheck_judge_find(m, a->address)};
    if (flags & KCHECK_DYNAMIC)
        return (struct kcheck_judgement){KCHECK_OUTSIDE_VARIABLE, {a->root, kprim_dynamic_shared()}};
    if (flags & KCHECK_VARIABLE_LEFT)
        return (struct kcheck_judgement){KCHECK_OUTSIDE_VARIABLE, kcheck_judge_find(m, a->root)};
    if (flags & KCHECK_GENERIC && !kprim_is_global(a->address))
        return none;
    if (!(flags & KCHECK_ROOT) || a->root)
        return kcheck_judge_by_root(m, a, flags & KCHECK_ROOT);
    return kcheck_judge_is_good(m, a, kcheck_judge_find(m, a->address))
               ? none
               : (struct kcheck_judgement){KCHECK_NULL, {0, 0}};
}

KPRIM struct kcheck_judgement kcheck_judge(const struct kcheck_module *m, const struct kcheck_access *a)
{
    struct kcheck_judgement j = kcheck_judge_bounds(m, a);
    bool misaligned = (a->what >> 48 & KCHECK_ALIGNED) && (a->address & (a->width - 1));
    if (misaligned && (!j.kind || j.kind == KCHECK_STRAY))
        j.kind = KCHECK_MISALIGNED;
    return j;
}

// --- records -----------------------------------------------------------------------------------------------

// One multiplication brings all bits of v into the upper half, and one shift back into the lower.
KPRIM uint64_t kcheck_judge_mix(uint64_t v)
{
    v = (v ^ v >> 32) * 0x9e3779b97f4a7c15u;
    return v ^ v >> 29;
}

// Returns a key that errors of the same kind, site and block share; never 0. Strays have no block: those of 2
// MiB share one.
KPRIM uint64_t kcheck_judge_key(const struct kcheck_module *m, const struct kcheck_access *a,
                                const struct kcheck_judgement *j)
{
    uint64_t block = j->block.base ? j->block.base : a->address >> KCHECK_CHUNK_BITS;
    uint64_t site = (m->number << 32 | (uint32_t)a->what) * 0xbf58476d1ce4e5b9u;
    uint64_t key = kcheck_judge_mix(site + block + j->kind);
    return key ? key : 1;
}

#define KCHECK_COUNTER(state, n)                                   \
    ((state) + __builtin_offsetof(struct kcheck_state, counters) + \
     sizeof(struct kcheck_counter) * (uint64_t)(n))
#define KCHECK_IN_COUNTER(at, field) ((at) + __builtin_offsetof(struct kcheck_counter, field))

// Returns the number of the counter for the key, KCHECK_COUNTERS if there is no room for it.
KPRIM uint32_t kcheck_judge_counter(uint64_t state, uint64_t key)
{
    KPRIM_ROLLED
    for (uint32_t i = 0; i < KCHECK_PROBES; i++) {
        uint32_t n = ((uint32_t)key + i) & (KCHECK_COUNTERS - 1);
        uint64_t at = KCHECK_IN_COUNTER(KCHECK_COUNTER(state, n), key);
        uint64_t now = kprim_ld64(at, KPRIM_RELAXED);
        if (!now)
            now = kprim_cas64(at, 0, key);
        if (!now || now == key)
            return n;
    }
    return KCHECK_COUNTERS;
}

// Where a block notes its launch, and its key there (kcheck_state.h).
struct kcheck_who {
    uint64_t at, key;
};

KPRIM struct kcheck_who kcheck_judge_who(uint64_t state)
{
    struct kprim_thread t;
    kprim_who(&t);
    uint32_t block = kprim_block(&t);
    uint32_t n = (block + (uint32_t)t.grid) & (KCHECK_LAUNCHES - 1);
    return (struct kcheck_who){state + __builtin_offsetof(struct kcheck_state, launches) +
                                   sizeof(struct kcheck_launch) * (uint64_t)n,
                               kcheck_judge_mix(t.grid * 0xbf58476d1ce4e5b9u + block)};
}

// Every thread notes it, so that each finds its own note without waiting for others.
KPRIM void kcheck_judge_enter(uint64_t state, uint64_t launch)
{
    struct kcheck_who w = kcheck_judge_who(state);
    kprim_st64(w.at, w.key ^ launch, KPRIM_RELAXED);
    kprim_st64(w.at + __builtin_offsetof(struct kcheck_launch, launch), launch, KPRIM_RELAXED);
}

// Returns the launch of the thread's block, 0 if its note is gone.
KPRIM uint64_t kcheck_judge_launch(uint64_t state)
{
    struct kcheck_who w = kcheck_judge_who(state);
    uint64_t check = kprim_ld64(w.at, KPRIM_RELAXED);
    uint64_t launch = kprim_ld64(w.at + __builtin_offsetof(struct kcheck_launch, launch), KPRIM_RELAXED);
    return (check ^ launch) == w.key ? launch : 0;
}

// Returns false if the ring is full.
KPRIM bool kcheck_judge_write(const struct kcheck_module *m, const struct kcheck_access *a,
                              const struct kcheck_judgement *j, uint32_t counter)
{
    uint64_t writer = m->state + __builtin_offsetof(struct kcheck_state, errors), number;
    uint64_t at = error_ring_write_begin(writer, ERROR_RING_WHAT(ERROR_RING_CHECK, j->kind, a->what),
                                         a->address, &number);
    if (!at)
        return false;
    error_ring_write_word(at, 0, a->what);
    error_ring_write_word(at, 1, a->root);
    error_ring_write_word(at, 2, j->block.base);
    error_ring_write_word(at, 3, j->block.size);
    error_ring_write_word(at, 4, a->launch ? a->launch : kcheck_judge_launch(m->state));
    error_ring_write_word(at, 5, m->number);
    error_ring_write_word(at, 6, counter);
    error_ring_write_end(at, number);
    return true;
}

// Counts an error, and records it unless another thread does. Returns the number of its counter, or
// KCHECK_COUNTERS.
KPRIM uint32_t kcheck_judge_record(const struct kcheck_module *m, const struct kcheck_access *a,
                                   const struct kcheck_judgement *j)
{
    uint32_t n = kcheck_judge_counter(m->state, kcheck_judge_key(m, a, j));
    bool has = n < KCHECK_COUNTERS;
    uint64_t at = KCHECK_COUNTER(m->state, n), written = KCHECK_IN_COUNTER(at, written);
    kprim_add64(has ? KCHECK_IN_COUNTER(at, count)
                    : m->state + __builtin_offsetof(struct kcheck_state, crowded),
                1, KPRIM_RELAXED);
    if (has && (kprim_ld64(written, KPRIM_RELAXED) || kprim_cas64(written, 0, KCHECK_WRITING)))
        return n;
    uint64_t now = kcheck_judge_write(m, a, j, n) ? KCHECK_WRITTEN : 0;
    // Release, at system scope: with the acquire in kcheck_judge_stop; the host sees the record first.
    if (has)
        kprim_st64_system(written, now);
    return n;
}

// Ends the kernel: all of its threads, also one that is writing the record of this error, which therefore is
// waited for.
KPRIM void kcheck_judge_stop(const struct kcheck_module *m, uint32_t counter)
{
    uint64_t written = KCHECK_IN_COUNTER(KCHECK_COUNTER(m->state, counter), written);
    KPRIM_ROLLED
    while (counter < KCHECK_COUNTERS && kprim_ld64_system(written) == KCHECK_WRITING)
        kprim_pause();
    kprim_trap();
}

// Returns an enum kcheck_verdict for an access that is not good.
KPRIM uint32_t kcheck_judge_wrong(const struct kcheck_module *m, const struct kcheck_access *a,
                                  const struct kcheck_judgement *j)
{
    uint32_t counter = kcheck_judge_record(m, a, j);
    if (j->kind == KCHECK_STRAY)
        return KCHECK_PERFORM;
    if (kprim_get64(m->state + __builtin_offsetof(struct kcheck_state, trap)))
        kcheck_judge_stop(m, counter);
    return KCHECK_SKIP;
}

// Returns whether an access is inside a live block of the heap of malloc in kernels; false also where
// kcheck_judge has to find that out. The shadow forbids all of that heap, so every access of it comes here.
KPRIM bool kcheck_judge_is_quick(const struct kcheck_module *m, uint64_t what, uint64_t address)
{
    uint64_t width = what >> 32 & 0xffff, flags = what >> 48;
    if (!m->shadow || flags & (KCHECK_ROOT | KCHECK_VARIABLE_LEFT | KCHECK_FREES) ||
        !kcheck_judge_in_heap(m, address))
        return false;
    uint64_t found = kfind_quick(m->heap, address);
    bool aligned = !(flags & KCHECK_ALIGNED) || !(address & (width - 1));
    return found && aligned && (found >> 32) + width <= (uint32_t)found;
}

// Returns an enum kcheck_verdict.
KPRIM uint32_t kcheck_judge_access(const struct kcheck_module *m, uint64_t what, uint64_t address,
                                   uint64_t root, uint64_t launch)
{
    struct kcheck_access a = {what, address, root, launch, (what >> 32 & 0xffff) ? what >> 32 & 0xffff : 1};
    uint64_t flags = what >> 48;
    if (!m->state)  // the host has not set the variable: nothing is known
        return KCHECK_PERFORM;
    if (flags & KCHECK_INSIDE && (!(flags & KCHECK_ALIGNED) || !(address & (a.width - 1))))
        return KCHECK_PERFORM;
    struct kcheck_judgement j = kcheck_judge(m, &a);
    if (!j.kind)
        return KCHECK_PERFORM;
    return kcheck_judge_wrong(m, &a, &j);
}

#endif
