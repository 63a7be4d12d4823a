// SPDX-License-Identifier: MIT
// What moat's Python modules tell about the program: where its interpreter is, and what its tensors are
// (moat_link.py).
#ifndef MOAT_GUARD_SCRIPT_CALLS_H
#define MOAT_GUARD_SCRIPT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Sets the interpreter's frames of the calling thread (script_frames.h); NULL: none.
void moat_frames(const char *text);

// Names the memory of a tensor (tensor_label.h). Dimensions beyond those of a label are an error that is
// ignored.
void moat_tensor(uint64_t address, uint32_t element, uint32_t dimensions, const int64_t *shape,
                 const int64_t *strides, const char *name, const char *type);

// Lets moat ask for the frames of the calling thread when PyTorch allocates or frees: `frames` writes lines
// as for moat_frames, and the interpreter takes its lock for that. Most of PyTorch's functions have given the
// lock up before they allocate, so an allocation waits for it, as PyTorch's own record of allocations does; a
// free asks only if its thread holds the lock, since anything may be held where objects end. NULL: moat does
// not ask.
struct script_interpreter {
    void (*frames)(char *text, size_t size);
    int (*is_locked)(void);    // whether the calling thread holds the lock
    void *(*exception)(void);  // with the lock held: what is pending; NULL: nothing
    void *(*thread)(void);     // NULL: the calling thread is none of the interpreter's
};
void moat_frames_with(const struct script_interpreter *interpreter);

// Asks for the frames, so that stacks captured on this thread have them until script_calls_leave. Returns
// false if there are none or the thread has some already; then nothing is to be undone.
bool script_calls_enter(bool may_wait);
void script_calls_leave(bool entered);

#endif
