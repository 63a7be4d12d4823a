// SPDX-License-Identifier: MIT
// A map from disjoint address intervals to items. Lookups are wait-free and take logarithmic time; see
// index.c.
#ifndef MOAT_CORE_INDEX_H
#define MOAT_CORE_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/epoch.h"
#include "core/lock.h"

// First member of the caller's struct. base and size do not change while the item is in an index, nor until
// it is released after removal. An item of size 0 occupies one byte.
struct index_item {
    uint64_t base, size;
    struct epoch_node retired;  // for the caller's epoch_retire(&item->retired, ...)
};

struct index_node;

enum { INDEX_SPARES = 64 };

// Initialised by INDEX_INIT.
struct index {
    struct lock lock;  // taken by writers
    _Atomic(struct index_node *) root;
    _Atomic size_t items;
    _Atomic unsigned spares;  // nodes taken from the pool beforehand
    struct index_node *spare[INDEX_SPARES];
};

#define INDEX_INIT               \
    {                            \
        .lock = LOCK_INIT(INDEX) \
    }

// Inserts the item. Returns 0, -EEXIST if it overlaps another item, or -ENOMEM; on failure the index is
// unchanged.
int index_insert(struct index *index, struct index_item *item);

// Removes and returns the item with exactly this base; returns NULL if there is none. Readers may still
// access the item: the caller retires it. Insertions reserve the memory for removals; only when that is used
// up as well, because the system is out of memory and sections stay open, does this return NULL for an item
// that then remains.
struct index_item *index_remove(struct index *index, uint64_t base);

// The next two functions do not take the index's lock: the caller serialises all changes to such an index by
// a lock of its own. While it holds that lock, the functions below need no epoch section.

// Inserts as index_insert does, but replaces an item of exactly the same base by a single store. *former is
// the item that was replaced, or NULL.
int index_put(struct index *index, struct index_item *item, struct index_item **former);

// Removes this very item. Returns false if it is not in the index, or if out of memory as index_remove
// describes.
bool index_take(struct index *index, struct index_item *item);

// Return NULL if there is no such item. Call them inside an epoch section, which keeps the result from being
// released. Wait-free.
struct index_item *index_find(const struct index *index, uint64_t address);  // containing the address
struct index_item *index_at_or_below(const struct index *index,
                                     uint64_t address);                       // greatest base <= address
struct index_item *index_above(const struct index *index, uint64_t address);  // least base > address

// Returns the number of items. Needs no epoch section.
size_t index_count(const struct index *index);

// Calls f for the items in ascending order until it returns nonzero, and returns that value. Items that are
// in the index throughout are visited; items inserted or removed meanwhile may be. Call it inside an epoch
// section.
int index_each(const struct index *index, int (*f)(struct index_item *, void *), void *context);

// Removes all items, and calls f, unless it is NULL, for each of them; f may retire the item.
void index_clear(struct index *index, void (*f)(struct index_item *, void *), void *context);

// Call it for each index in the child of a fork, while the child has one thread, after epoch_after_fork. Each
// change is published by a single store, so the child finds a consistent tree; only the locks must be
// initialised anew.
void index_after_fork(struct index *index);

// Returns whether the invariants listed in index.c hold. Call it inside an epoch section.
bool index_valid(const struct index *index);

size_t index_mapped(void);  // bytes held for the nodes of all indices

#endif
