// SPDX-License-Identifier: MIT
// Canaries as they were read: those that are not as they were made are reported, once for each side of a buffer.
#ifndef MOAT_CANARY_CANARY_VERIFY_H
#define MOAT_CANARY_CANARY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "canary/canary_slot.h"
#include "track/track.h"

// When it was found, for the report.
struct canary_occasion {
    enum driver_id call;    // that the program made; DRIVER_CALLS: none
    const char *call_name;  // instead, may be NULL
    const char *note;
    bool ours;  // a thread of our own found it: where that stands says nothing
    bool all;   // it is looked at more rarely than other things, or was not before
};

// What canary_slot_tell marks.
enum { CANARY_HEAD_SIDE = 1, CANARY_TAIL_SIDE = 2, CANARY_INSIDE = 4 };  // see canary_slot_valid

// Nanoseconds that reports have taken, so far. Relaxed: for the monitor's pace.
extern _Atomic uint64_t canary_verify_told;

// These are true for damage that no report told of before. now: what was read of the side.
bool canary_verify_head(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                        const uint8_t *now, const struct canary_occasion *o);
// seen: how much of it was read.
bool canary_verify_tail(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                        const uint8_t *now, uint32_t seen, const struct canary_occasion *o);
// More canary somewhere behind the buffer of a slab of one, where it is, and as it was made; no more than
// CANARY_TAIL_MOST bytes.
bool canary_verify_behind(struct canary_slab *s, const struct canary_buffer *b, const uint8_t *now,
                          const uint8_t *made, uint32_t count, const struct canary_occasion *o);
// The first bytes of a freed buffer, into which nobody may have written since a scan saw it last. The slab has room for
// prints; one scan at a time.
bool canary_verify_inside(struct canary_slab *s, uint32_t number, const struct canary_buffer *b,
                          const uint8_t *now, uint32_t count, const struct canary_occasion *o);

// Bytes of a row that holds a head or a tail of a buffer of this size.
uint32_t canary_verify_width(const struct canary_slab *s, uint64_t size);

// A buffer that is gone, with bytes that were read before it went.
struct canary_relic {
    struct canary_slab *slab;  // its place is kept, and may have another buffer by now; NULL: it is gone
    uint32_t *remains;         // then: sides of which readings of the same place told; NULL: there was one
    uint64_t base, size;
    uint32_t tail;  // bytes
    struct canary_seed seed;
    struct track_copy block;  // as the books knew it
    bool known;               // whether they did
    uint32_t told;            // sides of which a report went out
    uint64_t clean;           // kernels up to that one cannot have done it
};
struct canary_relic canary_verify_relic(const struct canary_place *place);
// rows: what ends where the buffer starts, and as much from where it ends on.
void canary_verify_relic_rows(const struct canary_relic *relic, const uint8_t *rows,
                              const struct canary_occasion *occasion);

// A scan found nothing: kernels up to that one, which had ended when it began, are not named for what later ones find. all:
// it looked at everything.
void canary_verify_clean(const struct context *ctx, uint64_t ended, bool all);
uint64_t canary_verify_clean_so_far(const struct context *ctx);  // by scans that looked at everything
void canary_verify_context_gone(const struct context *ctx);

#endif
