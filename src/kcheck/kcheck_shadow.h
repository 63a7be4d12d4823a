// SPDX-License-Identifier: MIT
// The shadow of --mode=shadow, as kernels and the host see it: a byte for each granule of 2^shift bytes of
// addresses, at shadow + (address >> shift). Of a granule a program may access the first n bytes, and the
// byte is what is missing:
//
//   shift 3 and 7   2^shift - n
//   shift 8         256 - n, but 255 for n == 1, and for n == 0: a byte has no 257 values. A quick test takes
//                   both for n == 0, and KCHECK_ACCESS, which knows all blocks, decides
//
// Fresh memory of a device is full of zeros, or is made so: what was never described may be accessed.
//
// The test for an access of `width` bytes that does not leave its granule, as aligned ones do not:
//
//   wrong = (address & (2^shift - 1)) + byte > 2^shift - width
//
// where for shift 8 and width 1 an address & 255 of 0 is taken for 1. Then 255 is always wrong: the least sum
// is 256 for width 1, and 255 > 256 - width for others.
#ifndef MOAT_KCHECK_KCHECK_SHADOW_H
#define MOAT_KCHECK_KCHECK_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    // Addresses have 48 bits: those below 2^47 are memory, and what is just below 0 is in the upper half.
    KCHECK_SHADOW_BITS = 48,
    // Accessible bytes that are further apart than this may have a redzone between them.
    KCHECK_SHADOW_GAP = 256,
    KCHECK_SHADOW_POISON = 0xFF,  // nothing may be accessed, whatever the shift
};

// Returns the byte for a granule of which the first n bytes may be accessed.
static inline uint8_t kcheck_shadow_byte(unsigned shift, uint32_t n)
{
    uint32_t size = 1u << shift, missing = n > size ? 0 : size - n;
    return !missing ? 0 : n == 0 || missing > 254 ? KCHECK_SHADOW_POISON : (uint8_t)missing;
}

// Returns whether the quick test finds an access wrong.
static inline bool kcheck_shadow_is_wrong(unsigned shift, uint8_t byte, uint64_t address, uint32_t width)
{
    uint32_t size = 1u << shift, at = (uint32_t)address & (size - 1);
    if (shift == 8 && width == 1 && !at)
        at = 1;
    return at + byte > size - width;
}

static inline uint64_t kcheck_shadow_offset(unsigned shift, uint64_t address)
{
    return (address & (((uint64_t)1 << KCHECK_SHADOW_BITS) - 1)) >> shift;
}

#endif
