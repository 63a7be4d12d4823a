// SPDX-License-Identifier: MIT
// Which registers share a slot. Internal to src/exec.
//
// Instructions write active lanes only, so each lane runs as if it were alone. Two registers may therefore
// share a slot if no thread ever needs both, as in any register allocator, wherever the other lanes of the
// warp are. A register holds its slot from its first to its last mention in the block order, extended by its
// live ranges (a linear scan).
#ifndef MOAT_EXEC_SLOTS_H
#define MOAT_EXEC_SLOTS_H

#include "flow/cfg.h"
#include "flow/live.h"
#include "flow/regs.h"

enum { SLOTS_PRED, SLOTS_16, SLOTS_32, SLOTS_64, SLOTS_128, SLOTS_CLASSES };

static inline unsigned slots_class(unsigned bits)
{
    return bits == 1    ? SLOTS_PRED
           : bits <= 16 ? SLOTS_16
           : bits <= 32 ? SLOTS_32
           : bits <= 64 ? SLOTS_64
                        : SLOTS_128;
}

// The elements of a vector register lie in its slot one after the other, each as large as a register of its
// own.
extern const uint32_t slots_size[SLOTS_CLASSES];  // bytes

enum { SLOTS_MOST = 64 << 20 };  // limit on the bytes of a frame's registers

// Fills slot[] (indexed like regs) with byte offsets from 64 on, *size with their end, a multiple of 64, and
// *words with the highest number of 32-bit registers in use at once. Returns 0, -ENOMEM, or -E2BIG if they
// take more than SLOTS_MOST.
int slots_assign(const struct cfg *c, const struct regs *r, const struct live *l, const uint32_t *order,
                 uint32_t norder, uint32_t *slot, uint32_t *size, uint32_t *words);

#endif
