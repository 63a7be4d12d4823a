// SPDX-License-Identifier: MIT
// A block of the program, and what we put around it:
//
//   base                    lead - 32 bytes before        block = base + lead        block + size
//   | (alignment, if asked) | struct block_head           | the program's bytes      | tail canary |
//
// The head's last word, next to the block, is a canary over the block's address and the other three words, so
// a change of any byte of the head is detected. The tail canary starts at the byte right behind the block and
// is derived from the head's canary; its first byte is never 0, so a string terminator written one byte too
// far is always detected. Behind the tail canary of a small block the rest of its room is filled too.
//
// A head is in one of two states, distinguished by its canary: the block is live, or it was freed. One store
// switches between them, so a head is valid at any moment at which its thread may be interrupted. The canary
// of a freed block depends only on the block's address and generation, because allocators keep list pointers
// in the first two words of what they free, and because a reused block gets its other words while it is still
// marked as freed. The low bits of a freed canary hold the site that freed the block. In a span (span.h) no
// allocator writes there, so the monitor also tests whether a freed block's size and place are possible.
//
// A block that is being resized in place has a third canary, which depends only on the address and takes no
// multiplication. Readers treat such a block as freed, unless they test for it with block_is_resized.
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
enum {
    BLOCK_WIDEST = 1032,   // blocks up to this size have wide tails, if their step is 0
    BLOCK_TAIL_MOST = 24,  // bytes in which each tail has room: a wide one has 8 to 23
};

struct block_head {
    uint64_t size;    // size, log2 of lead, kind, step; packed and encrypted
    uint64_t place;   // where its word is (producer.h)
    uint64_t ticket;  // generation, allocation site (site.h), turn
    uint64_t canary;
};

// Kinds with the same BLOCK_FAMILY bits are one family: a block that one call of the family allocated may be
// freed by any call of the family.
enum block_kind {
    BLOCK_MALLOC,
    BLOCK_CALLOC,
    BLOCK_REALLOC,
    BLOCK_ALIGNED,
    BLOCK_NEW = 4,
    BLOCK_NEW_ARRAY = 8,
    BLOCK_FAMILY = 12,
    BLOCK_UNWATCHED = 16  // flag: its word is in no window, ring or list
};
const char *block_kind_name(unsigned kind);

// The decrypted contents of a head.
struct block_info {  // small, so that it is passed in registers
    uint64_t size;
    uint16_t lead_log2, kind;
    uint16_t step;  // 0: the block has room for its size; else for block_room(step) bytes (heap_resize.c)
};

// Packed: 48 bits of size, 6 of lead_log2 ^ BLOCK_LEAD_LOG2, 5 of kind, 5 of step. The packed form of a block
// from plain malloc equals its size.
enum { BLOCK_LEAD_SHIFT = 48, BLOCK_KIND_SHIFT = 54, BLOCK_STEP_SHIFT = 59, BLOCK_LAST_STEP = 31 };
#define BLOCK_SIZE_MASK ((1ull << BLOCK_LEAD_SHIFT) - 1)
#define BLOCK_SMALL_KINDS \
    ((uint64_t)(15 - BLOCK_FAMILY) << BLOCK_KIND_SHIFT)  // the bits in which kinds of one family differ

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

// Rooms by step, two steps for each power of two: 48, 64, 96, 128 and so on; step 0 has room 0. Within
// its room a block is resized in place by changing only its size.
extern __attribute__((visibility("hidden"))) const uint64_t block_rooms[BLOCK_LAST_STEP + 1];

static inline uint64_t block_room(unsigned step)
{
    return block_rooms[step];
}

// Returns whether the block is of the family, has the usual lead, and is watched.
static inline bool block_is_plain(uint64_t packed, unsigned family)
{
    uint64_t bits =
        block_pack((struct block_info){0, BLOCK_LEAD_LOG2 ^ 63, BLOCK_UNWATCHED | BLOCK_FAMILY, 0});
    return (packed & bits) == block_pack((struct block_info){0, BLOCK_LEAD_LOG2, (uint16_t)family, 0});
}

// --- tickets ---
//   bits 44 to 63: generation, constant while we own the block; 22 to 43: allocation site; 0 to 21: turn, a
//   count of the thread's allocations, so that a reused block has another ticket

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

// --- words: how rings and block lists identify a block ---
//   bits 0 to 42: address / 16; 43 to 62: generation; 63: set in the notice that the block was freed
// A freed block and a later block at its address have different words, except with probability 2^-20; then it
// does not matter which of two equal words a notice removes.

#define BLOCK_NOTICE (1ull << 63)
#define BLOCK_HIGHEST (1ull << 47)  // no block lies above: programs get such addresses only on request

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

// Identifies a block among the remembered reports. Words do not: a reused block has the word of its
// predecessor.
static inline uint64_t block_name(const void *block, uint64_t ticket)
{
    return ticket ^ (uint64_t)(uintptr_t)block << 17;
}

// --- canaries ---

static inline uint64_t block_size_mask(uint64_t address)
{
    return heap_key.word[0] ^ address;
}

// The part of the canary that stays the same while a block is resized in place.
static inline uint64_t block_constant(uint64_t address, uint64_t place)
{
    // Rotated, so that words that are overwritten with the same bytes do not cancel each other.
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

// The canary of a block while it is being resized in place; the low bits are the site.
static inline uint64_t block_resized_canary(uint64_t address)
{
    return address ^ heap_key.word[5];
}

// --- tails ---
//   size          size + 8                        a multiple of 16
//   | tail canary | slack: HEAP_KEY_FILLER's byte |
// The slack, of 0 to 15 bytes, is what is left of the room of the block's bin. Only a wide tail has it.

// `live`: the canary of the live head, which depends on address and size.
static inline uint64_t block_tail_canary(uint64_t live)
{
    return canary_shape((live << 24 | live >> 40) ^ heap_key.word[6]);
}

static inline bool block_tail_is_wide(uint64_t size, unsigned step)
{
    return !step && size <= BLOCK_WIDEST;
}

static inline uint64_t block_slack(uint64_t size)
{
    return (BLOCK_TAIL - size) % BLOCK_ALIGN;
}

static inline uint64_t block_tail_bytes(uint64_t size, unsigned step)
{
    return block_tail_is_wide(size, step) ? BLOCK_TAIL + block_slack(size) : BLOCK_TAIL;
}

// Fills the slack of a block whose bytes are to be kept.
static inline void block_fill_slack(char *block, uint64_t size)
{
    memset(block + size + BLOCK_TAIL, (int)(heap_key.word[HEAP_KEY_FILLER] & 255), block_slack(size));
}

static inline struct block_head *block_head_of(void *block)
{
    return (struct block_head *)block - 1;
}

static inline void block_set_canary(struct block_head *h, uint64_t canary)
{
    // Release: with the kernel's copy in safe_read.c. A reader that sees the canary sees the head and tail
    // that it covers.
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

// Makes the block live: writes a valid head and the tail. The canary is stored last; until then the head
// stays what it was, or freed. is_new: the block's bytes need not be kept.
static inline __attribute__((always_inline)) void
block_make_live_as(void *block, struct block_info info, uint64_t place, uint64_t ticket, bool is_new)
{
    uint64_t address = (uint64_t)(uintptr_t)block;
    struct block_head *h = block_head_of(block),
                      head = {block_pack(info) ^ block_size_mask(address), place, ticket, 0};
    uint64_t canary = block_live_canary(address, &head), tail = block_tail_canary(canary);
    if (block_tail_is_wide(info.size, info.step)) {
        if (is_new)
            memcpy((char *)block + info.size + block_slack(info.size) - BLOCK_TAIL,
                   &heap_key.word[HEAP_KEY_FILLER], 2 * sizeof(uint64_t));
        else
            block_fill_slack(block, info.size);
    }
    // Separate atomic stores: compilers would merge two into one wide store, and a soon-following read of a
    // single word would stall on it.
    atomic_store_explicit((_Atomic uint64_t *)&h->size, head.size, memory_order_relaxed);
    // Release, both: with the kernel's copy in safe_read.c. A reader that has seen one of these does not find
    // the size of a block that was never live when it reads again.
    atomic_store_explicit((_Atomic uint64_t *)&h->place, place, memory_order_release);
    atomic_store_explicit((_Atomic uint64_t *)&h->ticket, ticket, memory_order_release);
    memcpy((char *)block + info.size, &tail, sizeof tail);
    block_set_canary(h, canary);
}

static inline void block_make_live(void *block, struct block_info info, uint64_t place, uint64_t ticket)
{
    block_make_live_as(block, info, place, ticket, false);
}

// The packed form of a fresh block, which was never allocated: it has a step that no block of a span has.
#define BLOCK_FRESH ((uint64_t)BLOCK_LAST_STEP << BLOCK_STEP_SHIFT)

// The ticket of a fresh block: its turn is no count, but says which place belongs to it.
static inline uint64_t block_fresh_ticket(uint64_t generation, uint64_t place)
{
    return block_ticket(generation, 0, place >> 48 ^ heap_key.word[5]);
}

// Writes the head of a fresh block as that of a freed one.
static inline void block_make_freed(void *block, uint64_t place, uint64_t word)
{
    uint64_t address = (uint64_t)(uintptr_t)block;
    struct block_head *h = block_head_of(block);
    h->size = BLOCK_FRESH ^ block_size_mask(address);
    h->place = place;
    h->ticket = block_fresh_ticket(block_generation_of_word(word), place);
    block_set_canary(h, block_freed_canary(address, h->ticket));
}

static inline bool block_is_live(const void *block, const struct block_head *h)
{
    return h->canary == block_live_canary((uint64_t)(uintptr_t)block, h);
}

// Returns whether the block is being resized at this moment. The size in its head is then the old or the new
// one.
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

// Returns whether a freed block's head is that of a fresh block, but for its size.
static inline bool block_is_fresh(const void *block, const struct block_head *h)
{
    return h->ticket == block_fresh_ticket(block_generation(h->ticket), h->place) &&
           h->canary == block_freed_canary((uint64_t)(uintptr_t)block, h->ticket);
}

static inline uint32_t block_freed_at(const void *block, const struct block_head *h)
{
    return (uint32_t)block_freed_difference(block, h) & BLOCK_SITE_MASK;
}

static inline uint64_t block_word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

// Returns the tail's first eight bytes.
static inline uint64_t block_tail(const void *block, uint64_t size)
{
    return block_word_at((const char *)block + size);
}

// Returns whether the slack behind a tail canary is as it was filled. Reads words, of which at most one lies
// across two stores, because such a read waits for both in a block that was just allocated.
static inline __attribute__((always_inline)) bool block_slack_intact(const char *tail, uint64_t size)
{
    uint64_t fill = heap_key.word[HEAP_KEY_FILLER], slack = block_slack(size);
    uint64_t wrong = block_word_at(tail + slack) ^ fill;
    // Two shifts: no slack leaves no bits.
    return slack & 8 ? (wrong | (block_word_at(tail + BLOCK_TAIL) ^ fill)) == 0
                     : wrong >> 1 >> (~(8 * slack) & 63) == 0;
}

// Returns whether a tail is intact, behind its block or in a copy. `live`: the head's canary while the block
// is or was live.
static inline __attribute__((always_inline)) bool block_tail_is(const char *tail, uint64_t size,
                                                                unsigned step, uint64_t live)
{
    return block_word_at(tail) == block_tail_canary(live) &&
           (!block_tail_is_wide(size, step) || block_slack_intact(tail, size));
}

static inline __attribute__((always_inline)) bool block_tail_intact(const void *block, uint64_t size,
                                                                    unsigned step, uint64_t live)
{
    return block_tail_is((const char *)block + size, size, step, live);
}

// A checksum over a freed block's head and tail that changes if any of them does. Cheaper than computing
// their canaries, for a caller that has recorded the sum before.
static inline uint64_t block_sum(const struct block_head *h, uint64_t tail)
{
    return (((h->size ^ h->place) + h->ticket) ^ h->canary) - tail;
}

static inline void block_mark_freed(void *block, uint32_t freed_at)
{
    struct block_head *h = block_head_of(block);
    block_set_canary(h, block_freed_canary((uint64_t)(uintptr_t)block, h->ticket) ^ freed_at);
    // Stores into the block from now on become visible after the mark.
    atomic_thread_fence(memory_order_release);  // with the kernel's copy in safe_read.c
}

// Resizes a live block in place and gives it a new ticket. `was` is its present head; `difference` is the old
// packed value XOR the new one; `wide` says which tail it gets. All values are computed before the first
// store, because compilers would read heap_key again behind it.
static inline __attribute__((always_inline)) void block_change(void *block, struct block_head was,
                                                               uint64_t constant, uint64_t difference,
                                                               uint64_t size, bool wide, uint32_t site,
                                                               uint64_t turn)
{
    uint64_t ticket = block_ticket(block_generation(was.ticket), site, turn);
    uint64_t canary = block_canary(constant, was.size ^ difference, ticket), tail = block_tail_canary(canary);
    struct block_head *h = block_head_of(block);
    block_set_canary(h, block_resized_canary((uint64_t)(uintptr_t)block) ^ site);
    atomic_thread_fence(memory_order_release);  // as in block_mark_freed
    atomic_store_explicit((_Atomic uint64_t *)&h->size, was.size ^ difference, memory_order_relaxed);
    atomic_store_explicit((_Atomic uint64_t *)&h->ticket, ticket, memory_order_relaxed);
    if (wide)
        block_fill_slack(block, size);
    memcpy((char *)block + size, &tail, sizeof tail);
    block_set_canary(h, canary);
}

#endif
