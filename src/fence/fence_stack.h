// SPDX-License-Identifier: MIT
// The stack of programs with recursive functions. Fenced functions have larger frames, and moat's own need
// room behind the last call that is made, so the context's stack is made larger than the program has set it.
// The program gets its own number.
#ifndef MOAT_FENCE_FENCE_STACK_H
#define MOAT_FENCE_FENCE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/context.h"

// Returns the bytes of the stack after which recursive functions call no more. Requires ctx to be current.
uint32_t fence_stack_room(struct context *ctx);
void fence_stack_set(struct context *ctx);     // the program has set the limit
void fence_stack_forget(struct context *ctx);  // the context has ended
// Returns whether the limit differs from the program's, which is then stored.
bool fence_stack_limit(struct context *ctx, size_t *bytes);

#endif
