// SPDX-License-Identifier: MIT
// Leaks: blocks that are live at exit though nothing points to them.
#ifndef MOAT_HEAP_LEAKS_H
#define MOAT_HEAP_LEAKS_H

// Reports one block for each site that leaks, with the number of all its leaked blocks. To be called after
// monitor_all_now.
void heap_leaks_report(void);

#endif
