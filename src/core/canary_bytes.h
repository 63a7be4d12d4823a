// SPDX-License-Identifier: MIT
// The bytes around a buffer that nobody may write, and how they are told from others.
//
//     ... | canary 16 | size 8 | canary 8 | buffer, its own size | canary, from the byte behind it on ...
//          CANARY_HEAD bytes
//
// All of it depends on a key that the process drew at random, on the buffer's address and on its size, through a keyed
// hash: whoever reads the canary of one buffer can put that one back, but knows nothing of any other's. The size is
// encrypted by the same means. No canary byte is 0, for programs clear memory more often than anything else.
#ifndef MOAT_CORE_CANARY_BYTES_H
#define MOAT_CORE_CANARY_BYTES_H

#include <stdint.h>

enum {
    CANARY_HEAD = 32,        // bytes before a buffer
    CANARY_TAIL_LEAST = 16,  // and behind it, at least
    CANARY_TAIL_MOST = 544,  // at most
};

// What all canary bytes of one buffer follow from.
struct canary_seed {
    uint64_t start, step, cover;
};

// Random words, for keys. Where the system has none yet: hard to guess from outside, which is the best there is then.
void canary_bytes_draw(uint64_t *words, unsigned count);
// Draws the key, which cannot be written from then on, if there is none. 0, or -errno. One thread at a time.
int canary_bytes_init(void);

struct canary_seed canary_bytes_seed(uint64_t address, uint64_t size);
// The same four bytes all over, in place of the size too, so that one memset writes them.
struct canary_seed canary_bytes_flat_seed(uint64_t address, uint64_t size);

void canary_bytes_head(const struct canary_seed *seed, uint64_t size, uint8_t bytes[CANARY_HEAD]);
void canary_bytes_tail(const struct canary_seed *seed, uint8_t *bytes, uint32_t count);
// The same sequence from byte `at` on: of a place whose canary does not depend on where in it the buffer ends.
void canary_bytes_slot(const struct canary_seed *seed, uint32_t at, uint8_t *bytes, uint32_t count);
// As many as one likes before a buffer, without the size.
void canary_bytes_before(const struct canary_seed *seed, uint8_t *bytes, uint32_t count);
// Others again, CANARY_HEAD of them, for a page of their own.
void canary_bytes_far(const struct canary_seed *seed, uint8_t bytes[CANARY_HEAD]);

// The first byte that is not as it was made; count if all are.
uint32_t canary_bytes_tail_same(const struct canary_seed *seed, const uint8_t *bytes, uint32_t count);
uint32_t canary_bytes_slot_same(const struct canary_seed *seed, uint32_t at, const uint8_t *bytes,
                                uint32_t count);

// Which of count bytes differ: touched gets a bit for each, *first and *last their places. How many do.
uint32_t canary_bytes_compare(const uint8_t *now, const uint8_t *made, uint32_t count, uint8_t *touched,
                              uint32_t *first, uint32_t *last);

// Of the bytes that changed before a buffer, the first of those that end at `last`, without a gap: where the write began.
uint32_t canary_bytes_run(const uint8_t *touched, uint32_t last);

#endif
