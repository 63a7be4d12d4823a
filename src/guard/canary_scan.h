// SPDX-License-Identifier: MIT
// Reads the canaries of a context's buffers, by copies on a stream of our own, and reports those that have changed. The
// copy engine does it: a GPU whose multiprocessors are full is watched too, and nothing of ours runs on them.
#ifndef MOAT_GUARD_CANARY_SCAN_H
#define MOAT_GUARD_CANARY_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/canary_store.h"
#include "guard/track.h"

// When it was found, for the report.
struct canary_occasion {
    enum driver_id call;    // that the program made; DRIVER_CALLS: none
    const char *call_name;  // instead, may be NULL
    const char *note;
    bool ours;  // a thread of our own found it: where that stands says nothing
    bool all;   // it is looked at more rarely than other things, or was not before
};

// The number of the last scan that has begun. A buffer whose canaries are in place before it is read is seen by the next.
uint64_t canary_scan_number(void);

// So many kernels, of the first that were launched, are known to have ended. Relaxed: for what reports name.
extern _Atomic uint64_t canary_scan_ended;

// Nanoseconds that scans have spent on reports, so far. Relaxed: for the monitor's pace.
extern _Atomic uint64_t canary_scan_told;

// Copies that scans have made, so far. Relaxed: likewise.
extern _Atomic uint64_t canary_scan_copies;

// All buffers of the home, whose context is current. managed: those too, which may move them to the host; whole: every
// byte of every canary, not only those next to the buffer where there are many. One scan at a time in a process. An error is the driver's, and the context may be in error for good.
CUresult canary_scan_home(struct home *home, bool managed, bool whole,
                          const struct canary_occasion *occasion);

// One slab, as canary_scan_home does.
CUresult canary_scan_slab(struct home *home, struct canary_slab *slab,
                          const struct canary_occasion *occasion);

// One buffer that is withdrawn; its context is current.
CUresult canary_scan_place(struct home *home, const struct canary_place *place,
                           const struct canary_occasion *occasion);

// A buffer that is gone, with bytes that were read before it went.
struct canary_relic {
    struct canary_slab *slab;  // its place is kept, and may have another buffer by now; NULL: it is gone
    uint64_t base, size;
    uint32_t tail;  // bytes
    struct canary_seed seed;
    struct track_copy block;  // as the books knew it
    bool known;               // whether they did
    uint32_t told;            // sides of which a report went out
    uint64_t clean;           // kernels up to that one cannot have done it
};
struct canary_relic canary_scan_relic(const struct canary_place *place);
uint32_t canary_scan_width(const struct canary_place *place);  // of a row
void canary_scan_relic_rows(const struct canary_relic *relic, const uint8_t *rows,
                            const struct canary_occasion *occasion);

// What to write around a buffer.
void canary_scan_make(const struct canary_place *place, uint8_t head[CANARY_HEAD],
                      uint8_t tail[CANARY_TAIL_MOST], uint32_t *count);
// Writes it, at once. The home's context is current.
CUresult canary_scan_write(struct home *home, const struct canary_place *place);
// All canaries of a slab that is not open yet, likewise.
CUresult canary_scan_fill(struct home *home, const struct canary_slab *slab);

// Before the home's first buffer: takes what scans need. Later it could wait for kernels. The home's context is current; one
// thread at a time.
void canary_scan_prepare(struct home *home);
bool canary_scan_prepared(const struct home *home);

// Pinned memory that frees in the order of a stream read into.
enum { CANARY_LANDINGS = 512, CANARY_LANDING = 256 };
struct canary_landing {
    uint8_t rows[2 * CANARY_LANDING];  // what ends where the buffer starts, and as much from where it ends on
};
struct canary_landing *canary_scan_landings(const struct home *home);  // NULL: none

void canary_scan_after_fork(void);
void canary_scan_context_gone(struct home *home);  // our stream and memory went with it

#endif
