// SPDX-License-Identifier: MIT
// The monitor checks the canaries of all blocks, again and again. One pass visits each word of a list once.
//
// It reads memory that the program may be freeing, reusing or unmapping at this moment, so what it reads may
// not be a head at all. It never guesses:
//
// If a head is valid and live but its tail is wrong, the tail is read again, then the head. Tickets are not
// used twice, so an unchanged head proves that the block was live all the time, and the wrong tail is an
// error.
//
// If a head is not valid, the block is a suspect. A notice is put before a block is given back. So if an
// exact delivery round that began after the read brings no notice, the block was ours when it was read, and
// as heads are valid at any moment, the invalid head is an error. The next pass decides: it meets all notices
// that came since before it meets the word; notices that came before the word, from a faster thread, were met
// by the pass that suspected it. The head must also be the same a second time, as a copy is not one atomic
// read.
//
// What holds between two operations of the lock's holder (monitor_valid):
//   suspects [0, nsuspects) have their bits in suspect_bits; no two have the same word; seen <= passes
//   live <= known, of the last complete pass; known = 0 before the first
//   matched + |dead| <= notices delivered to the list: each is counted once
#ifndef MOAT_HEAP_MONITOR_H
#define MOAT_HEAP_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/block.h"

int monitor_init(unsigned lists);

void monitor_lock(unsigned list);  // rank 2
bool monitor_trylock(unsigned list);
bool monitor_await_lock(unsigned list);  // returns false after some seconds if the holder keeps it
void monitor_unlock(unsigned list);
void monitor_hurry(bool hurry);  // true: running passes stop soon and release their locks; until false

struct monitor_stats {
    uint64_t passes;  // since the start
    uint64_t known;   // words met by the last complete pass: live blocks, and some freed ones
    uint64_t live;    // live blocks among them
};

// Makes one pass. Returns false if it was stopped. The lock must be held.
bool monitor_once(unsigned list);
// Removes the words of freed blocks without checking any block, which is much faster. The lock must be held.
void monitor_sweep(unsigned list);
uint64_t monitor_backlog(unsigned list);  // delivered notices whose words are still there, about
struct monitor_stats monitor_stats(unsigned list);
bool monitor_valid(unsigned list);         // the lock must be held
bool monitor_all_valid(void);              // the deliverer's lock and those of all lists must be held
bool monitor_has_suspects(unsigned list);  // suspects that another pass must decide; the lock must be held

// Delivers and makes passes in the calling thread until nothing is suspect: at exit, or to judge an invalid
// free. Returns false if the locks could not be taken.
bool monitor_all_now(void);

// Visits all blocks of a list whose words are not removed; the lock must be held, and monitor_all_now must
// have been called. `head` may be damaged.
typedef void monitor_visitor(void *ctx, uint64_t word, const struct block_head *head);
void monitor_visit(unsigned list, monitor_visitor *visit, void *ctx);

#endif
