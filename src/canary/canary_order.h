// SPDX-License-Identifier: MIT
// Buffers that are freed in the order of a stream: their canaries are read as soon as it has come so far, and looked at
// when they were.
#ifndef MOAT_CANARY_CANARY_ORDER_H
#define MOAT_CANARY_CANARY_ORDER_H

#include "canary/canary_scan.h"

// How a program's stream is named to the driver.
struct canary_stream {
    CUstream stream;
    bool per_thread;
};

// Streams that come and go may have the same handle; their numbers differ. False: it has none.
bool canary_order_number(struct canary_stream in, uint64_t *number);

// Enqueues the reading, in the order of the stream; aside: beside it, and the stream only tells when it has come so far. The place
// is withdrawn and still the caller's. Otherwise the driver's error, CUDA_ERROR_NOT_READY if too many wait, and nothing was
// enqueued that matters.
CUresult canary_order_read(const struct canary_place *place, struct canary_stream in, bool aside,
                           enum driver_id call);

// An event of the place in the stream, which tells when it has come so far. 0, or the driver's error.
CUresult canary_order_mark(const struct canary_slab *slab, struct canary_stream in);

// No reading: the stream beside all others only waits until this one has come so far. 0, or the driver's error.
CUresult canary_order_follow(const struct canary_place *place, struct canary_stream in);

// Gives memory of a pool back to it, beside all streams, when what was read of it so is there. The context's context is current.
CUresult canary_order_free_aside(struct context *ctx, CUdeviceptr memory);
void canary_order_wait_aside(struct context *ctx);  // until all such memory is the pool's again

// The place goes: what is still to be read of it is looked at without, and what several readings find is told once. The
// caller keeps scans from beginning: who looks at a reading right now tells of it in the slab's name.
void canary_order_forget(struct canary_slab *slab);

// There is so much in the stream beside all others that more may have to wait.
bool canary_order_is_crowded(const struct context *ctx);

// Looks at what has been read. The context's context is current; one thread at a time.
void canary_order_settle(struct context *ctx);
// The same of the oldest ones, up to the first that is not there yet: for who needs room now.
void canary_order_make_room(struct context *ctx);

void canary_order_context_gone(struct context *ctx);
void canary_order_after_fork(void);

bool canary_order_valid(const struct context *ctx);  // whether the equations of canary_order.c hold

#endif
