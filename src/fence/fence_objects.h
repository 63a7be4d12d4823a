// SPDX-License-Identifier: MIT
// Textures, surfaces and tensor maps that a program has made, as kernels look them up: a table for each
// context (kfence.h), of which the device has a copy. Requires the lock of fence_host.
#ifndef MOAT_FENCE_FENCE_OBJECTS_H
#define MOAT_FENCE_FENCE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "kfence/kfence.h"

// A tensor map.
struct fence_map {
    uint64_t word, box;    // box: KFENCE_MAP_OF
    uint64_t base, bytes;  // of the tensor
    uint64_t range;        // start of the range outside of the partition that it is in; 0: in the partition
};

// Both store the place that has changed, from 0. Return false if nothing has, or without room.
bool fence_objects_add(unsigned context, uint64_t word, uint64_t bytes, unsigned *place);
bool fence_objects_remove(unsigned context, uint64_t word, unsigned *place);
bool fence_objects_has(unsigned context, uint64_t word);
void fence_objects_forget(unsigned context);
// Returns the table; NULL: it is empty.
const struct kfence_object *fence_objects_table(unsigned context);

// The table of every context gets the maps that were made before.
bool fence_objects_keep_map(const struct fence_map *map);
// Removes and stores the next map of a range that ends. Returns false if there is none.
bool fence_objects_drop_map(uint64_t range, struct fence_map *map);

// Describes a map of a tensor. Returns false if the sizes are none that moat knows.
struct fence_tensor {
    CUtensorMapDataType type;
    uint32_t rank;
    uint64_t address;
    const cuuint64_t *dims, *strides;
    const cuuint32_t *box, *steps;  // box of a map by columns: channels and pixels, then 1
    uint32_t shape;                 // as of KFENCE_MAP_OF
    uint32_t span;                  // as of struct mode_tensor
};
bool fence_objects_tensor(const struct fence_tensor *t, struct fence_map *map);

#endif
