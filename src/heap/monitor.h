// SPDX-License-Identifier: MIT
// The monitor: looks at the canaries of all blocks, over and over. One cruise visits each word of a list once.
//
// It reads memory that the program may be freeing, using anew or unmapping at this moment, so what it sees may be no head at
// all. It does not guess.
//
// A head that is valid and lives, but whose tail is wrong: the tail is read again, then the head. Tickets are not used twice, so
// if it is the same head the block lived all the time, and what was seen is an error.
//
// A head that is not valid is a suspect. A notice is put before a block is given back; so if an exact round of deliveries that
// began after the look brings no notice, the block was ours when it was looked at, and as heads are valid at any moment, what
// was seen is an error. It is judged by the next cruise, which meets all notices that came since before it meets the word; those
// that came before the word, from a thread that was quicker, were met by the cruise that suspected it. The head must also look
// the same a second time: a copy is not one indivisible read.
//
// What holds between two operations of who has the lock (monitor_valid):
//   suspects [0, nsuspects) have their bits in suspect_bits; no two have the same word; seen <= cruises
//   live <= known, of the last whole cruise; known = 0 before the first
//   matched + |dead| <= notices that were delivered to the list: each is counted once
#ifndef MOAT_HEAP_MONITOR_H
#define MOAT_HEAP_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/block.h"

int monitor_init(unsigned lists);

void monitor_lock(unsigned list);  // rank 2
bool monitor_trylock(unsigned list);
bool monitor_await_lock(unsigned list);  // false after some seconds: somebody does not give it up
void monitor_unlock(unsigned list);
void monitor_hurry(bool hurry);  // whoever cruises gives up its lock soon, until false

struct monitor_stats {
    uint64_t cruises;  // since the start
    uint64_t known;    // words met by the last whole cruise: blocks that live, and some that were freed
    uint64_t live;     // those that live
};

// One cruise. False if it was stopped. The lock must be held.
bool monitor_once(unsigned list);
// Removes the words of blocks that were freed, and looks at none: much quicker. The lock must be held.
void monitor_sweep(unsigned list);
uint64_t monitor_backlog(unsigned list);  // notices that came and whose words are still there, about
struct monitor_stats monitor_stats(unsigned list);
bool monitor_valid(unsigned list);         // the lock must be held
bool monitor_all_valid(void);              // the deliverer's lock and those of all lists must be held
bool monitor_has_suspects(unsigned list);  // which another cruise must judge; the lock must be held

// The end of the process, or the need to know: delivers, cruises and confirms until nothing is suspect, in the calling thread.
// False if the locks could not be had.
bool monitor_all_now(void);

// Shows all blocks that live; the lock must be held, and monitor_all_now have been called. `head` may be damaged.
typedef void monitor_visitor(void *ctx, uint64_t word, const struct block_head *head);
void monitor_visit(unsigned list, monitor_visitor *visit, void *ctx);

#endif
