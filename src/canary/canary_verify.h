// SPDX-License-Identifier: MIT
// Compares canaries that were read with what was written, and reports changes once for each side of a buffer.
#ifndef MOAT_CANARY_CANARY_VERIFY_H
#define MOAT_CANARY_CANARY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "canary/canary_slot.h"
#include "track/track.h"

// The circumstances of a finding, for the report.
struct canary_occasion {
    enum driver_id call;    // the program's call; DRIVER_CALLS: none
    const char *call_name;  // name to report instead of a call, or NULL
    const char *note;
    bool ours;  // found by a thread of our own, whose stack says nothing
    bool all;   // this is verified more rarely than other canaries, or for the first time
};

// The sides that canary_slot_mark_reported marks; canary_slot_valid knows their mask.
enum { CANARY_HEAD_SIDE = 1, CANARY_TAIL_SIDE = 2, CANARY_INSIDE = 4 };

// Nanoseconds spent on reports so far. Relaxed: for the monitor's pace.
extern _Atomic uint64_t canary_verify_report_ns;

// These return true if they found damage that was not reported before. now: the bytes that were read of the
// side.
bool canary_verify_head(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                        const uint8_t *now, const struct canary_occasion *o);
// seen: how many bytes of the tail were read.
bool canary_verify_tail(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                        const uint8_t *now, uint32_t seen, const struct canary_occasion *o);
// Verifies further canary behind the buffer of a slab of one slot. now: the canary in place; made: what was
// written; count <= CANARY_TAIL_MOST.
bool canary_verify_behind(struct canary_slab *s, const struct canary_buffer *b, const uint8_t *now,
                          const uint8_t *made, uint32_t count, const struct canary_occasion *o);
// Compares the first bytes of a freed buffer with its fingerprint from the last scan, and takes a new one:
// nobody may write into it any more. The slab must have fingerprints; one scan at a time.
bool canary_verify_inside(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                          const uint8_t *now, uint32_t count, const struct canary_occasion *o);

// Width of the rows that hold head and tail of a buffer of this size.
uint32_t canary_verify_width(const struct canary_slab *s, uint64_t size);

// What is needed to verify a freed buffer by bytes that were read before it was freed.
struct canary_snapshot {
    struct canary_slab *slab;   // its place is kept, and may have another buffer by now; NULL: the slab is
                                // closed
    uint32_t *closed_reported;  // if closed: sides that readbacks of the same slab reported; else NULL
    uint64_t base, size;
    uint32_t tail;  // bytes
    struct canary_seed seed;
    struct track_copy block;  // its record, if known
    bool known;               // whether there was one
    uint32_t reported;        // sides that were reported before
    uint64_t clean;           // kernels up to this one cannot have damaged it
};
struct canary_snapshot canary_verify_snapshot(const struct canary_place *place);
// Verifies and reports. rows: the bytes that end where the buffer starts, then as many from where it ends on.
void canary_verify_snapshot_rows(const struct canary_snapshot *snapshot, const uint8_t *rows,
                                 const struct canary_occasion *occasion);

// Called after a scan that found nothing: kernels up to `ended`, which had ended when it began, are not named
// in later reports. all: the scan verified everything.
void canary_verify_clean(const struct context *ctx, uint64_t ended, bool all);
uint64_t canary_verify_clean_so_far(const struct context *ctx);  // by scans that verified everything
void canary_verify_context_gone(const struct context *ctx);

#endif
