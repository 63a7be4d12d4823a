// SPDX-License-Identifier: MIT
// What --mode=count knows of each kernel: rows. A kernel's word in context/kernels.h is its row, so that a
// launch costs one look into a table. What the device counts comes in from count_read.h.
//
// A kernel that was rewritten counts its launches itself, so that graphs and kernels that launch kernels are
// counted too, and a launch that is only captured is not. Of the others, and where that could not be read,
// there are the launch calls.
//
// Kernels of equal names have one row, whichever modules they are in, but those that were rewritten another
// one than those that were not: the device knows nothing of the latter's launches. Rows and handles stay for
// the life of the process.
#ifndef MOAT_COUNT_COUNT_H
#define MOAT_COUNT_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "context/kernels.h"
#include "pass/pass_count.h"

struct count_row {
    struct count_row *next;     // in its bucket
    const char *name;           // names_keep's
    bool counted;               // it was rewritten
    _Atomic uint64_t launches;  // by launch calls. Relaxed: a number of its own, read at the end
    // Under count.c's lock.
    bool function, approximate, lost;  // lost: the device has counted more than could be read
    struct pass_count_sums sums;
};

struct count_state {
    bool on;
    unsigned number;  // of the word that kernels have for the mode
};
extern struct count_state count_state;

int count_start(void);  // 0, or -ENOMEM: kernels have no word left, and count_state.on stays false
void count_after_fork(void);

// The row of that name, made if there is none. NULL: out of memory, or no name.
struct count_row *count_row(const char *name, bool counted);
// The same where nobody knows whether it was rewritten: if one of that name was, it is taken for that one.
struct count_row *count_row_likely(const char *name);

// What is known of a row that is counted.
void count_is_rewritten(struct count_row *row, bool function, bool approximate);
// Adds what has come since the last time: now - before, field by field.
void count_add(struct count_row *row, const struct pass_count_sums *now,
               const struct pass_count_sums *before);

// What the device has counted of it could not be read, or not all of it.
void count_is_lost(struct count_row *row);

// A CUfunction or CUkernel has this row; NULL changes nothing. A handle that comes again gets its new one.
void count_handle(const void *handle, struct count_row *row);
struct count_row *count_row_of(const void *handle);  // NULL: not known

void count_launch_unknown(const void *handle);  // the first launch by a handle

static inline void count_launch(const void *handle)
{
    struct kernel *k = kernels_find(handle);
    // Acquire: its partner is the release in count.c, after the row was filled.
    struct count_row *row =
        k ? atomic_load_explicit(&k->data[count_state.number], memory_order_acquire) : NULL;
    if (row)
        atomic_fetch_add_explicit(&row->launches, 1, memory_order_relaxed);
    else
        count_launch_unknown(handle);
}

// Sends all rows, those who move most bytes first.
void count_report(void);

#endif
