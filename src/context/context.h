// SPDX-License-Identifier: MIT
// The registry of contexts: which contexts the program has, who holds them, and what modes need to work in
// them.
//
// A row exists from the call that made or retained the context, or from the first use of a context that no
// call announced, until context_forget. Modes see a row only once it is used: then it has a number, by which
// they keep data of their own.
//
//   numbered[n] == ctx  <=>  ctx->used and ctx->number == n
#ifndef MOAT_CONTEXT_CONTEXT_H
#define MOAT_CONTEXT_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/context_device.h"
#include "driver/driver.h"

enum {
    CONTEXT_ROWS = 256,     // contexts known at a time
    CONTEXT_CONTEXTS = 64,  // of them, those that modes work in
};

struct context {
    _Atomic(CUcontext) handle;  // NULL: the row is free
    _Atomic(bool) used;         // a mode has worked in it: the members below are valid
    unsigned number;            // below CONTEXT_CONTEXTS
    CUdevice device;
    _Atomic(CUstream) stream;  // moat's own; NULL: not made yet
    _Atomic uint64_t anchor;   // plain memory that stays allocated, see context_copy.c; 0: none yet
    _Atomic uint64_t peers;    // devices that the program lets access this context's memory
    _Atomic uint32_t held;     // how many hold it, see context_hold; the highest bit: it is closed
    // Protected by the lock of context.c.
    bool lives;         // the program has made or retained it, and not ended it
    unsigned attached;  // how often the program has attached to it; its creation does not count
};

// --- what the program has ----------------------------------------------------------------------------------

void context_begun(CUcontext context);  // made or retained; not for green contexts
bool context_lives(CUcontext context);  // false: it is not alive, or it found no row
// Lists the contexts that are alive and returns how many. *all is false if a context ever found no row.
unsigned context_list(CUcontext list[CONTEXT_ROWS], bool *all);
bool context_only_one(void);  // true: the program has had at most one context; green contexts do not count

// cuCtxAttach and its opposite. context_detach returns true if the context is still held, or may be: once an
// attachment found no row, that is unknown. With `all`, every attachment is dropped.
void context_attach(CUcontext context);
bool context_detach(CUcontext context, bool all);

// Frees the row of a context that has ended. The hooks call it when all modes have been informed; a mode
// whose own thread visits rows calls it before that thread can go on.
void context_forget(CUcontext context);
void context_after_fork(void);

// --- where modes work --------------------------------------------------------------------------------------

// Returns the row of the current context. Returns NULL if no context is current, if it is a green one
// (green.h), if there is no room, or if the driver lacks calls that all modes need.
struct context *context_current(void);
// Returns the context that owns what the program makes now: of a green one, the primary context. Returns NULL
// if none is current.
CUcontext context_current_owner(void);
// Returns the row of any context, of the current one for NULL. *pushed is true if the context was made
// current; context_leave must follow.
struct context *context_enter(CUcontext context, bool *pushed);
// Enters, as context_enter does, the context that owns what the program makes now: things made in a green
// context belong to the primary context.
struct context *context_enter_owner(bool *pushed);
void context_leave(bool pushed);
// Returns the row of a context that a mode has worked in; NULL if it has ended.
struct context *context_find(CUcontext context);
unsigned context_number(const struct context *ctx);  // below CONTEXT_CONTEXTS
struct context *context_of_number(unsigned number);  // NULL: no context has this number

// Whoever works in a context for a mode, in a call of the program's, holds the context meanwhile, and its end
// waits for that: another thread may reset the device at any time. context_hold returns false if `context` is
// not the row's any more, or if it is closed and remains so for longer than a moment: the call is the
// driver's alone then.
bool context_hold(struct context *ctx, CUcontext context);
void context_release(struct context *ctx);
// Closes a context that is about to be destroyed, and waits until nobody holds it, for at most two seconds:
// whoever holds it may be waiting for a kernel. context_open: the context has not been destroyed.
void context_close(CUcontext context);
void context_open(CUcontext context);

// Returns whether the context is closed. If the driver gives its memory to another context meanwhile, it has
// ended this one.
bool context_is_closed(const struct context *ctx);

// Between these two, calls of moat's are allowed whatever the application is capturing, and do not disturb
// the capture.
CUstreamCaptureMode context_capture_relax(void);
void context_capture_restore(CUstreamCaptureMode mode);

#endif
