// SPDX-License-Identifier: MIT
// Managed and pinned memory of --mode=shadow: the driver is asked for more, and what is behind the buffer is
// its redzone. Before it there is none, except where another such buffer ends. The driver uses the addresses
// of freed memory again, so it is kept for a while (--shadow-quarantine): a buffer that the program has freed
// is forbidden in the shadow, known to no query, and given back when others have been freed after it or
// memory is needed.
#ifndef MOAT_SHADOW_SHADOW_BEHIND_H
#define MOAT_SHADOW_SHADOW_BEHIND_H

#include "mode/mode.h"

// Returns false if the driver's own call must be made.
bool shadow_behind_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r);
// Returns how many bytes of room a buffer has behind it, up to a multiple of 256; 0: none.
uint64_t shadow_behind_room(uint64_t base, uint64_t size);
// Frees a buffer. Returns false if the driver's own call must be made.
bool shadow_behind_free(const struct mode_free *f, CUresult *r);
// Gives back what is kept of freed memory. Returns false if that is nothing.
bool shadow_behind_reclaim(void);
enum mode_what shadow_behind_ask(uint64_t address, struct mode_answer *answer);
void shadow_behind_context_gone(CUcontext context);
void shadow_behind_after_fork(void);

#endif
