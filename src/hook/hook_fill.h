// SPDX-License-Identifier: MIT
// --fill=BYTE: memory that the program gets, and memory that it gives back, is full of a byte, so that a
// program which reads what it has not written, or what it has freed, shows it.
#ifndef MOAT_HOOK_HOOK_FILL_H
#define MOAT_HOOK_HOOK_FILL_H

#include <stdbool.h>

#include "core/guard.h"
#include "track/track.h"

static inline bool hook_fill_on(void)
{
    return __builtin_expect(guard.options.fill > 0, 0);
}

// Fills a new buffer of the current context, and waits until that is done. Registered memory, whose contents
// are the program's, is left alone.
void hook_fill_made(enum track_family family, uint64_t base, uint64_t size);
// Fills a buffer that has just been taken out of the books, before the driver's call, after a wait for the
// device as that call has it.
void hook_fill_freed(uint64_t pointer);
// The same in the order of a stream that is not capturing.
void hook_fill_in_order(uint64_t base, uint64_t size, CUstream stream, bool per_thread);
void hook_fill_freed_in_order(uint64_t pointer, CUstream stream, bool per_thread);

#endif
