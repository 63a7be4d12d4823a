// SPDX-License-Identifier: MIT
// Reports equal errors once. Errors are equal if they have the same type, access, call, kernel, place in it,
// stacks, and client. Addresses, threads, devices and processes do not matter.
//
// No heap: the table is the caller's memory. When it is full, an error that is not in it counts as new each
// time.
#ifndef MOAT_REPORT_FOLD_H
#define MOAT_REPORT_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "report/report.h"

struct fold_slot {
    uint64_t key;  // 0: empty
    uint64_t id, count;
    bool foretold;  // the owner's: it was reported before it happened
};

// used <= mask + 1; the search for a slot starts at key & mask
struct fold {
    struct fold_slot *slots;
    uint32_t mask, used;
};

// Initialises a table. slots: `count` zeroed ones; count is a power of two.
void fold_init(struct fold *f, struct fold_slot *slots, uint32_t count);

// Returns a hash of what equal reports have in common, never 0. Frames count by object and offset, so that
// the key is the same in all processes of a program; by pc where there is no object.
uint64_t fold_key(const struct report *r);

// Returns a key of names, for reports of other runs and other builds: source files, functions and kernels
// instead of offsets; the lines of kernels only if `lines`; no client, because its number is valid in one run
// only. The report must have been symbolised.
uint64_t fold_name_key(const struct report *r, bool lines);

// Returns the stack of the place of the error: the report's own. A leak, and what a monitor of the CPU
// heap finds later, in no call and no kernel, have that of the allocation.
const struct report_stack *fold_stack(const struct report *r);

// Returns the slot of a key, which may be any number but 0; a new slot has a count of 0. Returns NULL if the
// key is new and the table is full.
struct fold_slot *fold_find(struct fold *f, uint64_t key);

#endif
