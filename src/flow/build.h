// SPDX-License-Identifier: MIT
// How every analysis of this folder takes memory: one arena for its result, one for scratch data.
#ifndef MOAT_FLOW_BUILD_H
#define MOAT_FLOW_BUILD_H

#include "base/arena.h"

// The default of an analysis's limit in bytes, used for 0. An analysis that would exceed its limit fails with
// -E2BIG; its work grows no faster than its memory, so a hostile function ends in bounded time too.
#define BUILD_LIMIT ((size_t)512 << 20)

// Fills a result whose memory comes from *keep. Neither arena returns NULL while it runs.
typedef int build_fn(void *result, const void *input, struct arena *keep, struct arena *scratch);

// Runs fn with a fresh *keep and a scratch arena that is freed afterwards. Returns 0, fn's negative code, or
// -ENOMEM; on failure *keep is empty.
int build_run(build_fn *fn, void *result, const void *input, struct arena *keep);

#endif
