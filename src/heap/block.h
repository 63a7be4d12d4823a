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
// on its third word only, because allocators keep lists in the first two words of what they free; its lower bits say who
// freed it.
#ifndef MOAT_HEAP_BLOCK_H
#define MOAT_HEAP_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "heap/heap_key.h"

enum { BLOCK_HEAD = 32, BLOCK_TAIL = 8, BLOCK_ALIGN = 16 };

struct block_head {
    uint64_t size;    // size, log2 of lead, kind; encrypted
    uint64_t place;   // where its word was put (writer.h)
    uint64_t ticket;  // generation, who allocated it (site.h)
    uint64_t canary;
};

enum block_kind { BLOCK_MALLOC, BLOCK_CALLOC, BLOCK_REALLOC, BLOCK_ALIGNED, BLOCK_NEW, BLOCK_NEW_ARRAY };
const char *block_kind_name(unsigned kind);

// What a head says, decrypted.
struct block_info {
    uint64_t size;
    unsigned lead_log2, kind;
};

// --- tickets ---

enum { BLOCK_SITE_BITS = 22, BLOCK_GENERATION_BITS = 20 };
#define BLOCK_SITE_MASK ((1u << BLOCK_SITE_BITS) - 1)

static inline uint64_t block_ticket(uint64_t generation, uint32_t made_at)
{
    return generation << (64 - BLOCK_GENERATION_BITS) | (uint64_t)made_at << BLOCK_SITE_BITS;
}

static inline uint32_t block_made_at(uint64_t ticket)
{
    return ticket >> BLOCK_SITE_BITS & BLOCK_SITE_MASK;
}

// --- words: what the rings and the warehouse know of a block ---
//   bits 0 to 42: address / 16; 43 to 62: generation; 63: set in the notice that it was freed
// A block that is freed and a later one at its address have different words, but for a chance of 2^-20; then it does
// not matter which of two equal words a notice removes.

#define BLOCK_NOTICE (1ull << 63)
#define BLOCK_HIGHEST (1ull << 47)  // no block lies above: programs get such addresses only if they ask

static inline uint64_t block_word(const void *block, uint64_t ticket)
{
    return (uint64_t)(uintptr_t)block >> 4 | (ticket >> (64 - BLOCK_GENERATION_BITS)) << 43;
}

static inline char *block_of_word(uint64_t word)
{
    return (char *)(uintptr_t)((word & ((1ull << 43) - 1)) << 4);
}

// --- canaries ---

static inline uint64_t block_size_mask(uint64_t address)
{
    return heap_key.word[0] ^ address;
}

// The part that outlives what allocators do to freed memory.
static inline uint64_t block_ticket_mac(uint64_t address, uint64_t ticket)
{
    return heap_key_mix(ticket ^ heap_key.word[3], address ^ heap_key.word[4]);
}

static inline uint64_t block_live_canary(uint64_t address, const struct block_head *h)
{
    const uint64_t *k = heap_key.word;
    return heap_key_mix(h->size ^ k[1], h->place ^ k[2]) ^ block_ticket_mac(address, h->ticket);
}

static inline uint64_t block_freed_canary(uint64_t address, uint64_t ticket)
{
    return block_ticket_mac(address, ticket) ^ heap_key.word[5];
}

// `live`: the head's canary while it lives, which depends on address and size.
static inline uint64_t block_tail_canary(uint64_t live)
{
    return ((live << 23 | live >> 41) ^ heap_key.word[6]) | 1;
}

static inline struct block_head *block_head_of(void *block)
{
    return (struct block_head *)block - 1;
}

static inline struct block_info block_info_of(const void *block, const struct block_head *h)
{
    uint64_t plain = h->size ^ block_size_mask((uint64_t)(uintptr_t)block);
    return (struct block_info){plain & ((1ull << 48) - 1), plain >> 48 & 63, plain >> 54 & 15};
}

// A valid head for the block, and its tail.
static inline void block_dress(void *block, struct block_info info, uint64_t place, uint64_t ticket)
{
    uint64_t address = (uint64_t)(uintptr_t)block, tail;
    struct block_head *h = block_head_of(block);
    h->size =
        (info.size | (uint64_t)info.lead_log2 << 48 | (uint64_t)info.kind << 54) ^ block_size_mask(address);
    h->place = place;
    h->ticket = ticket;
    h->canary = block_live_canary(address, h);
    tail = block_tail_canary(h->canary);
    memcpy((char *)block + info.size, &tail, sizeof tail);
}

static inline bool block_is_live(const void *block, const struct block_head *h)
{
    return h->canary == block_live_canary((uint64_t)(uintptr_t)block, h);
}

static inline uint64_t block_freed_difference(const void *block, const struct block_head *h)
{
    return h->canary ^ block_freed_canary((uint64_t)(uintptr_t)block, h->ticket);
}

static inline bool block_is_freed(const void *block, const struct block_head *h)
{
    return block_freed_difference(block, h) <= BLOCK_SITE_MASK;
}

static inline uint32_t block_freed_at(const void *block, const struct block_head *h)
{
    return (uint32_t)block_freed_difference(block, h) & BLOCK_SITE_MASK;
}

// `live`: what the head's canary is, or was.
static inline bool block_tail_intact(const void *block, uint64_t size, uint64_t live)
{
    uint64_t tail;
    memcpy(&tail, (const char *)block + size, sizeof tail);
    return tail == block_tail_canary(live);
}

static inline void block_mark_freed(void *block, uint32_t freed_at)
{
    struct block_head *h = block_head_of(block);
    // Volatile: one store, and before the notice that the block was freed.
    *(volatile uint64_t *)&h->canary = block_freed_canary((uint64_t)(uintptr_t)block, h->ticket) ^ freed_at;
}

#endif
