// SPDX-License-Identifier: MIT
// Tensor maps that the program has had the driver encode: 128 opaque bytes each, which it then passes to
// kernels, and what they stand for. The bytes of a map follow from what it was made of, so they are the key.
// The newest TENSOR_MAP_MOST or fewer are kept.
#ifndef MOAT_TRACK_TENSOR_MAP_H
#define MOAT_TRACK_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

enum { TENSOR_MAP_RANK = 5, TENSOR_MAP_BYTES = 128, TENSOR_MAP_MOST = 4096 };

struct tensor_map_about {
    uint64_t address;
    uint64_t bytes;  // from the first element of the tensor to the end of its last; 0: not known
    uint32_t rank;
    uint32_t element;  // bytes of an element; 0: elements are packed, and strides and boxes are not known
    uint64_t size[TENSOR_MAP_RANK];        // elements
    uint64_t stride[TENSOR_MAP_RANK];      // bytes
    uint32_t box[TENSOR_MAP_RANK];         // elements between the first and the last of a box, not counting
                                           // the former; 0 where a box has no such order
    uint32_t box_bytes;                    // in shared memory; 0: not known
    enum driver_id made_by;
    uint32_t made_stack;
};

// Computes what follows from the other members: `bytes`, and nothing if the numbers are absurd.
void tensor_map_measure(struct tensor_map_about *about);

// Records a map, `bytes` as the driver has made them.
void tensor_map_add(const void *bytes, const struct tensor_map_about *about);

// Finds a map by its bytes, which need no alignment. CUTLASS and Triton clear a bit of finished maps for some
// drivers; such a map is found as well. Returns false if it is not known.
bool tensor_map_find(const void *bytes, struct tensor_map_about *out);

// Finds the last map that was recorded for a tensor at the address.
bool tensor_map_find_address(uint64_t address, struct tensor_map_about *out);

void tensor_map_after_fork(void);

#endif
