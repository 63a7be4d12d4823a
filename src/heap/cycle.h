// SPDX-License-Identifier: MIT
// How long the monitors take from one look at all blocks to the next: what an exploit must be quicker than.
#ifndef MOAT_HEAP_CYCLE_H
#define MOAT_HEAP_CYCLE_H

#include <stdint.h>

void cycle_note(uint64_t ns);  // any monitor

// For so much of the time the cycle that was under way was not longer; in microseconds, to within a fifth. 0: there was none.
uint64_t cycle_quantile(unsigned percent);

void cycle_forget(void);  // in the child of a fork

#endif
