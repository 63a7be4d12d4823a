// SPDX-License-Identifier: MIT
// Buffers freed in stream order: their canaries are copied to the host as soon as the stream reaches the
// free, and verified when the copy (a readback) has completed.
//
// A readback goes through the program's stream, or through the side stream: one stream of our own per
// context, which waits for an event of the program's stream, so that the program's stream itself is not held
// up.
#ifndef MOAT_CANARY_CANARY_ORDER_H
#define MOAT_CANARY_CANARY_ORDER_H

#include "canary/canary_scan.h"

// A stream of the program, as it is named to the driver.
struct canary_stream {
    CUstream stream;
    bool per_thread;
};

// Gets the stream's id; unlike handles, ids are never reused. Returns false if the driver gives none.
bool canary_order_number(struct canary_stream in, uint64_t *number);

// Enqueues the readback of a withdrawn place, which remains the caller's: in the program's stream or, if
// on_side, in the side stream behind what the program's stream holds now. Otherwise returns the driver's
// error, or CUDA_ERROR_NOT_READY if too many readbacks are pending; then nothing was enqueued that matters.
CUresult canary_order_read(const struct canary_place *place, struct canary_stream in, bool on_side,
                           enum driver_id call);

// Records the place's event in the stream. Returns the driver's result.
CUresult canary_order_mark(const struct canary_slab *slab, struct canary_stream in);

// Makes the side stream wait for what the program's stream holds now, without a readback. Returns the
// driver's result.
CUresult canary_order_side_follow(const struct canary_place *place, struct canary_stream in);

// Returns memory to its pool in the side stream, behind the readbacks of it there. Requires ctx to be
// current.
CUresult canary_order_side_free(struct context *ctx, CUdeviceptr memory);
void canary_order_side_wait(struct context *ctx);  // waits until all such memory is back in its pool

// Detaches pending readbacks from a slab that is about to go: they are verified without it, and damage that
// several of them find is reported once. Requires the scan lock to be held, since a readback that is being
// verified refers to the slab.
void canary_order_forget(struct canary_slab *slab);

// Returns whether the side stream holds so many operations that adding one could block.
bool canary_order_side_is_full(const struct context *ctx);

// Verifies the completed readbacks. Requires ctx to be current; one thread at a time.
void canary_order_verify(struct context *ctx);
// Verifies the oldest readbacks, up to the first that has not completed, to free their buffers.
void canary_order_make_room(struct context *ctx);

void canary_order_context_gone(struct context *ctx);
void canary_order_after_fork(void);

bool canary_order_valid(const struct context *ctx);  // whether the equations of canary_order.c hold

#endif
