// SPDX-License-Identifier: MIT
// The stack of an interpreter, in place of its own machine code's. While a thread has such frames, stacks
// that are captured on it (stack.h) consist of them. Each frame is kept once and stands in a stack as an
// address that no code can have.
#ifndef MOAT_TRACK_SCRIPT_FRAMES_H
#define MOAT_TRACK_SCRIPT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { SCRIPT_FRAMES_MOST = 8 };

struct script_frame {
    const char *function, *file;  // valid until the process ends
    uint32_t line;
};

// Sets the frames of the calling thread: lines "FUNCTION\tFILE\tLINE", innermost first. Those after the first
// SCRIPT_FRAMES_MOST, and lines of another form, are ignored. NULL: it has none.
void script_frames_set(const char *text);

// Stores the addresses of the calling thread's frames, at most `most`, and returns how many.
unsigned script_frames_get(uint64_t *pcs, unsigned most);

// Keeps a frame and returns its address; 0 if there is no room left.
uint64_t script_frames_keep(const char *function, const char *file, uint32_t line);

// Returns whether an address of a stack is a frame of this kind, and stores the frame.
bool script_frames_find(uint64_t pc, struct script_frame *out);

// Returns whether a thread was given frames.
bool script_frames_seen(void);

void script_frames_after_fork(void);

#endif
