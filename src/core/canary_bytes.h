// SPDX-License-Identifier: MIT
// The canary bytes around a buffer, which nobody may write, and how a changed one is recognised.
//
//     ... | canary 16 | size 8 | canary 8 | buffer, its own size | canary, from the byte behind it on ...
//          CANARY_HEAD bytes
//
// All canary bytes follow from a key that the process drew at random, the buffer's address and its size,
// through a keyed hash: whoever reads the canary of one buffer can restore that one, but learns nothing about
// any other. The size is encrypted by the same means. No canary byte is 0, because programs clear memory more
// often than anything else.
#ifndef MOAT_CORE_CANARY_BYTES_H
#define MOAT_CORE_CANARY_BYTES_H

#include <stdint.h>

enum {
    CANARY_HEAD = 32,        // bytes before a buffer
    CANARY_TAIL_LEAST = 16,  // least bytes behind it
    CANARY_TAIL_MOST = 544,  // most bytes behind it
};

// The numbers that all canary bytes of one buffer are computed from.
struct canary_seed {
    uint64_t start, step, cover;
};

// Fills words with random bits, for keys. Where the system has no random numbers yet, the words come from the
// clock, an address and the process id.
void canary_bytes_draw(uint64_t *words, unsigned count);
// Draws the key if there is none; it is read-only from then on. Returns 0 or -errno. One thread at a time.
int canary_bytes_init(void);

struct canary_seed canary_bytes_seed(uint64_t address, uint64_t size);
// Returns a seed whose canary is the same four bytes throughout, also in place of the size, so that one
// memset writes it.
struct canary_seed canary_bytes_flat_seed(uint64_t address, uint64_t size);

void canary_bytes_head(const struct canary_seed *seed, uint64_t size, uint8_t bytes[CANARY_HEAD]);
void canary_bytes_tail(const struct canary_seed *seed, uint8_t *bytes, uint32_t count);
// Writes the tail's sequence from its byte `at` on, for slots whose canary does not depend on where in the
// slot the buffer ends.
void canary_bytes_slot(const struct canary_seed *seed, uint32_t at, uint8_t *bytes, uint32_t count);
// Writes `count` canary bytes for the place before a buffer, without the size.
void canary_bytes_before(const struct canary_seed *seed, uint8_t *bytes, uint32_t count);
// Writes CANARY_HEAD bytes that differ from head and tail, for a page of their own.
void canary_bytes_far(const struct canary_seed *seed, uint8_t bytes[CANARY_HEAD]);

// Return the first byte that differs from what was written; count if none does.
uint32_t canary_bytes_tail_same(const struct canary_seed *seed, const uint8_t *bytes, uint32_t count);
uint32_t canary_bytes_slot_same(const struct canary_seed *seed, uint32_t at, const uint8_t *bytes,
                                uint32_t count);

// Compares count bytes: sets a bit in touched for each byte that differs, and *first and *last to the places
// of the first and last of them. Returns how many differ.
uint32_t canary_bytes_compare(const uint8_t *now, const uint8_t *made, uint32_t count, uint8_t *touched,
                              uint32_t *first, uint32_t *last);

// Returns the start of the run of changed bytes, without a gap, that ends at `last`: where a write before a
// buffer began.
uint32_t canary_bytes_run(const uint8_t *touched, uint32_t last);

#endif
