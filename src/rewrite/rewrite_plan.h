// SPDX-License-Identifier: MIT
// What all modes together want done to an image: which passes rewrite it, and whether it counts as uncovered
// if that cannot be done.
#ifndef MOAT_REWRITE_REWRITE_PLAN_H
#define MOAT_REWRITE_REWRITE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

// Where an image is: `size` bytes at an address, or a file; and the device that it is for.
struct rewrite_origin {
    const void *image;
    size_t size;       // 0: unknown
    const char *path;  // NULL: the image is in memory
    unsigned arch;     // 90 for sm_90
};

enum { REWRITE_PLAN_PASSES = 8 };

// Initialised by {0}: nothing is wanted, and the image is loaded unchanged.
struct rewrite_plan {
    const char *passes[REWRITE_PLAN_PASSES];  // names of passes.def, none twice
    unsigned count;
    bool apart;   // checked variants may be in modules of their own, compiled when they are wanted
    bool closed;  // nothing may be linked with what is rewritten that is not rewritten too
    bool whole;   // a mode wants every image: one that is loaded unchanged counts as uncovered
};

// Adds a pass; the string must stay valid. Passes beyond REWRITE_PLAN_PASSES are dropped.
void rewrite_plan_add(struct rewrite_plan *plan, const char *pass, bool whole);
bool rewrite_plan_has(const struct rewrite_plan *plan, const char *pass);

// Writes the names, separated by commas; truncated if the buffer is too small.
void rewrite_plan_list(const struct rewrite_plan *plan, char *list, size_t size);

#endif
