// SPDX-License-Identifier: MIT
// What a slot's numbers say, and who may change them.
//
// Scans read slots without a lock, while buffers come and go: a slot's numbers are read under its turn (as
// with a seqlock), and a buffer counts only if it was complete before the scan began. One thread at a time
// changes them: who has taken the slot, or withdrawn its buffer.
//
// The turn is odd while that thread writes seed, since, held and size; a withdrawal takes the size alone, by
// one exchange at an even turn. Whoever reads the same even turn before and after has read one buffer's
// numbers. Then:
//
//   size != 0   there is a buffer, and held == 0
//   size == 0   there is none; held != 0: the one that was freed there, of this size, is looked at still
//   held & IDLE implies held & ~IDLE: all that ran before the free has ended
//   size, held & ~IDLE <= stride - CANARY_HEAD - CANARY_TAIL_LEAST; held == 0 but in memory that we divide up
//   the lower half of told is made of the sides of canary_verify.h; the upper one grows whenever it becomes 0
//
// since, of a buffer, is the last scan that began before it was published: later ones look at it. Of a freed
// one it is the last that began before it was given back: a later one has looked at it if slab.checked >
// since, and until then nobody gets the place.
#ifndef MOAT_CANARY_CANARY_SLOT_H
#define MOAT_CANARY_CANARY_SLOT_H

#include "canary/canary_slab.h"

// Whether the equations above hold. Returns true if the slot changes meanwhile: nothing can be said then.
bool canary_slot_valid(const struct canary_slab *s, uint32_t number);

// The canaries are in place: from now on the buffer is scanned. scan: the number of the last scan that has begun.
void canary_slot_publish(const struct canary_place *place, uint64_t scan);
// The same buffer again, in a place that it was withdrawn from: its canaries stand, and what was told of them was.
void canary_slot_publish_again(const struct canary_place *place, uint64_t scan);
// A freed buffer of this size is looked at still, from now on or, for 0, no longer. The place is the caller's.
void canary_slot_hold(struct canary_slot *t, uint64_t held);
// A withdrawn place that stays the caller's: whether a scan has looked at it since.
void canary_slot_await(const struct canary_place *place, uint64_t scan);
bool canary_slot_is_checked(const struct canary_slab *s, uint32_t number);

// False: there is no buffer in the slot, or it came after the scan began, or it is changing, as b->changing says.
bool canary_slot_read(const struct canary_slab *s, uint32_t number, uint64_t scan, struct canary_buffer *b);
uint32_t canary_slot_told(const struct canary_slab *s, uint32_t number);  // sides
uint64_t canary_slot_telling(const struct canary_slab *s, uint32_t number);
// Marks sides as told; true if one of them was not yet. telling: as it was when the buffer was read, which may be another one by now: then
// whoever gave its place away has looked at it.
bool canary_slot_tell(struct canary_slab *s, uint32_t number, uint64_t telling, uint32_t sides);

#endif
