// SPDX-License-Identifier: MIT
// Call stacks of the application, each kept once and named by a number.
#ifndef MOAT_TRACK_STACK_H
#define MOAT_TRACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STACK_DEPTH_MAX = 64 };

// Once, before the first capture and from one thread: room for `bytes` of stacks (0: a default), reserved as addresses
// and taken as it is used. Loads what the unwinder loads late. -ENOMEM: captures then give 0.
int stack_init(size_t bytes);

// Return addresses of the calling thread, innermost first, at most `depth`. Frames within the object that holds this
// code are left out. With skip_until, so is all before the frame that returns to that address, where there is one (a
// hook passes its __builtin_return_address(0)). 0: no frame, or out of room. Thread-safe; takes no memory but the
// room reserved and no lock of ours.
uint32_t stack_capture(const void *skip_until, unsigned depth);

// The frames of a stack, innermost first, at most `most`; returns how many there are. 0 for id 0 or an unknown one.
// They are return addresses: the call is at pc - 1.
unsigned stack_frames(uint32_t id, uint64_t *pcs, unsigned most);

// The object (path; the main program's is its own path, not "") that pc lies in now, and pc's address in the numbering
// of the object's file. false if it lies in none.
bool stack_locate(uint64_t pc, char *object, size_t size, uint64_t *offset);

struct stack_stats {
    uint64_t stacks, bytes, refused;  // refused: captures that found no room
};
void stack_stats(struct stack_stats *stats);

// For tests: code addresses [from, to) are taken for ours, instead of the object's.
void stack_own(uint64_t from, uint64_t to);

// For tests: undoes stack_init; ids are void.
void stack_forget(void);

// For tests: keeps a stack given by the caller, as stack_capture does.
uint32_t stack_keep(const uint64_t *pcs, unsigned n);

#endif
