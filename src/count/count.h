// SPDX-License-Identifier: MIT
// What --mode=count knows of each kernel: its row. A kernel's word in context/kernels.h points to the row, so
// that a launch costs one table look-up. What the device counts comes from count_read.h.
//
// A rewritten kernel counts its launches itself, so that graphs and kernels that launch kernels are counted
// too, and a launch that is only captured is not. For other kernels, and where the device's counts could not
// be read, launch calls are counted.
//
// Kernels of the same name share a row, whichever modules they are in; but rewritten ones have another row
// than the rest, since the device does not count the launches of those. Rows and handles stay for the life of
// the process.
#ifndef MOAT_COUNT_COUNT_H
#define MOAT_COUNT_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "context/kernels.h"
#include "pass/pass_count.h"

struct count_row {
    struct count_row *next;     // in its bucket
    const char *name;           // from names_keep
    bool counted;               // it was rewritten
    _Atomic uint64_t launches;  // by launch calls. Relaxed: it stands alone, and is read at the end
    // Under count.c's lock.
    bool function, approximate, lost;  // lost: the device has counted more than could be read
    struct pass_count_sums sums;
};

struct count_state {
    bool on;
    unsigned number;  // of the kernels' word for this mode
};
extern struct count_state count_state;

// Returns 0, or -ENOMEM if kernels have no word left; then count_state.on stays false.
int count_start(void);
void count_after_fork(void);

// Returns the row of a name, made if there is none; NULL if out of memory or without a name.
struct count_row *count_row(const char *name, bool counted);
// Returns the row of a kernel that may or may not have been rewritten: the rewritten one of that name, if
// there is one.
struct count_row *count_row_likely(const char *name);

// Sets what is known of a rewritten function: whether it is no kernel, and whether its counts are
// approximate.
void count_is_rewritten(struct count_row *row, bool function, bool approximate);
// Adds now - before, member by member.
void count_add(struct count_row *row, const struct pass_count_sums *now,
               const struct pass_count_sums *before);

// Records that the device's counts could not be read, or not all of them.
void count_is_lost(struct count_row *row);

// Sets the row of a CUfunction or CUkernel; NULL changes nothing. If a handle is reused, its row is replaced.
void count_handle(const void *handle, struct count_row *row);
struct count_row *count_row_of(const void *handle);  // NULL: not known

void count_launch_unknown(const void *handle);  // the first launch by a handle

static inline void count_launch(const void *handle)
{
    struct kernel *k = kernels_find(handle);
    // Acquire pairs with the release in set_row, after the row was filled.
    struct count_row *row =
        k ? atomic_load_explicit(&k->data[count_state.number], memory_order_acquire) : NULL;
    if (row)
        atomic_fetch_add_explicit(&row->launches, 1, memory_order_relaxed);
    else
        count_launch_unknown(handle);
}

// Reports all rows, those that moved the most bytes first.
void count_report(void);

#endif
