// SPDX-License-Identifier: MIT
// Reports allocations that were never freed: one report for each place that allocated them.
#ifndef MOAT_TRACK_LEAK_H
#define MOAT_TRACK_LEAK_H

// Reports the leaks of a context that is about to end, or of the whole process for NULL. Does nothing without
// --leak-check.
void leak_report(const void *context);

#endif
