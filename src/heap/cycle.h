// SPDX-License-Identifier: MIT
// The time that the monitors take from one check of all blocks to the next, which is the time that an exploit
// must beat.
#ifndef MOAT_HEAP_CYCLE_H
#define MOAT_HEAP_CYCLE_H

#include <stdint.h>

void cycle_note(uint64_t ns);  // any monitor

// Returns a duration, in microseconds to within a fifth: for `percent` of the time, the cycle under way was
// not longer. Returns 0 if there was no cycle yet.
uint64_t cycle_quantile(unsigned percent);

void cycle_forget(void);  // in the child of a fork

#endif
