// SPDX-License-Identifier: MIT
// Equal reports are told once: same type, access, call, kernel, place in it, stacks, and client. Addresses,
// threads, devices and processes do not matter.
//
// No heap: the table is the caller's memory. When it is full, what is new to it is new each time.
#ifndef MOAT_REPORT_FOLD_H
#define MOAT_REPORT_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "report/report.h"

struct fold_slot {
    uint64_t key;  // 0: empty
    uint64_t id, count;
};

// used <= mask + 1; slots are looked for from key & mask on
struct fold {
    struct fold_slot *slots;
    uint32_t mask, used;
};

// slots: zeroed, `count` of them, a power of two.
void fold_init(struct fold *f, struct fold_slot *slots, uint32_t count);

// What equal reports have in common, never 0. Frames count by object and offset, so that it is the same in all
// processes of a program; by pc where there is no object.
uint64_t fold_key(const struct report *r);

// The same by names, for reports of other runs and other builds: source files, functions and kernels instead of
// offsets; the lines of kernels only if asked for; no client, for its number is of one run. The report must
// have been symbolised.
uint64_t fold_name_key(const struct report *r, bool lines);

// The slot of a key that is not 0, whoever made it; a new one has a count of 0. NULL: it is new, and the table is full.
struct fold_slot *fold_find(struct fold *f, uint64_t key);

#endif
