// SPDX-License-Identifier: MIT
// A block of the program, and what we put around it:
//
//   base                    lead - 32 bytes before        block = base + lead        block + size
//   | (alignment, if asked) | struct block_head           | the program's bytes      | tail canary |
//
// The head's last word, the one next to the block, is a canary over the block's address and the other three words:
// whatever changes any byte of the head is seen. The tail canary starts at the very byte behind the block and is
// made from the head's; its first byte is never 0, so that a string's terminator one too far is always seen.
//
// A head is in one of two states, told apart by its canary: the block lives, or it was freed. One store leads from one to
// the other, so that a head is valid at any moment at which its thread may be interrupted. The canary of a freed one depends
// on the block's address and generation only, because allocators keep lists in the first two words of what they free, and
// because a block that is used anew gets the other words while it is still marked as freed; its lower bits say who freed it.
// A block that gets another size where it is has in between a mark of its own, which depends on the address only and takes no
// multiplication; whoever reads it takes the block for freed, unless it asks for that mark.
#ifndef MOAT_HEAP_BLOCK_H
#define MOAT_HEAP_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/canary_shape.h"
#include "base/checked.h"
#include "heap/heap_key.h"

enum { BLOCK_HEAD = 32, BLOCK_LEAD_LOG2 = 5, BLOCK_TAIL = 8, BLOCK_ALIGN = 16 };

struct block_head {
    uint64_t size;    // size, log2 of lead, kind; encrypted
    uint64_t place;   // where its word was put (producer.h)
    uint64_t ticket;  // generation, who allocated it (site.h), turn
    uint64_t canary;
};

// Kinds whose upper bits are the same are of one family: what one of them allocated any call of the family may free.
enum block_kind {
    BLOCK_MALLOC,
    BLOCK_CALLOC,
    BLOCK_REALLOC,
    BLOCK_ALIGNED,
    BLOCK_NEW = 4,
    BLOCK_NEW_ARRAY = 8,
    BLOCK_FAMILY = 12,    // those bits
    BLOCK_UNWATCHED = 16  // flag: nobody has its word
};
const char *block_kind_name(unsigned kind);

// What a head says, decrypted.
struct block_info {  // small: it is passed in registers
    uint64_t size;
    uint16_t lead_log2, kind;
    uint16_t step;  // 0: it has room for its size; else for block_room(step) bytes (heap_resize.c)
};

// Packed: 48 bits of size, 6 of lead_log2, 5 of kind, 5 of step. Of a plain block that malloc made it is the size.
enum { BLOCK_LEAD_SHIFT = 48, BLOCK_KIND_SHIFT = 54, BLOCK_STEP_SHIFT = 59, BLOCK_LAST_STEP = 31 };
#define BLOCK_SIZE_MASK ((1ull << BLOCK_LEAD_SHIFT) - 1)
#define BLOCK_SMALL_KINDS \
    ((uint64_t)(15 - BLOCK_FAMILY) << BLOCK_KIND_SHIFT)  // what kinds of one family differ in

static inline uint64_t block_pack(struct block_info info)
{
    checked_assert(info.size <= BLOCK_SIZE_MASK && info.lead_log2 < 64 && info.kind < 32 &&
                   info.step <= BLOCK_LAST_STEP);
    return info.size | (uint64_t)(info.lead_log2 ^ BLOCK_LEAD_LOG2) << BLOCK_LEAD_SHIFT |
           (uint64_t)info.kind << BLOCK_KIND_SHIFT | (uint64_t)info.step << BLOCK_STEP_SHIFT;
}

static inline struct block_info block_unpack(uint64_t packed)
{
    return (struct block_info){packed & BLOCK_SIZE_MASK, (packed >> BLOCK_LEAD_SHIFT & 63) ^ BLOCK_LEAD_LOG2,
                               packed >> BLOCK_KIND_SHIFT & 31, (uint16_t)(packed >> BLOCK_STEP_SHIFT)};
}

// Two steps for each power of two: 48, 64, 96, 128 and so on; 0 of step 0. Of a block that stays where it is, only the size changes.
extern __attribute__((visibility("hidden"))) const uint64_t block_rooms[BLOCK_LAST_STEP + 1];

static inline uint64_t block_room(unsigned step)
{
    return block_rooms[step];
}

// Whether it is of that family, has the usual place in what came from below, and somebody has its word.
static inline bool block_is_plain(uint64_t packed, unsigned family)
{
    uint64_t bits =
        block_pack((struct block_info){0, BLOCK_LEAD_LOG2 ^ 63, BLOCK_UNWATCHED | BLOCK_FAMILY, 0});
    return (packed & bits) == block_pack((struct block_info){0, BLOCK_LEAD_LOG2, (uint16_t)family, 0});
}

// --- tickets ---
//   bits 44 to 63: generation, the same as long as the block is ours; 22 to 43: who allocated it; 0 to 21: turn, which counts
//   the thread's allocations, so that a block that is used anew has another ticket

enum { BLOCK_SITE_BITS = 22, BLOCK_GENERATION_BITS = 20, BLOCK_TURN_BITS = 22 };
#define BLOCK_SITE_MASK ((1u << BLOCK_SITE_BITS) - 1)
#define BLOCK_TURN_MASK ((1u << BLOCK_TURN_BITS) - 1)

static inline uint64_t block_ticket(uint64_t generation, uint32_t made_at, uint64_t turn)
{
    checked_assert(made_at <= BLOCK_SITE_MASK);
    return generation << (64 - BLOCK_GENERATION_BITS) | (uint64_t)made_at << BLOCK_TURN_BITS |
           (turn & BLOCK_TURN_MASK);
}

static inline uint64_t block_generation(uint64_t ticket)
{
    return ticket >> (64 - BLOCK_GENERATION_BITS);
}

static inline uint32_t block_made_at(uint64_t ticket)
{
    return ticket >> BLOCK_TURN_BITS & BLOCK_SITE_MASK;
}

// --- words: what the rings and the warehouse know of a block ---
//   bits 0 to 42: address / 16; 43 to 62: generation; 63: set in the notice that it was freed
// A block that is freed and a later one at its address have different words, but for a chance of 2^-20; then it does
// not matter which of two equal words a notice removes.

#define BLOCK_NOTICE (1ull << 63)
#define BLOCK_HIGHEST (1ull << 47)  // no block lies above: programs get such addresses only if they ask

static inline uint64_t block_word(const void *block, uint64_t ticket)
{
    checked_assert((uintptr_t)block % BLOCK_ALIGN == 0 && (uintptr_t)block < BLOCK_HIGHEST);
    return (uint64_t)(uintptr_t)block >> 4 | block_generation(ticket) << 43;
}

static inline char *block_of_word(uint64_t word)
{
    return (char *)(uintptr_t)(word << 21 >> 17);
}

static inline uint64_t block_generation_of_word(uint64_t word)
{
    return word >> 43;
}

// What no two blocks share, while reports are remembered: one that is used anew has the word of the one before.
static inline uint64_t block_name(const void *block, uint64_t ticket)
{
    return ticket ^ (uint64_t)(uintptr_t)block << 17;
}

// --- canaries ---

static inline uint64_t block_size_mask(uint64_t address)
{
    return heap_key.word[0] ^ address;
}

// What does not change in the canary of a block that is resized where it is.
static inline uint64_t block_constant(uint64_t address, uint64_t place)
{
    // Rotated, so that words which are overwritten with the same bytes do not cancel each other.
    return (place << 21 | place >> 43) ^ address ^ heap_key.word[2];
}

static inline uint64_t block_canary(uint64_t constant, uint64_t size, uint64_t ticket)
{
    return canary_shape(heap_key_mix(size ^ heap_key.word[1], constant ^ ticket));
}

static inline uint64_t block_live_canary(uint64_t address, const struct block_head *h)
{
    return block_canary(block_constant(address, h->place), h->size, h->ticket);
}

static inline uint64_t block_freed_canary(uint64_t address, uint64_t ticket)
{
    return heap_key_mix(address ^ heap_key.word[3], block_generation(ticket) ^ heap_key.word[4]);
}

// While a block gets another size where it is.
static inline uint64_t block_resized_canary(uint64_t address)
{
    return address ^ heap_key.word[5];
}

// `live`: the head's canary while it lives, which depends on address and size.
static inline uint64_t block_tail_canary(uint64_t live)
{
    return canary_shape((live << 24 | live >> 40) ^ heap_key.word[6]);
}

static inline struct block_head *block_head_of(void *block)
{
    return (struct block_head *)block - 1;
}

static inline void block_set_canary(struct block_head *h, uint64_t canary)
{
    // Release: with the kernel's copy in safe_read.c. Whoever sees the canary sees the head and the tail that it is for.
    atomic_store_explicit((_Atomic uint64_t *)&h->canary, canary, memory_order_release);
}

static inline uint64_t block_packed(const void *block, const struct block_head *h)
{
    return h->size ^ block_size_mask((uint64_t)(uintptr_t)block);
}

static inline struct block_info block_info_of(const void *block, const struct block_head *h)
{
    return block_unpack(block_packed(block, h));
}

// A valid head for the block, and its tail. The canary last: until then the head is whatever it was before, or freed.
// `packed`: with this size.
static inline __attribute__((always_inline)) void
block_dress_packed(void *block, uint64_t packed, uint64_t size, uint64_t place, uint64_t ticket)
{
    uint64_t address = (uint64_t)(uintptr_t)block;
    struct block_head *h = block_head_of(block), head = {packed ^ block_size_mask(address), place, ticket, 0};
    uint64_t canary = block_live_canary(address, &head), tail = block_tail_canary(canary);
    // One by one: compilers would make one wide store of two, and whoever reads a word soon after would wait for it.
    atomic_store_explicit((_Atomic uint64_t *)&h->size, head.size, memory_order_relaxed);
    atomic_store_explicit((_Atomic uint64_t *)&h->place, place, memory_order_relaxed);
    atomic_store_explicit((_Atomic uint64_t *)&h->ticket, ticket, memory_order_relaxed);
    memcpy((char *)block + size, &tail, sizeof tail);
    block_set_canary(h, canary);
}

static inline __attribute__((always_inline)) void block_dress(void *block, struct block_info info,
                                                              uint64_t place, uint64_t ticket)
{
    block_dress_packed(block, block_pack(info), info.size, place, ticket);
}

// The head of a block that nobody has had yet.
static inline void block_dress_freed(void *block, uint64_t place, uint64_t word)
{
    uint64_t address = (uint64_t)(uintptr_t)block, generation = block_generation_of_word(word);
    struct block_head *h = block_head_of(block);
    h->size = block_pack((struct block_info){0, BLOCK_LEAD_LOG2, BLOCK_MALLOC, 0}) ^ block_size_mask(address);
    h->place = place;
    h->ticket = block_ticket(generation, 0, 0);
    block_set_canary(h, block_freed_canary(address, h->ticket));
}

static inline bool block_is_live(const void *block, const struct block_head *h)
{
    return h->canary == block_live_canary((uint64_t)(uintptr_t)block, h);
}

// Whether it gets another size at this moment. What the head says of the size is the one or the other.
static inline bool block_is_resized(const void *block, const struct block_head *h)
{
    return (h->canary ^ block_resized_canary((uint64_t)(uintptr_t)block)) <= BLOCK_SITE_MASK;
}

static inline uint64_t block_freed_difference(const void *block, const struct block_head *h)
{
    uint64_t address = (uint64_t)(uintptr_t)block, resized = h->canary ^ block_resized_canary(address);
    return resized <= BLOCK_SITE_MASK ? resized : h->canary ^ block_freed_canary(address, h->ticket);
}

static inline bool block_is_freed(const void *block, const struct block_head *h)
{
    return block_freed_difference(block, h) <= BLOCK_SITE_MASK;
}

static inline uint32_t block_freed_at(const void *block, const struct block_head *h)
{
    return (uint32_t)block_freed_difference(block, h) & BLOCK_SITE_MASK;
}

static inline uint64_t block_tail(const void *block, uint64_t size)
{
    uint64_t tail;
    memcpy(&tail, (const char *)block + size, sizeof tail);
    return tail;
}

// `live`: what the head's canary is, or was.
static inline bool block_tail_intact(const void *block, uint64_t size, uint64_t live)
{
    return block_tail(block, size) == block_tail_canary(live);
}

// A freed block's head and tail in one word, which changes if any of them does: cheaper than their canaries, for who has seen
// them before.
static inline uint64_t block_sum(const struct block_head *h, uint64_t tail)
{
    return (((h->size ^ h->place) + h->ticket) ^ h->canary) - tail;
}

static inline void block_mark_freed(void *block, uint32_t freed_at)
{
    struct block_head *h = block_head_of(block);
    block_set_canary(h, block_freed_canary((uint64_t)(uintptr_t)block, h->ticket) ^ freed_at);
    // Whatever is stored into the block from now on is seen after this.
    atomic_thread_fence(memory_order_release);  // with the kernel's copy in safe_read.c
}

// A block that lives and had this head gets another size where it is, and another ticket. `difference`: of what is packed, to what was.
// All is known before the first store: behind it, compilers would read heap_key again.
static inline __attribute__((always_inline)) void block_change(void *block, struct block_head was,
                                                               uint64_t constant, uint64_t difference,
                                                               uint64_t size, uint32_t site, uint64_t turn)
{
    uint64_t ticket = block_ticket(block_generation(was.ticket), site, turn);
    uint64_t canary = block_canary(constant, was.size ^ difference, ticket), tail = block_tail_canary(canary);
    struct block_head *h = block_head_of(block);
    block_set_canary(h, block_resized_canary((uint64_t)(uintptr_t)block) ^ site);
    atomic_thread_fence(memory_order_release);  // as in block_mark_freed
    atomic_store_explicit((_Atomic uint64_t *)&h->size, was.size ^ difference, memory_order_relaxed);
    atomic_store_explicit((_Atomic uint64_t *)&h->ticket, ticket, memory_order_relaxed);
    memcpy((char *)block + size, &tail, sizeof tail);
    block_set_canary(h, canary);
}

#endif
