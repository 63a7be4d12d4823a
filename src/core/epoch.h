// SPDX-License-Identifier: MIT
// When memory that readers may still look at can be reused. Readers never wait and need not be known beforehand:
//
//     unsigned section = epoch_enter();
//     item = index_find(...);  ... look at it ...
//     epoch_leave(section);
//
// A writer unlinks an object, so that no new reader can reach it, and retires it: it is released when every section
// that was open at that moment has been left. The unlinking store and the readers' load of the pointer must be
// seq_cst (the argument is in epoch.c); the index does it so for its items.
#ifndef MOAT_CORE_EPOCH_H
#define MOAT_CORE_EPOCH_H

#include <stddef.h>

// Part of an object that can be retired. An object is retired once.
struct epoch_node {
    struct epoch_node *next;
    void (*release)(struct epoch_node *);
};

// Sections nest. One may be left by another thread than entered it. Two atomic operations on a line of memory that
// few threads share; a section should be short, for nothing retired meanwhile is reused before it ends.
unsigned epoch_enter(void);
void epoch_leave(unsigned section);

// Never waits. Objects retired earlier, by whomever, may be released from within the call: `release` runs in an
// arbitrary writer's thread, maybe with that writer's locks held, and should do no more than put memory back to its
// pool. It may itself retire. A reader may retire inside its section.
// Attempts are made once in a while, not at every call: see epoch_reclaim.
void epoch_retire(struct epoch_node *node, void (*release)(struct epoch_node *));

// The same for a list linked by `next`, from first to last, whose nodes have `release` set.
void epoch_retire_list(struct epoch_node *first, struct epoch_node *last);

// Releases what can be released now. Returns how many retired objects are left waiting.
size_t epoch_reclaim(void);

// In the child of a fork, while it has one thread and that is in no section: forgets the sections of the parent's other
// threads. A batch that another thread was releasing at the fork is lost to the child.
void epoch_after_fork(void);

#endif
