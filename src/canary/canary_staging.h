// SPDX-License-Identifier: MIT
// What scans and writes need in a context: streams of our own, events, and pinned memory that the device
// copies to and from.
#ifndef MOAT_CANARY_CANARY_STAGING_H
#define MOAT_CANARY_CANARY_STAGING_H

#include "core/canary_bytes.h"
#include "context/context.h"

enum {
    CANARY_BATCHES = 2,        // one is copied while the other is verified
    CANARY_STAGING = 1 << 19,  // bytes of a batch
    CANARY_FILL_BYTES = 128 << 10,
    CANARY_ROW_BUFFERS = 16,  // buffers that can be verified or written one by one at the same time
};

// Pinned memory for readbacks before stream-ordered frees; a program may run hundreds of them ahead of the
// GPU.
enum { CANARY_READBACKS = 896, CANARY_READBACK_ROW = 256 };
struct canary_readback {
    // What ends where the buffer starts, and as much from where it ends on.
    uint8_t rows[2 * CANARY_READBACK_ROW];
};

// Pinned memory of a context. The device writes into it, and reads fill_buffer. It has less than 2 MiB: a
// driver allocates that much at a time, and may have it at hand.
struct canary_pinned {
    uint8_t staging[CANARY_BATCHES][CANARY_STAGING];               // of the running scan
    uint8_t row_buffer[CANARY_ROW_BUFFERS][2 * CANARY_TAIL_MOST];  // for one buffer each
    struct canary_readback readback[CANARY_READBACKS];
    uint8_t fill_buffer[CANARY_FILL_BYTES];  // for one writer at a time
};
_Static_assert(sizeof(struct canary_pinned) < 2 << 20, "see above");

// The stream, the staging buffers, their events and the scan count belong to one scan at a time; fill_stream
// belongs to whoever uses fill_buffer.
struct canary_staging {
    _Atomic(bool) prepared, ready;
    _Atomic uint32_t row_buffers;  // one bit for each that is taken
    struct canary_pinned *pinned;
    CUstream stream, fill_stream;
    CUevent read[CANARY_BATCHES];
    unsigned scans;  // scans of all buffers
};

// Creates what scans need, before the context's first buffer; later, the allocation could wait for running
// kernels. Requires ctx to be current; one thread at a time.
void canary_staging_prepare(struct context *ctx);
bool canary_staging_prepared(const struct context *ctx);

struct canary_staging *canary_staging_of(const struct context *ctx);          // NULL: not available
struct canary_readback *canary_staging_readbacks(const struct context *ctx);  // NULL: not available

// Takes a buffer for the rows of one place. Returns its index, or -1 if all are taken.
int canary_staging_take_rows(struct canary_staging *staging);
void canary_staging_give_rows(struct canary_staging *staging, int row_buffer);

void canary_staging_context_gone(const struct context *ctx);  // its streams and memory went with it

#endif
