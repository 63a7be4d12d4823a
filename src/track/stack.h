// SPDX-License-Identifier: MIT
// Call stacks of the application. Each is kept once and identified by a number.
#ifndef MOAT_TRACK_STACK_H
#define MOAT_TRACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STACK_DEPTH_MAX = 64 };

// Reserves address space for `bytes` of stacks (0: a default), which is committed as it is used, and loads
// what the unwinder would load lazily. Call it once, from one thread, before the first capture. Returns 0 or
// -ENOMEM; captures then return 0.
int stack_init(size_t bytes);

// Captures the return addresses of the calling thread, innermost first, at most `depth`, and returns the
// stack's id. Frames of the object that contains this code are left out. With skip_until, so are all frames
// before the one that returns to that address, if there is one (a hook passes its
// __builtin_return_address(0)). If the thread has frames of an interpreter (script_frames.h), the stack
// consists of those instead; the frames of its Python code (python_frames.h) follow those of machine code, up
// to `depth` of each. Returns 0 if there is no frame, or if the reserved space is full.
// Thread-safe; allocates nothing else, and takes no lock of moat's but those of
// names.h and script_frames.h, for Python's frames.
uint32_t stack_capture(const void *skip_until, unsigned depth);
uint64_t stack_walked(void);  // for tests: how many captures had to unwind the stack

// Stores the frames of a stack, innermost first, at most `most`, and returns how many the stack has; 0 for id
// 0 or an unknown one. Frames are return addresses: the call is at pc - 1.
unsigned stack_frames(uint32_t id, uint64_t *pcs, unsigned most);

// Finds the object that pc lies in now: its path (for the main program its own path, not ""), and pc as an
// address in the object's file. Returns false if pc lies in no object.
bool stack_locate(uint64_t pc, char *object, size_t size, uint64_t *offset);

struct stack_stats {
    uint64_t stacks, bytes, refused;  // refused: captures that found no space
};
void stack_stats(struct stack_stats *stats);

// For tests: treats the code addresses [from, to) as moat's, instead of those of the object.
void stack_own(uint64_t from, uint64_t to);

// For tests: undoes stack_init; ids become invalid.
void stack_forget(void);

// For tests: keeps a stack given by the caller, as stack_capture does.
uint32_t stack_keep(const uint64_t *pcs, unsigned n);

#endif
