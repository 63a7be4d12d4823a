// SPDX-License-Identifier: MIT
// The registry of modules and libraries that were loaded rewritten: one row for each, with the results of the
// passes and with the modes' own data.
//
// A row is in the registry from the load until the unload, or, for a module, until the end of its context.
// Several threads may use it at once, in two ways:
//   hold   the row stays valid, and all that does not change after the load can be read
//   take   besides, the data of one client is exclusively the caller's. Clients do not exclude each other
// No lock is held meanwhile, so the driver may be called. A row that is unloaded meanwhile is no longer
// found, and its last user frees it. A handle that is reused gets a new row.
#ifndef MOAT_REWRITE_MODULES_H
#define MOAT_REWRITE_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "pass/pass.h"

enum { MODULES_CLIENTS = 4 };

struct modules_alias;
struct rewrite_later;

// Invariants whenever nobody holds the lock of modules.c; modules_valid checks them:
//   the row is in the registry  =  !gone || holds + bits(taken) > 0
//   rows of one handle with !gone  <=  1
//   taken has bit c  implies  data[c] != NULL
//   more[c] != NULL  implies  taken has bit c
//   library  implies  context == NULL;  !library  implies  no aliases
//   aliases of one context in one row  <=  1;  aliases of one module in all rows with !gone  <=  1
struct modules_row {
    // These members do not change after the load.
    const void *handle;
    bool library;
    CUcontext context;  // the owner of a module, never a green one; NULL: a library, or none was current
    unsigned nparts;
    struct pass_result **parts;
    // Of a program's module: what checked variants of its kernels are compiled from when they are wanted.
    // NULL: they are in it.
    struct rewrite_later *later;
    // Of a module with such variants: the program's module, held and whose parts it has. NULL: this is one.
    struct modules_row *of;
    // Indexed by client. Set once by modules_set; what it points to belongs to the thread that has taken the
    // row for the client.
    void *data[MODULES_CLIENTS];
    struct modules_row *more[MODULES_CLIENTS];  // next of the rows that modules_take_all took
    // Protected by the lock of modules.c.
    struct modules_row *next;  // in its bucket
    struct modules_alias *aliases;
    unsigned holds;
    uint32_t taken;  // a bit for each client
    bool gone;       // unloaded
};

// Returns a number for a mode that keeps data in rows. `release` frees the data of one row; it may be called
// on any thread, with locks of the caller held, so it must take none.
unsigned modules_client(void (*release)(void *data));

// --- loads and unloads -------------------------------------------------------------------------------------

// Adds a module of the current context, or a library, that was loaded from these parts, which the row owns
// from now on. The row is held for the caller. Returns NULL if out of memory; the parts then still belong to
// the caller.
struct modules_row *modules_add(const void *handle, bool library, struct pass_result **parts,
                                unsigned nparts);
// The same for a module that holds variants of the kernels of a module or library, `of`, which is held.
struct modules_row *modules_add_variants(const void *handle, struct modules_row *of);
// Gives a held row the data of a client that has none in it; from now on the client can take the row.
void modules_set(struct modules_row *row, unsigned client, void *data);

// Records that cuLibraryGetModule returned this module for a library in the current context.
void modules_alias(const void *library, CUmodule module);

// Holds the row that the driver is about to unload, so that modules_gone has it even if the driver reuses its
// handle. Returns NULL if there is none.
struct modules_row *modules_unloading(const void *handle);
void modules_gone(struct modules_row *row);  // the driver unloaded it; the row is held, or NULL
// Removes the modules of a context that has ended, and the aliases in it.
void modules_context_gone(CUcontext context);

// Forgets all rows in the child of a fork, where no driver works. Clients keep their numbers.
void modules_after_fork(void);

// --- use ---------------------------------------------------------------------------------------------------

// Returns NULL if there is no such row, if the client has no data in it, or if another thread has taken it
// for the client.
struct modules_row *modules_take(unsigned client, const void *handle);
// Takes every row that modules_take could take, linked by more[client].
struct modules_row *modules_take_all(unsigned client);
// Gives back what either of them returned; NULL is fine.
void modules_give(unsigned client, struct modules_row *rows);

// Holds the row of a handle, or of the library that has it as an alias. Returns NULL if there is none.
struct modules_row *modules_hold(const void *handle);
void modules_release(struct modules_row *row);  // NULL is fine

bool modules_valid(void);  // whether the invariants above hold; for tests

#endif
