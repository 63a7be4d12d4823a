// SPDX-License-Identifier: MIT
// A thread of a launch that uses a certain address, for accesses whose address is a sum of multiples of
// thread and block indices.
#ifndef MOAT_FLOW_ACCESS_WITNESS_H
#define MOAT_FLOW_ACCESS_WITNESS_H

#include "flow/access_thread.h"

// Returns the least distance of two addresses of the ACCESS at insn by one step of an index; 0: it does not
// change, or is not known.
uint64_t access_witness_step(struct access_thread *t, uint32_t insn);

// Finds a thread and stores it in t. Returns false if it finds none, though there may be one: then its
// indices are not those of a sum, or several of them step over each other's range. Conditions before the
// access are the caller's to know.
bool access_witness(struct access_thread *t, uint32_t insn, uint64_t address);

#endif
