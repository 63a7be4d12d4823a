// SPDX-License-Identifier: MIT
// Delivery: moves words from windows and rings into the block lists. A round visits every thread; it is
// complete when each window that had words when the round began has been emptied. Whoever delivers holds the
// deliverer's lock: usually the deliverer thread; at exit, and when an invalid free must be judged, the
// thread that needs the result.
//
// What holds while somebody has the lock and is not at work (deliver_valid):
//   exact_done <= exact_wanted
//   sum of notices over all lists <= delivered, as each notice is a delivered word
// and for each list, for the holder of its lock too (monitor_all_valid):
//   notices = matched + notices that wait for their words + notices that no pass has met
#ifndef MOAT_HEAP_DELIVER_H
#define MOAT_HEAP_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/block_list.h"

enum { DELIVER_MOST_LISTS = 16 };

int deliver_init(unsigned lists);  // block lists, one for each monitor
unsigned deliver_lists(void);
struct block_list *deliver_list(unsigned i);

void deliver_lock(void);
bool deliver_trylock(void);
void deliver_unlock(void);

// Makes one round and returns the number of words delivered. The lock must be held. exact: every thread is
// asked for its window, so when the round is complete, each word that any thread put before the round began
// is delivered.
uint64_t deliver_round(bool exact);

// Delivers only what lies in rings; waits for no thread. The lock must be held.
void deliver_rings(void);

// Returns the number of notices delivered to a list so far.
uint64_t deliver_notices(unsigned list);

// Returns the number of words delivered so far, to all lists.
uint64_t deliver_words(void);

// Exact rounds are numbered. Requests one and returns the number it will have.
uint64_t deliver_ask_exact(void);
bool deliver_exact_wanted(void);  // whether one was requested and is not complete
// Returns the number up to which all exact rounds are complete.
uint64_t deliver_exact_done(void);

bool deliver_valid(void);  // the lock must be held

struct producer;
void deliver_after_fork(struct producer *mine);  // in the child: the other threads do not exist

#endif
