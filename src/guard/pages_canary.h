// SPDX-License-Identifier: MIT
// Bytes that nobody may write, around a buffer in pages of its own: they depend on a key of the process and on the
// memory they lie in.
#ifndef MOAT_GUARD_PAGES_CANARY_H
#define MOAT_GUARD_PAGES_CANARY_H

#include <stdbool.h>
#include <stdint.h>

enum { PAGES_CANARY_MOST = 512 };  // bytes on one side of a buffer

// A number that no kernel can guess.
uint64_t pages_canary_seed(void);

// side: 0 before the buffer, 1 behind it.
void pages_canary_make(uint64_t seed, unsigned side, uint8_t *bytes, uint32_t count);

// How many of them have changed: touched gets a bit for each byte, *first and *last their places.
uint32_t pages_canary_compare(uint64_t seed, unsigned side, const uint8_t *bytes, uint32_t count,
                              uint8_t *touched, uint32_t *first, uint32_t *last);

#endif
