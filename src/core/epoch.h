// SPDX-License-Identifier: MIT
// Epoch-based reclamation: when memory that readers may still access can be reused. Readers never wait and
// need not register:
//
//     unsigned section = epoch_enter();
//     item = index_find(...);  ... look at it ...
//     epoch_leave(section);
//
// A writer unlinks an object, so that no new reader can reach it, and retires it: the object is released when
// every section that was open at that moment has been left. The unlinking store and the readers' load of the
// pointer must be seq_cst (the argument is in epoch.c); the index has this order for its items.
#ifndef MOAT_CORE_EPOCH_H
#define MOAT_CORE_EPOCH_H

#include <stddef.h>

// Part of an object that can be retired. An object is retired only once.
struct epoch_node {
    struct epoch_node *next;
    void (*release)(struct epoch_node *);
};

// epoch_enter opens a section and epoch_leave closes it; each is one atomic operation on a cache line that
// few threads share. Sections nest, and a section may be left by another thread than entered it. A section
// should be short, because nothing that is retired during it is reused before it ends.
unsigned epoch_enter(void);
void epoch_leave(unsigned section);

// Retires an object; `release` is called once no section can hold it. Never waits. The call may release
// objects that other threads retired: `release` runs in an arbitrary writer's thread, maybe with that
// writer's locks held, and should only put memory back into its pool. `release` may itself retire, and a
// reader may retire inside its section. Not every call tries to release: see epoch_reclaim.
void epoch_retire(struct epoch_node *node, void (*release)(struct epoch_node *));

// Retires a list linked by `next`, from first to last, whose nodes have `release` set.
void epoch_retire_list(struct epoch_node *first, struct epoch_node *last);

// Releases what can be released now. Returns how many retired objects are still waiting.
size_t epoch_reclaim(void);

// Forgets the sections of the parent's other threads. Call it in the child of a fork, while the child has one
// thread and that thread is in no section. A batch that another thread was releasing at the fork is leaked in
// the child.
void epoch_after_fork(void);

#endif
