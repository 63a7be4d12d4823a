// SPDX-License-Identifier: MIT
// What a slot's numbers say, and who may change them.
//
// Scans read slots without a lock, while buffers come and go: a slot's numbers are read under its turn (as with a
// seqlock), and a buffer counts only if it was complete before the scan began. One thread at a time changes them: who has
// taken the slot, or withdrawn its buffer.
#ifndef MOAT_CANARY_CANARY_SLOT_H
#define MOAT_CANARY_CANARY_SLOT_H

#include "canary/canary_slab.h"

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
