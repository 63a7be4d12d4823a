// SPDX-License-Identifier: MIT
// Barriers in shared memory that count arrivals and bytes. Internal to src/exec.
//
// A barrier is 64 bits, and so is the state that an arrival returns: the barrier before the arrival.
//
//   bits 0 to 19    arrivals that the phase still waits for
//   bits 20 to 39   arrivals that a phase takes
//   bits 40 to 61   bytes that the phase still waits for, signed
//   bit 63          the phase's number, modulo 2
//
// A phase ends when both its pending counts are 0. One thread runs all blocks of a cluster, so nothing here
// is atomic.
#ifndef MOAT_EXEC_MBARRIER_H
#define MOAT_EXEC_MBARRIER_H

#include "exec/warp.h"

// most arrivals, and most bytes
enum { MBARRIER_MOST = (1 << 20) - 1 };

// flags
enum {
    MBARRIER_DROP = 1,    // arrive_drop
    MBARRIER_EXPECT = 2,  // arrive.expect_tx: c has the bytes
    MBARRIER_PARITY = 4,  // test_wait, try_wait: b is a phase's parity, not a state
    MBARRIER_TRY = 8,     // try_wait
};

// i + 1 carries the barrier's address.
exec_fn mbarrier_init;  // b: arrivals
exec_fn mbarrier_inval;
exec_fn mbarrier_arrive;    // d: state, or 0; b: arrivals, 0 for one
exec_fn mbarrier_expect;    // b: bytes
exec_fn mbarrier_complete;  // b: bytes
exec_fn mbarrier_wait;      // d: predicate, b: state or parity
exec_fn mbarrier_pending;   // d, a: state; no address

// Bytes have arrived for the barrier at `address`; `at` is the instruction that carries the address. Returns
// false after a fault of w.
bool mbarrier_bytes(struct exec_warp *w, const struct exec_insn *at, unsigned lane, uint64_t address,
                    uint32_t bytes);

#endif
