// SPDX-License-Identifier: MIT
// Small buffers of --mode=pages that share a mapping, for modes that look at every access of a kernel
// themselves. Each address is given to one buffer only, and at least PAGES_PACKED_GAP bytes lie behind each
// buffer.
//
//   slab   memory behind one handle, cut into slots of `stride` bytes
//   view   addresses at which a slab is mapped. A view hands each of its slots out at most once
//
// When no view of a size has a slot left, a slab in which buffers were freed is mapped once more, at new
// addresses: the new view hands out those slots that no buffer holds. So the memory is used again, and the
// addresses are not. A view whose buffers are all freed, and that hands out no more, is unmapped.
//
//   each slot of a slab is in one of three states, so that slots == held + fresh + freed:
//   held    a buffer has it, in one view
//   fresh   the slab's newest view may hand it out
//   freed   a buffer had it in the newest view or an older one; the next view hands it out
//
//   held of a slab == the sum of held over its views
//   a view other than the newest one has held > 0; the newest one has held > 0 or fresh > 0
#ifndef MOAT_PAGES_PAGES_PACKED_H
#define MOAT_PAGES_PAGES_PACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "pages/pages_memory.h"

enum { PAGES_PACKED_GAP = 256 };

// Returns the bytes of a slab for buffers of `size` bytes, and the stride of its slots. Addresses of buffers
// are multiples of `unit`.
uint64_t pages_packed_shape(uint64_t size, uint64_t unit, uint64_t *stride);
// Takes a slot for a buffer of `size` bytes, and makes it accessible for the device and its peers. Returns 0
// with *memory, and the address and bytes of the slot; -ENOMEM if the driver has no memory or no addresses;
// -ENOSPC if the budget does not allow it.
int pages_packed_take(CUdevice device, uint64_t size, uint64_t peers, struct pages_memory *memory,
                      uint64_t *slot, uint64_t *stride);
// Gives back a slot that nothing uses any more.
void pages_packed_give(const struct pages_memory *memory);
// Releases slabs without buffers.
void pages_packed_trim(void);
// Sets the access of other devices to all buffers of the view that a buffer is in.
void pages_packed_set_access(const struct pages_memory *memory, const CUmemAccessDesc *desc, size_t count);

void pages_packed_after_fork(void);
bool pages_packed_valid(void);  // whether the equations above hold; for tests

#endif
