// SPDX-License-Identifier: MIT
// Physical memory for --mode=pages. A large buffer has a handle of its own and lies at its end. Small ones share handles
// of 2 MiB, cut into slots of one size each, a power of two: a handle can only be mapped whole, so each of them maps all
// of it, at addresses of its own.
//
//   extra == what handles hold - what was asked for, and stays below the budget: whoever would take more gets none
#ifndef MOAT_PAGES_PAGES_MEMORY_H
#define MOAT_PAGES_PAGES_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "context/context.h"

struct pages_slab;

struct pages_memory {
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;           // of the handle
    uint64_t offset;          // of the buffer in it
    uint64_t asked;           // the buffer's size
    struct pages_slab *slab;  // NULL: the handle is the buffer's own
    uint32_t slot;
};

void pages_memory_init(uint64_t budget, uint64_t own);  // own: from this size on a buffer has its own handle
void pages_memory_after_fork(void);

// 0; -ENOMEM: the driver gives none; -ENOSPC: the budget does not allow it.
int pages_memory_take(CUdevice device, uint64_t size, struct pages_memory *memory);
// What is mapped nowhere any more.
void pages_memory_give(const struct pages_memory *memory);
// Gives back to the driver what no buffer uses.
void pages_memory_trim(void);

uint64_t pages_memory_extra(void);

#endif
