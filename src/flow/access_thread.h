// SPDX-License-Identifier: MIT
// What the instructions of a proof program (proof.h) stand for in one thread of a launch, as a number.
//
// A counter of a loop has the value that the caller gives; what memory decides, or the way that the thread
// took, has none. Numbers are those that the thread's registers hold, as far as the program tells: whoever
// shows them compares the address that comes out with the one that the thread used.
#ifndef MOAT_FLOW_ACCESS_THREAD_H
#define MOAT_FLOW_ACCESS_THREAD_H

#include "flow/proof.h"

struct access_thread {
    const struct proof *p;
    const struct proof_launch *l;
    uint32_t block[3], thread[3];
    uint64_t base;     // the address that a BASE stands for
    uint32_t loop;     // the LOOP whose counter is known; PROOF_NONE: none
    uint64_t counter;  // its value
    uint32_t steps;    // instructions looked at, which are limited
    uint32_t other;    // a LOOP whose counter was asked for and is not known; PROOF_NONE
};

// Each returns false if the value is not known.
bool access_thread_value(struct access_thread *t, uint32_t insn, int64_t *value);
bool access_thread_holds(struct access_thread *t, uint32_t predicate, bool *holds);
bool access_thread_address(struct access_thread *t, uint32_t insn, uint64_t *address);  // of the ACCESS there

// Finds out whether the thread's address is this one, for the ACCESS at insn. A counter that the address
// depends on is computed from it: t->loop and t->counter then have it.
bool access_thread_explains(struct access_thread *t, uint32_t insn, uint64_t address);

#endif
