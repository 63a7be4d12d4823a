// SPDX-License-Identifier: MIT
// The second half of a word's way: from windows and rings into the warehouse. A round visits every thread; it is complete when
// each window that had words when the round began is empty. Whoever delivers holds the deliverer's lock: usually that is its
// thread, at the end and where a free makes no sense it is whoever needs to know.
//
// What holds while somebody has the lock and is not at work (deliver_valid):
//   exact_done <= exact_wanted: what was asked for later is not done
//   sum of notices over all lists <= delivered, each of them a word that was delivered
// and of each list, for who has its lock too (monitor_all_valid):
//   notices = matched + notices that wait for their words + notices that no cruise has met
#ifndef MOAT_HEAP_DELIVER_H
#define MOAT_HEAP_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/block_list.h"

enum { DELIVER_MOST_LISTS = 16 };

int deliver_init(unsigned lists);  // warehouses, one for each monitor
unsigned deliver_lists(void);
struct block_list *deliver_list(unsigned i);

void deliver_lock(void);
bool deliver_trylock(void);
void deliver_unlock(void);

// One round. exact: every thread is asked, so that each word put before the round began, by whichever thread, is delivered
// when it is complete. How many words there were. The lock must be held.
uint64_t deliver_round(bool exact);

// Only what lies in rings; waits for nobody. The lock must be held.
void deliver_rings(void);

// Notices that were delivered to a list so far.
uint64_t deliver_notices(unsigned list);

// Words that were delivered so far, to all lists.
uint64_t deliver_words(void);

// Rounds are counted. A round that is asked for now will have this number ...
uint64_t deliver_ask_exact(void);
bool deliver_exact_wanted(void);
// ... and all exact ones up to this are complete.
uint64_t deliver_exact_done(void);

bool deliver_valid(void);  // the lock must be held

struct producer;
void deliver_after_fork(struct producer *mine);  // in the child: the other threads are gone

#endif
