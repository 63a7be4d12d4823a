// SPDX-License-Identifier: MIT
// What scans and writes need of a context: streams of our own, events, and pinned memory that the device copies to and from.
#ifndef MOAT_CANARY_CANARY_STAGING_H
#define MOAT_CANARY_CANARY_STAGING_H

#include "core/canary_bytes.h"
#include "context/context.h"

enum {
    CANARY_BATCHES = 2,        // one is read while the other is looked at
    CANARY_STAGING = 1 << 19,  // bytes of a batch
    CANARY_FILLING = 128 << 10,
    CANARY_TRAYS = 16,  // buffers that may be looked at at once
};

// Pinned memory that frees in the order of a stream read into: a program may run hundreds of them ahead of the GPU.
enum { CANARY_LANDINGS = 896, CANARY_LANDING = 256 };
struct canary_landing {
    uint8_t rows[2 * CANARY_LANDING];  // what ends where the buffer starts, and as much from where it ends on
};

// Pinned memory of a context, for what the device writes; the filling is read by it. Less than 2 MiB in all: so much a driver
// takes at a time, and may have at hand.
struct canary_pinned {
    uint8_t staging[CANARY_BATCHES][CANARY_STAGING];   // a scan's
    uint8_t tray[CANARY_TRAYS][2 * CANARY_TAIL_MOST];  // of whoever looks at one buffer
    struct canary_landing landing[CANARY_LANDINGS];
    uint8_t filling[CANARY_FILLING];  // one writer's at a time
};
_Static_assert(sizeof(struct canary_pinned) < 2 << 20, "see above");

// The stream, the staging, its events and the turns are one scan's at a time; the filler goes with the filling.
struct canary_staging {
    _Atomic(bool) asked, ready;
    _Atomic uint32_t trays;  // taken, a bit each
    struct canary_pinned *pinned;
    CUstream stream, filler;
    CUevent read[CANARY_BATCHES];
    unsigned turns;  // scans of all that there is
};

// Before the context's first buffer: takes what scans need. Later it could wait for kernels. The context's context is current; one
// thread at a time.
void canary_staging_prepare(struct context *ctx);
bool canary_staging_prepared(const struct context *ctx);

struct canary_staging *canary_staging_of(const struct context *ctx);        // NULL: none
struct canary_landing *canary_staging_landings(const struct context *ctx);  // NULL: none

// A tray for rows of one buffer is the caller's; -1: none is left.
int canary_staging_take(struct canary_staging *b);
void canary_staging_give(struct canary_staging *b, int tray);

void canary_staging_context_gone(const struct context *ctx);  // our streams and memory went with it

#endif
