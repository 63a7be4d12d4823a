// SPDX-License-Identifier: MIT
// Managed and pinned memory of --mode=shadow: the driver is asked for more, and what is behind the buffer is
// its redzone. Before it there is none, except where another such buffer ends.
#ifndef MOAT_SHADOW_SHADOW_BEHIND_H
#define MOAT_SHADOW_SHADOW_BEHIND_H

#include "mode/mode.h"

// Returns false if the driver's own call must be made.
bool shadow_behind_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r);
// Returns how many bytes of room a buffer has behind it, up to a multiple of 256; 0: none.
uint64_t shadow_behind_room(uint64_t base, uint64_t size);
// Forgets the buffer that starts at `base`, and returns the bytes of its room; 0: there is none.
uint64_t shadow_behind_forget(uint64_t base, uint64_t *size);
enum mode_what shadow_behind_ask(uint64_t address, struct mode_answer *answer);
void shadow_behind_context_gone(CUcontext context);
void shadow_behind_after_fork(void);

#endif
