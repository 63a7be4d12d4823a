// SPDX-License-Identifier: MIT
// What modes want of an image, merged: which passes rewrite it, and for whom it matters if that cannot be
// done.
#ifndef MOAT_REWRITE_REWRITE_PLAN_H
#define MOAT_REWRITE_REWRITE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

// Where an image is: at an address, in so many bytes, or in a file; and the device that it is for.
struct rewrite_origin {
    const void *image;
    size_t size;       // 0: not known
    const char *path;  // NULL: it is in memory
    unsigned arch;     // 90 for sm_90
};

enum { REWRITE_PLAN_PASSES = 8 };

// Starts as {0}: nothing is wanted, and the image is loaded as it is.
struct rewrite_plan {
    const char *passes[REWRITE_PLAN_PASSES];  // names of passes.def, none twice
    unsigned count;
    bool whole;  // every image is wanted: one that is left as it is counts as uncovered
};

// Asks for a pass; the string must stay. What does not fit is not wanted.
void rewrite_plan_add(struct rewrite_plan *plan, const char *pass, bool whole);
bool rewrite_plan_has(const struct rewrite_plan *plan, const char *pass);

// The names with commas. What does not fit the buffer is cut.
void rewrite_plan_list(const struct rewrite_plan *plan, char *list, size_t size);

#endif
