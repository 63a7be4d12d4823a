// SPDX-License-Identifier: MIT
// Tensor maps that the program has had the driver encode: 128 opaque bytes each, which it then passes to
// kernels, and what they stand for. The bytes of a map follow from what it was made of, so they are the key.
// The newest ENCODED_MAP_MOST or fewer are kept.
#ifndef MOAT_TRACK_ENCODED_MAP_H
#define MOAT_TRACK_ENCODED_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

enum { ENCODED_MAP_RANK = 5, ENCODED_MAP_BYTES = 128, ENCODED_MAP_MOST = 4096 };

struct encoded_map {
    uint64_t address;
    uint64_t bytes;  // from the first element of the tensor to the end of its last; 0: not known
    uint32_t rank;
    uint32_t element;  // bytes of an element; 0: elements are packed, and strides and boxes are not known
    uint64_t size[ENCODED_MAP_RANK];    // elements
    uint64_t stride[ENCODED_MAP_RANK];  // bytes
    uint32_t box[ENCODED_MAP_RANK];     // elements between the first and the last of a box, not counting
                                        // the former; 0 where a box has no such order
    uint32_t box_bytes;                 // of the elements of a box; 0: not known
    uint32_t box_row;                   // bytes of a row of a box
    uint32_t box_span;                  // bytes between two rows in shared memory, if they are longer
    enum driver_id made_by;
    uint32_t made_stack;
};

// Computes what follows from the other members: `bytes`, and nothing if the numbers are absurd.
void encoded_map_measure(struct encoded_map *about);

// Returns how far a box certainly reaches in shared memory; 0 if that is not known. Of the last row's bytes
// the swizzle may put some behind that.
uint32_t encoded_map_reach(const struct encoded_map *about);

// Returns the bytes that a swizzle moves pieces in; 0: none.
uint32_t encoded_map_span(CUtensorMapSwizzle swizzle);

// Records a map, `bytes` as the driver has made them.
void encoded_map_add(const void *bytes, const struct encoded_map *about);

// Finds a map by its bytes, which need no alignment. CUTLASS and Triton clear a bit of finished maps for some
// drivers; such a map is found as well. Returns false if it is not known.
bool encoded_map_find(const void *bytes, struct encoded_map *out);

// Finds the last map that was recorded for a tensor at the address.
bool encoded_map_find_address(uint64_t address, struct encoded_map *out);

void encoded_map_after_fork(void);

#endif
