// SPDX-License-Identifier: MIT
// Which modes of modes.def can be combined, and which come with others.
#ifndef MOAT_BASE_MODES_H
#define MOAT_BASE_MODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns true if two of the modes decide the same thing, or if "off" or "auto" is combined with others;
// `why` then holds a sentence that says so. modes: bits OPTION_MODE_*.
bool modes_conflict(uint64_t modes, char *why, size_t size);

// Returns the modes that "auto", which is the default, stands for on this kind of device; other modes as they
// are.
uint64_t modes_for_device(uint64_t modes, bool cpu_device);

// Returns the modes with those that they are built on (MODES_PARTS), and with the layouts that they need
// (MODES_LAYOUTS), if they have none. Requires modes without a conflict.
uint64_t modes_with_layout(uint64_t modes);

// Returns whether the options make moat rewrite modules, so that the cache of rewritten modules matters.
struct options;
bool modes_rewrite(const struct options *options);

#endif
