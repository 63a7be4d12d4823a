// SPDX-License-Identifier: MIT
// Which modes of modes.def can be combined.
#ifndef MOAT_BASE_MODES_H
#define MOAT_BASE_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// modes: bits OPTION_MODE_*. True: two of them decide the same, or one is "off"; `why` has the sentence for
// it.
bool modes_conflict(uint64_t modes, char *why, size_t size);

// Whether modules are rewritten, so that the cache of them matters.
struct options;
bool modes_rewrite(const struct options *options);

#endif
