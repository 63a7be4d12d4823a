// SPDX-License-Identifier: MIT
// Blocks that live at the end though nothing points to them.
#ifndef MOAT_HEAP_LEAKS_H
#define MOAT_HEAP_LEAKS_H

// After monitor_all_now. Reports one block for each calling context that leaks, with the number of all of them.
void heap_leaks_report(void);

#endif
