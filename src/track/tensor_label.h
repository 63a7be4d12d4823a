// SPDX-License-Identifier: MIT
// What a framework says about the memory that it passes to kernels: names, shapes and strides of tensors. A
// report that is about a buffer names the tensor in it and the element that was accessed. Labels are hints:
// the table is small, and a newer label replaces an older one.
#ifndef MOAT_TRACK_TENSOR_LABEL_H
#define MOAT_TRACK_TENSOR_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TENSOR_LABEL_DIMENSIONS = 8 };

struct tensor_label {
    uint64_t address;  // of the first element
    uint32_t element;  // bytes; not 0
    uint32_t dimensions;
    int64_t shape[TENSOR_LABEL_DIMENSIONS], strides[TENSOR_LABEL_DIMENSIONS];  // strides in elements
    char name[120];                                                            // "`x`, argument x_ptr"
    char type[24];                                                             // "float32"
};

// Keeps a copy.
void tensor_label_set(const struct tensor_label *label);

// Writes a sentence about the labelled tensor in [base, base + size) that is nearest to an address, and about
// the place in it of an access of some bytes, 0 if that is not known. Returns false if there is no such
// tensor.
bool tensor_label_describe(uint64_t base, uint64_t size, uint64_t address, uint64_t bytes, char *text,
                           size_t room);

// Stores the name of the newest labelled tensor that begins at an address. Returns false if there is none.
bool tensor_label_name(uint64_t address, char *name, size_t room);

void tensor_label_after_fork(void);

#endif
