// SPDX-License-Identifier: MIT
// Address intervals that do not overlap -> items. Lookups never wait and take logarithmic time; see index.c.
#ifndef MOAT_CORE_INDEX_H
#define MOAT_CORE_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/epoch.h"
#include "core/lock.h"

// First member of the caller's struct. base and size stay as they are while the item is in an index and until it is
// released after removal. An item of size 0 occupies one byte.
struct index_item {
    uint64_t base, size;
    struct epoch_node retired;  // for the caller's epoch_retire(&item->retired, ...)
};

struct index_node;

enum { INDEX_SPARES = 64 };

// Starts as INDEX_INIT.
struct index {
    struct lock lock;  // of writers
    _Atomic(struct index_node *) root;
    _Atomic size_t items;
    _Atomic unsigned spares;  // nodes taken from the pool beforehand
    struct index_node *spare[INDEX_SPARES];
};

#define INDEX_INIT               \
    {                            \
        .lock = LOCK_INIT(INDEX) \
    }

// 0; -EEXIST if it overlaps another; -ENOMEM. On failure nothing has changed.
int index_insert(struct index *index, struct index_item *item);

// The item with exactly this base, taken out; NULL if there is none. Readers may still look at it: the caller retires
// it. Memory for this was set aside by insertions; only when that is spent too, because the system gives none and
// sections stay open, is the answer NULL for an item that then remains.
struct index_item *index_remove(struct index *index, uint64_t base);

// The same for a caller whose own lock keeps changes apart: of an index that is changed by these, the lock is not taken.
// With that lock held the functions below need no epoch section.

// As index_insert, but an item of exactly the same base gives its place to this one by a single store, and is *former,
// which is NULL otherwise.
int index_put(struct index *index, struct index_item *item, struct index_item **former);

// Takes out that very item. False: it is not there, or there was no memory, as for index_remove.
bool index_take(struct index *index, struct index_item *item);

// Inside an epoch section, which keeps the result from being released. Wait-free.
struct index_item *index_find(const struct index *index, uint64_t address);  // containing the address
struct index_item *index_at_or_below(const struct index *index,
                                     uint64_t address);                       // greatest base <= address
struct index_item *index_above(const struct index *index, uint64_t address);  // least base > address

// Inside a section or not.
size_t index_count(const struct index *index);

// Calls f for the items, ascending, until it returns nonzero, and returns that: for those that are there all the while,
// and maybe for some that come or go meanwhile. Inside an epoch section.
int index_each(const struct index *index, int (*f)(struct index_item *, void *), void *context);

// Removes all, and calls f (if not NULL), which may retire it, for each item.
void index_clear(struct index *index, void (*f)(struct index_item *, void *), void *context);

// In the child of a fork, while it has one thread, after epoch_after_fork. Each change is published by a single store, so
// the child finds a tree that is whole; only the locks must be made new. Call it for each index.
void index_after_fork(struct index *index);

// Whether the tree keeps the promises listed in index.c. Inside an epoch section.
bool index_valid(const struct index *index);

size_t index_mapped(void);  // bytes held for the nodes of all indices

#endif
