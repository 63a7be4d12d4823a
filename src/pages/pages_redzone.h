// SPDX-License-Identifier: MIT
// How many bytes behind a buffer of --mode=pages are nobody's: what --mode=shadow wants by its options, or
// else the least that modes which look at each access need. For small buffers it is memory, which is the
// redzone of the next buffer too, one of about the same size; for large ones it is addresses.
#ifndef MOAT_PAGES_PAGES_REDZONE_H
#define MOAT_PAGES_PAGES_REDZONE_H

#include <stdint.h>

uint64_t pages_redzone(uint64_t size);

// Returns how many units of addresses have to stay free before a buffer that starts `offset` bytes behind the
// first: there is one before it already.
uint32_t pages_redzone_front(uint64_t size, uint64_t offset);

#endif
