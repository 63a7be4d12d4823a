// SPDX-License-Identifier: MIT
// Finds the word for "Did you mean ...?"
#ifndef MOAT_BASE_NEAR_H
#define MOAT_BASE_NEAR_H

#include "base/str.h"

// The caller offers candidates one after the other; best is the nearest one, NULL if none is near enough to
// be meant.
struct near {
    struct str word;
    const char *best;
    unsigned distance;
};

void near_init(struct near *n, struct str word);
void near_offer(struct near *n, const char *candidate);

#endif
