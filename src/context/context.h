// SPDX-License-Identifier: MIT
// The registry of contexts: which the program has, who holds them, and what modes need to work in them.
//
// A row exists from the call that made or retained the context, or from the first use of one that nobody told
// of, until context_forget. Modes see a row only once it is used: then it has a number, by which they keep data
// of their own.
//
//   numbered[n] == h  <=>  h->used and h->number == n
#ifndef MOAT_CONTEXT_CONTEXT_H
#define MOAT_CONTEXT_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/context_device.h"
#include "driver/driver.h"

enum {
    CONTEXT_ROWS = 256,     // contexts that are known at a time
    CONTEXT_CONTEXTS = 64,  // of them, those in which modes work
};

struct context {
    _Atomic(CUcontext) handle;  // NULL: the row is free
    _Atomic(bool) used;         // a mode has worked in it: what follows holds
    unsigned number;            // below CONTEXT_CONTEXTS
    CUdevice device;
    _Atomic(CUstream) stream;  // of our own; NULL: not made yet
    _Atomic uint64_t anchor;   // plain memory that stays, see context_copy.c; 0: none yet
    _Atomic uint64_t peers;    // devices that the program let reach this context's memory
    _Atomic uint32_t held;     // how many hold it, see context_hold; the highest bit: it is closed
    // Under the lock of context.c.
    bool lives;         // the program has made or retained it, and not ended it
    unsigned attached;  // how often the program has attached to it: its creation does not count
};

// --- what the program has ----------------------------------------------------------------------------------

void context_begun(CUcontext context);  // made or retained; no green one
bool context_lives(CUcontext context);  // false: it does not, or there was no room for it
// The contexts that live: how many. *all is false once there were more than fit.
unsigned context_list(CUcontext list[CONTEXT_ROWS], bool *all);
bool context_only_one(void);  // the program has had one context at most, green ones not counted

// cuCtxAttach, the oldest way to hold a context, and its opposite. context_detach returns true if somebody else
// holds it still, or may: once there were more than fit, nobody knows. all: whoever held it does so no more.
void context_attach(CUcontext context);
bool context_detach(CUcontext context, bool all);

// A context is no more: the row is free. The hooks do it when all modes were told; a mode whose own thread
// visits rows does it before that thread can go on.
void context_forget(CUcontext context);
void context_after_fork(void);

// --- where modes work --------------------------------------------------------------------------------------

// NULL: none is current, or a green one (green.h), or calls that all modes need are missing.
struct context *context_current(void);
// The same for any context, the current one for NULL; *pushed says that it was made current, and context_leave
// must follow.
struct context *context_enter(CUcontext context, bool *pushed);
// The same for the context to which belongs what the program makes now: a green one's things are the primary
// one's.
struct context *context_enter_owner(bool *pushed);
void context_leave(bool pushed);
// Of one that was found before; NULL: it is gone.
struct context *context_find(CUcontext context);
unsigned context_number(const struct context *ctx);  // below CONTEXT_CONTEXTS
struct context *context_of_number(unsigned number);  // NULL: no context's place

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

// Calls of ours in between are allowed whatever the application is capturing, and do not disturb it.
CUstreamCaptureMode context_capture_relax(void);
void context_capture_restore(CUstreamCaptureMode mode);

#endif
