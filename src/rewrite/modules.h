// SPDX-License-Identifier: MIT
// The registry of modules and libraries that were loaded rewritten: one row for each, with what the passes
// tell of it and with what modes know of it.
//
// A row is in the registry from the load until the unload, or, for a module, until the end of its context.
// Several may use it at once, in two ways:
//   hold   the row stays where it is, and whatever does not change after the load can be read
//   take   besides, the data of one client is the caller's alone. Clients do not hinder each other
// No lock is held meanwhile, so the driver may be called. A row that is unloaded meanwhile is found no more,
// and whoever gives it back last frees it. A handle that comes again is a new row.
#ifndef MOAT_REWRITE_MODULES_H
#define MOAT_REWRITE_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "pass/pass.h"

enum { MODULES_CLIENTS = 4 };

struct modules_alias;

// What holds whenever nobody has the lock of modules.c, and modules_valid checks:
//   the row is in the registry  =  !gone || holds + bits(taken) > 0
//   rows of one handle with !gone  <=  1
//   taken has bit c  implies  data[c] != NULL
//   more[c] != NULL  implies  taken has bit c
//   library  implies  context == NULL;  !library  implies  no aliases
//   aliases of one context in one row  <=  1;  aliases of one module in all rows with !gone  <=  1
struct modules_row {
    // These do not change after the load.
    const void *handle;
    bool library;
    CUcontext context;  // the owner of a module, no green one; NULL: a library's, or none was current
    unsigned nparts;
    struct pass_result **parts;
    // By client. Set once by modules_set; what it points to belongs to whoever has taken the row for it.
    void *data[MODULES_CLIENTS];
    struct modules_row *more[MODULES_CLIENTS];  // the next one of those that modules_take_all took
    // Under the lock of modules.c.
    struct modules_row *next;  // in its bucket
    struct modules_alias *aliases;
    unsigned holds;
    uint32_t taken;  // a bit for each client
    bool gone;       // unloaded
};

// A number for a mode that keeps data in rows. The function frees the data of one row; it may be called on
// any thread, and with locks of the caller's held, so it takes none.
unsigned modules_client(void (*release)(void *data));

// --- loads and unloads -------------------------------------------------------------------------------------

// A module, of the context that is current, or a library was loaded from these parts, which the row owns from
// now on. The row is held for the caller. Returns NULL if out of memory; then the parts are still the
// caller's.
struct modules_row *modules_add(const void *handle, bool library, struct pass_result **parts,
                                unsigned nparts);
// Gives a held row the data of a client, which had none: from now on the client can take it.
void modules_set(struct modules_row *row, unsigned client, void *data);

// cuLibraryGetModule gave that module for a library, in the context that is current.
void modules_alias(const void *library, CUmodule module);

// Holds the row that the driver is about to unload, so that modules_gone finds it though the driver may have
// given its handle out again. Returns NULL if there is none.
struct modules_row *modules_unloading(const void *handle);
void modules_gone(struct modules_row *row);  // the driver did; the row is held, or NULL
// A context is no more: its modules and the aliases in it went with it.
void modules_context_gone(CUcontext context);

// In the child of a fork, where no driver works: forgets all rows. Clients keep their numbers.
void modules_after_fork(void);

// --- use ---------------------------------------------------------------------------------------------------

// Returns NULL if there is no such row, if the client has no data in it, or if another thread has taken it
// for the client.
struct modules_row *modules_take(unsigned client, const void *handle);
// All that modules_take would give, linked by more[client].
struct modules_row *modules_take_all(unsigned client);
// Gives back what either of them returned; NULL is fine.
void modules_give(unsigned client, struct modules_row *rows);

// Holds the row of a handle, or of the library that has it as an alias. Returns NULL if there is none.
struct modules_row *modules_hold(const void *handle);
void modules_release(struct modules_row *row);  // NULL is fine

bool modules_valid(void);  // whether the equations above hold; for tests

#endif
