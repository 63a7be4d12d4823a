// SPDX-License-Identifier: MIT
// Physical memory for --mode=pages. A large buffer has a handle of its own and lies at its end. Small ones
// share handles of 2 MiB, cut into slots of one size each, a power of two: a handle can only be mapped as a
// whole, so each of them maps all of it, at addresses of its own.
//
//   extra == bytes in handles - bytes asked for; an allocation that would bring it beyond the budget fails
#ifndef MOAT_PAGES_PAGES_MEMORY_H
#define MOAT_PAGES_PAGES_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "context/context.h"

struct pages_slab;
struct pages_view;

struct pages_memory {
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;           // of the handle
    uint64_t offset;          // of the buffer in it
    uint64_t asked;           // the buffer's size
    struct pages_slab *slab;  // NULL: the buffer shares no memory, or ...
    struct pages_view *view;  // ... it lies in a slot of this view (pages_packed.h)
    uint32_t slot;            // of the slab or view
};

// own: the least size of a buffer with a handle of its own
void pages_memory_init(uint64_t budget, uint64_t own);
void pages_memory_after_fork(void);

// Returns 0, -ENOMEM if the driver has no memory, or -ENOSPC if the budget does not allow it.
int pages_memory_take(CUdevice device, uint64_t size, struct pages_memory *memory);
// Gives back memory that is mapped nowhere any more.
void pages_memory_give(const struct pages_memory *memory);
// Releases handles that no buffer uses.
void pages_memory_trim(void);

uint64_t pages_memory_extra(void);

// Returns whether a buffer of this size goes to a slot of a view (pages_packed.h).
bool pages_memory_is_packed(uint64_t size);
// Returns whether a buffer of this size should be left to the driver, which packs small ones: as many
// as a GPU can address quickly have addresses of their own already.
bool pages_memory_should_pack(uint64_t size);

// For pages_packed.c. Creates memory of which a first buffer will use `asked` bytes. Returns 0, -ENOMEM or
// -ENOSPC as pages_memory_take does.
int pages_memory_create(CUdevice device, uint64_t bytes, uint64_t asked,
                        CUmemGenericAllocationHandle *handle);
void pages_memory_release(CUmemGenericAllocationHandle handle, uint64_t bytes);
// A buffer of `asked` bytes now lies in created memory, or does no more.
void pages_memory_use(uint64_t asked);
void pages_memory_unuse(uint64_t asked);

#endif
