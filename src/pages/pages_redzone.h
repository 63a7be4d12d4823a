// SPDX-License-Identifier: MIT
// How many bytes behind a buffer of --mode=pages are nobody's: what --mode=shadow wants by its options, or else
// the least that modes which look at each access need. For small buffers it is memory, for large ones it is
// addresses. It is the redzone in front of the next buffer too.
#ifndef MOAT_PAGES_PAGES_REDZONE_H
#define MOAT_PAGES_PAGES_REDZONE_H

#include <stdint.h>

uint64_t pages_redzone(uint64_t size);

#endif
