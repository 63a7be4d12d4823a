// SPDX-License-Identifier: MIT
// The state of a slot, and who may change it.
//
// Scans read slots without a lock while buffers come and go: a slot is read under its seqlock, and a buffer
// counts only if it was complete before the scan began. One thread at a time changes a slot: the one that has
// taken it or withdrawn its buffer.
//
// seq is odd while that thread writes seed, since, freed_size and size; a withdrawal changes the size alone,
// by one exchange at an even seq. A reader that sees the same even seq before and after has read the state of
// one buffer. Then:
//
//   size != 0   there is a buffer, and freed_size == 0
//   size == 0   there is none; freed_size != 0: scans still verify the freed buffer, which had this size
//   freed_size & IDLE implies freed_size & ~IDLE: all work from before the free has ended
//   size, freed_size & ~IDLE <= stride - CANARY_HEAD - CANARY_TAIL_LEAST; freed_size == 0 unless suballocated
//   the low half of reported has only the sides of canary_verify.h; the high half counts its resets to 0
//
// For a buffer, `since` is the last scan that began before it was published; later ones verify it. For a
// freed buffer it is the last scan that began before its place was given back: a later scan has verified it
// if slab.checked > since, and until then the place is not reused.
#ifndef MOAT_CANARY_CANARY_SLOT_H
#define MOAT_CANARY_CANARY_SLOT_H

#include "canary/canary_slab.h"

// Returns whether the equations above hold, or true if the slot changes meanwhile: then nothing can be said.
bool canary_slot_valid(const struct canary_slab *s, uint32_t number);

// Publishes a buffer whose canaries are in place; from now on it is scanned. scan: the last scan that has
// begun.
void canary_slot_publish(const struct canary_place *place, uint64_t scan);
// Publishes a buffer of the same size in a place that was withdrawn: canaries and reported sides stay as they
// are.
void canary_slot_publish_again(const struct canary_place *place, uint64_t scan);
// Sets the size of the freed buffer that scans still verify, with or without IDLE; 0: none. The caller owns
// the place.
void canary_slot_set_freed(struct canary_slot *t, uint64_t freed_size);
// canary_slot_await makes a withdrawn place wait for a scan after `scan`; canary_slot_is_checked returns
// whether one has verified it. The place remains the caller's.
void canary_slot_await(const struct canary_place *place, uint64_t scan);
bool canary_slot_is_checked(const struct canary_slab *s, uint32_t number);

// Reads a slot. Returns false if it has no buffer, live or freed, or one published or freed after the scan
// began, or if it is changing; then b->changing is set.
bool canary_slot_read(const struct canary_slab *s, uint32_t number, uint64_t scan, struct canary_buffer *b);
uint32_t canary_slot_reported(const struct canary_slab *s, uint32_t number);  // the sides
uint64_t canary_slot_report_state(const struct canary_slab *s, uint32_t number);
// Marks sides as reported. Returns true if one of them was not yet. state: the report state when the buffer
// was read; returns false if it was reset since, because the place has another buffer and whoever gave it
// away has verified it.
bool canary_slot_mark_reported(struct canary_slab *s, uint32_t number, uint64_t state, uint32_t sides);

#endif
