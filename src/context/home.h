// SPDX-License-Identifier: MIT
// The registry of contexts: which the program has, who holds them, and what modes need to work in them.
//
// A row exists from the call that made or retained the context, or from the first use of one that nobody told
// of, until home_forget. Modes see a row only once it is used: then it has a number, by which they keep data
// of their own.
//
//   numbered[n] == h  <=>  h->used and h->number == n
#ifndef MOAT_CONTEXT_HOME_H
#define MOAT_CONTEXT_HOME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/home_device.h"
#include "driver/driver.h"

enum {
    HOME_ROWS = 256,     // contexts that are known at a time
    HOME_CONTEXTS = 64,  // of them, those in which modes work
};

struct home {
    _Atomic(CUcontext) context;  // NULL: the row is free
    _Atomic(bool) used;          // a mode has worked in it: what follows holds
    unsigned number;             // below HOME_CONTEXTS
    CUdevice device;
    _Atomic(CUstream) stream;  // of our own; NULL: not made yet
    _Atomic uint64_t anchor;   // plain memory that stays, see home_copy.c; 0: none yet
    _Atomic uint64_t peers;    // devices that the program let reach this context's memory
    // Under the lock of home.c.
    bool lives;         // the program has made or retained it, and not ended it
    unsigned attached;  // how often the program has attached to it: its creation does not count
};

// --- what the program has ----------------------------------------------------------------------------------

void home_begun(CUcontext context);  // made or retained; no green one
bool home_lives(CUcontext context);  // false: it does not, or there was no room for it
// The contexts that live: how many. *all is false once there were more than fit.
unsigned home_list(CUcontext list[HOME_ROWS], bool *all);
bool home_only_one(void);  // the program has had one context at most, green ones not counted

// cuCtxAttach, the oldest way to hold a context, and its opposite. home_detach returns true if somebody else
// holds it still, or may: once there were more than fit, nobody knows. all: whoever held it does so no more.
void home_attach(CUcontext context);
bool home_detach(CUcontext context, bool all);

// A context is no more: the row is free. The hooks do it when all modes were told; a mode whose own thread
// visits rows does it before that thread can go on.
void home_forget(CUcontext context);
void home_after_fork(void);

// --- where modes work --------------------------------------------------------------------------------------

// NULL: none is current, or a green one (green.h), or calls that all modes need are missing.
struct home *home_current(void);
// The same for any context, the current one for NULL; *pushed says that it was made current, and home_leave
// must follow.
struct home *home_enter(CUcontext context, bool *pushed);
// The same for the context to which belongs what the program makes now: a green one's things are the primary
// one's.
struct home *home_enter_owner(bool *pushed);
void home_leave(bool pushed);
// Of one that was found before; NULL: it is gone.
struct home *home_find(CUcontext context);
unsigned home_number(const struct home *home);  // below HOME_CONTEXTS
struct home *home_of_number(unsigned number);   // NULL: no context's place
// Calls of ours in between are allowed whatever the application is capturing, and do not disturb it.
CUstreamCaptureMode home_calm(void);
void home_stir(CUstreamCaptureMode mode);

#endif
