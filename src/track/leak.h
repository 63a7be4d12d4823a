// SPDX-License-Identifier: MIT
// What was allocated and never freed: one report for each place that allocated it.
#ifndef MOAT_TRACK_LEAK_H
#define MOAT_TRACK_LEAK_H

// Of a context that is about to go, or of the whole process for NULL. Does nothing unless --leak-check asks for it.
void leak_report(const void *context);

#endif
