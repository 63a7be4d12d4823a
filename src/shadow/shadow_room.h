// SPDX-License-Identifier: MIT
// Managed and pinned memory of --mode=shadow: the driver is asked for more, a page before the buffer and its
// redzone behind it. The driver uses the addresses of freed memory again, so moat keeps such memory for a
// while (--shadow-quarantine). A freed buffer is forbidden in the shadow, known to no query, and given back
// when others have been freed after it or memory is needed.
#ifndef MOAT_SHADOW_SHADOW_ROOM_H
#define MOAT_SHADOW_SHADOW_ROOM_H

#include "mode/mode.h"

// Returns false if the driver's own call must be made.
bool shadow_room_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r);
// Returns all memory around a buffer, which starts and ends at multiples of 256. size 0: it is none of these.
struct shadow_room {
    uint64_t base, size;
};
struct shadow_room shadow_room_around(uint64_t base, uint64_t size);
// Frees a buffer. Returns false if the driver's own call must be made.
bool shadow_room_free(const struct mode_free *f, CUresult *r);
// Gives back what is kept of freed memory. Returns false if that is nothing.
bool shadow_room_reclaim(void);
enum mode_what shadow_room_ask(uint64_t address, struct mode_answer *answer);
void shadow_room_context_gone(CUcontext context);
void shadow_room_after_fork(void);

#endif
