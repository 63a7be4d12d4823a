// SPDX-License-Identifier: MIT
// How every analysis of this folder takes memory: one arena for what it keeps, one for what it needs on the
// way.
#ifndef MOAT_FLOW_BUILD_H
#define MOAT_FLOW_BUILD_H

#include "base/arena.h"

// Where an analysis takes a limit in bytes, 0 means this. What would pass its limit ends with -E2BIG; the
// work grows no faster than the memory, so a hostile function ends in bounded time too.
#define BUILD_LIMIT ((size_t)512 << 20)

// Fills a result whose memory comes from *keep. Neither arena returns NULL while it runs.
typedef int build_fn(void *result, const void *input, struct arena *keep, struct arena *scratch);

// Runs fn with a fresh *keep and a scratch arena that is gone afterwards. 0, fn's negative code, or -ENOMEM;
// on failure *keep is empty.
int build_run(build_fn *fn, void *result, const void *input, struct arena *keep);

#endif
