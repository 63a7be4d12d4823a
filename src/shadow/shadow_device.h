// SPDX-License-Identifier: MIT
// The shadow of --mode=shadow in one context (kcheck/kcheck_shadow.h): addresses for the shadow of all
// addresses, of which kernels can read every byte.
//
//   span    some pieces, more of them the more memory the device has: WHOLE, one mapping of a handle that all
//           such spans share and that is full of zeros; or cut into pieces
//   piece   256 MiB of shadow (1 GiB where it describes 8 bytes a byte): COARSE, one mapping of another such
//           handle; or FINE, cut into blocks
//   block   16 MiB of shadow: one mapping of zeros or of poison, or cut into pages if one of them is real
//   page    2 MiB of shadow. REAL: it has memory of its own, mapped once more for copies. Otherwise it is a
//           page that all such pages of zeros, or of poison, share
//
// Each mapping takes the driver time, a small one not much less than a large one, so there are some hundreds
// where the device has the memory.
//
// Where --mode=pages has reserved all addresses of a piece, nothing but buffers may be accessed: when the
// first buffer is placed there, it becomes fine and full of poison. No kernel that is right reads the shadow
// of such addresses before, so mappings can be replaced while kernels run. Elsewhere memory may be anyone's,
// and may be accessed, but for the room behind some buffers (shadow_room.h). When a page there needs
// memory, all is mapped at other addresses, and kernels that are running keep the former ones.
//
// All functions need the lock of check_host.c, and the context to be current.
#ifndef MOAT_SHADOW_SHADOW_DEVICE_H
#define MOAT_SHADOW_SHADOW_DEVICE_H

#include "check/check_host.h"
#include "context/context.h"
#include "shadow/shadow_empty.h"

enum {
    SHADOW_FORMER = 4,
    SHADOW_MEMORY_BITS = 47,  // addresses of memory are below 2^47
};
#define SHADOW_PAGE ((uint64_t)2 << 20)
#define SHADOW_BLOCK (8 * SHADOW_PAGE)

// Addresses that were reserved for a shadow: it starts at their first multiple of its size.
struct shadow_place {
    CUdeviceptr base;
    uint64_t size;
    uint64_t launches;  // of a former one: those made so far may use it
};

struct shadow_device {
    unsigned shift;
    uint64_t piece;                                   // bytes of a piece
    uint64_t span;                                    // bytes of a span, a multiple of them
    CUdeviceptr at;                                   // for kernels
    CUdeviceptr write;                                // for copies: page `slot` of it is a real page
    CUmemGenericAllocationHandle span_zeros, zeros;   // the same where a span is a piece
    CUmemGenericAllocationHandle blocks[2], page[2];  // shared ones: of zeros, of poison
    uint8_t *spans, *next_spans;                      // 1: whole; by number; those of what is being mapped
    uint8_t *pieces;                                  // 1: fine; by number
    uint32_t *slots;                                  // of real pages, from 1; by number of the page
    CUmemGenericAllocationHandle *handles;            // of real pages, by slot - 1
    uint32_t used;                                    // slots
    struct shadow_empty empty;                        // pages whose slots others may have
    uint64_t first_wanted, last_wanted;               // pages that are being prepared, which keep theirs
    unsigned mappings;                                // for kernels, at the latest place
    struct shadow_place place;                        // of `at`
    struct shadow_place former[SHADOW_FORMER];        // earlier ones, which kernels may be using
    unsigned nformer;
};

// Returns how many bytes of addresses a piece of the shadow describes.
uint64_t shadow_device_piece(unsigned shift);

// Makes the shadow of all blocks that are live, and forbids the heap of malloc in kernels, if it has bytes.
// After a failure, what was made stays until the context ends.
CUresult shadow_device_make(struct shadow_device *d, struct context *ctx, unsigned shift, uint64_t heap,
                            uint64_t heap_bytes);
void shadow_device_drop(struct shadow_device *d);  // the context has ended
CUresult shadow_device_change(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c);  // shadow_change.c
// Makes sure that bytes of the shadow can be written, at d->write. *can: they can.
CUresult shadow_device_prepare(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t last,
                               bool *can);
// Returns whether a whole piece describes addresses of --mode=pages.
bool shadow_device_owns(const struct shadow_device *d, uint64_t piece);
uint64_t shadow_device_bytes(const struct shadow_device *d);   // of memory that it takes
uint64_t shadow_device_shared(const struct shadow_device *d);  // of these, that do not depend on buffers

#endif
