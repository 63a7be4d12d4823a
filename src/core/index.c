// SPDX-License-Identifier: MIT
// A B-tree whose nodes, once published, keep their bases and their number of entries. Only the target of an
// entry changes in a published node, by one store each:
//   an item in a leaf is replaced by another item of the same base
//   a leaf is replaced, in its parent, by a copy with one item more or less, if no split or join is needed
//   and the leaf's least base stays
// For every other change a writer builds new nodes along the path from the root and publishes them by storing
// the new root. So a reader walks inner nodes of one moment, and finds each leaf as it was at some moment
// between its loads of the root and of the leaf: a node that a new root has replaced does not change any
// more. Replaced nodes are retired through epochs; a reader that still reaches one over an outdated path
// entered its section before that path was replaced.
//
// Invariants of a published tree:
//   all leaves are at one depth; a node's bases ascend strictly
//   an inner node's base[i] is exactly the least base of the items below below[i], so that a neighbour's
//   base is known without a visit to the neighbour
//   MIN <= count <= FAN, except in the root: there 1 <= count in a leaf, 2 <= count in an inner node
#include "core/lock.h"
#include "core/index.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/slab_pool.h"

enum {
    FAN = 64,   // with 16 or 32, bench/guard_index.c is slower: more levels
    GROUP = 8,  // bases in a cache line
    MIN = FAN / 4,
    // two neighbours with up to this many entries become one node; with more they share evenly
    JOIN = FAN * 3 / 4,
    LEVELS = 10,               // MIN to this power is more items than memory holds
    RESERVE = 2 * LEVELS + 1,  // the most nodes that a removal needs
};

// A search reads three cache lines; the addresses of the last two are known once the first is loaded.
struct index_node {
    _Alignas(64) unsigned count;
    bool leaf;
    uint64_t last[FAN / GROUP - 1];  // base of the last entry of each group but the last group
    uint64_t base[FAN];              // UINT64_MAX from count on, which slot_of relies on
    _Atomic(void *) below[FAN];      // items in a leaf, nodes in an inner node
    struct epoch_node retired;
};

struct entry {
    uint64_t base;
    void *below;
};

struct path {
    unsigned levels;  // level 0 is the root's, level levels - 1 the leaf's
    struct {
        struct index_node *node;
        unsigned slot;  // the last whose base is not above the address; 0 if there is none
    } at[LEVELS];
};

// Nodes that a change replaces; they are retired when the change is published.
struct replaced {
    struct epoch_node *first, *end;
};

_Static_assert(INDEX_SPARES >= RESERVE + 2 * LEVELS + 1, "an insertion leaves the reserve");

static struct slab_pool nodes = SLAB_POOL(struct index_node);

static uint64_t extent(const struct index_item *item)
{
    return item->size ? item->size : 1;
}

// Returns the last slot whose base is not above the address; 0 also if there is none. It searches the groups,
// then one group. No branch depends on the address, because it would be mispredicted half the time, and the
// loads do not depend on each other.
static unsigned slot_of(const struct index_node *node, uint64_t address)
{
    unsigned n = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < FAN / GROUP - 1; i++)
        n += node->last[i] <= address;
    n *= GROUP;
    const uint64_t *group = node->base + n;
    __builtin_prefetch(&node->below[n]);
#pragma GCC unroll 8
    for (unsigned i = 0; i < GROUP; i++)
        n += group[i] <= address;
    n = n < node->count ? n : node->count;  // UINT64_MAX as the address counts the filler too
    return n ? n - 1 : 0;
}

static const struct index_node *load_root(const struct index *index)
{
    // seq_cst: pairs with publish; epoch.c explains why an acquire is not enough.
    return atomic_load_explicit(&index->root, memory_order_seq_cst);
}

static void *load_below(const struct index_node *node, unsigned slot)
{
    // seq_cst: pairs with lead_to, as load_root does with publish.
    return atomic_load_explicit(&node->below[slot], memory_order_seq_cst);
}

// For the holder of the lock, and for nodes that are not published yet.
static void *below(const struct index_node *node, unsigned slot)
{
    // Relaxed: only holders of the lock store it.
    return atomic_load_explicit(&node->below[slot], memory_order_relaxed);
}

// Changes the target of a published entry.
static void lead_to(struct index_node *node, unsigned slot, void *other)
{
    // seq_cst: pairs with load_below. A release would publish the target's contents; epochs need more
    // (epoch.c).
    atomic_store_explicit(&node->below[slot], other, memory_order_seq_cst);
}

struct index_item *index_at_or_below(const struct index *index, uint64_t address)
{
    const struct index_node *node = load_root(index);
    if (!node || node->base[0] > address)
        return NULL;
    while (!node->leaf)
        node = load_below(node, slot_of(node, address));
    return load_below(node, slot_of(node, address));
}

struct index_item *index_find(const struct index *index, uint64_t address)
{
    struct index_item *item = index_at_or_below(index, address);
    return item && address - item->base < extent(item) ? item : NULL;
}

struct index_item *index_above(const struct index *index, uint64_t address)
{
    const struct index_node *node = load_root(index), *right = NULL;
    unsigned slot;
    if (!node)
        return NULL;
    for (;; node = load_below(node, slot)) {
        slot = slot_of(node, address);
        unsigned above = node->base[slot] > address ? slot : slot + 1;
        if (node->leaf && above < node->count)
            return load_below(node, above);
        if (node->leaf)
            break;
        if (slot + 1 < node->count)
            right = load_below(node, slot + 1);
    }
    while (right && !right->leaf)
        right = load_below(right, 0);
    return right ? load_below(right, 0) : NULL;
}

size_t index_count(const struct index *index)
{
    // Relaxed: the number is informative for readers, and writers hold the lock.
    return atomic_load_explicit(&index->items, memory_order_relaxed);
}

static int each(const struct index_node *node, int (*f)(struct index_item *, void *), void *context)
{
    int r = 0;
    for (unsigned i = 0; i < node->count && !r; i++)
        r = node->leaf ? f(load_below(node, i), context) : each(load_below(node, i), f, context);
    return r;
}

int index_each(const struct index *index, int (*f)(struct index_item *, void *), void *context)
{
    const struct index_node *root = load_root(index);
    return root ? each(root, f, context) : 0;
}

// Checks the subtree below a node and adds its items to *items. Returns the number of levels, 0 if an
// invariant does not hold.
static unsigned check(const struct index_node *node, bool root, size_t *items)
{
    unsigned levels = 0, least = !root ? MIN : node->leaf ? 1 : 2;
    if (node->count < least || node->count > FAN)
        return 0;
    for (unsigned i = node->count; i < FAN; i++)
        if (node->base[i] != UINT64_MAX)
            return 0;
    for (unsigned i = 0; i < FAN / GROUP - 1; i++)
        if (node->last[i] != node->base[i * GROUP + GROUP - 1])
            return 0;
    for (unsigned i = 0; i < node->count; i++) {
        const struct index_item *item = load_below(node, i);
        const struct index_node *child = load_below(node, i);
        if (i && node->base[i] <= node->base[i - 1])
            return 0;
        if ((node->leaf ? item->base : child->base[0]) != node->base[i])
            return 0;
        unsigned beneath = node->leaf ? 1 : check(child, false, items);
        if (!beneath || (i && beneath != levels))
            return 0;
        levels = beneath;
    }
    *items += node->leaf ? node->count : 0;
    return levels + 1;
}

bool index_valid(const struct index *index)
{
    const struct index_node *root = load_root(index);
    size_t items = 0;
    return (!root || check(root, true, &items)) && items == index_count(index);
}

static void release_node(struct epoch_node *node)
{
    slab_pool_put(&nodes, (char *)node - offsetof(struct index_node, retired));
}

static void replace(struct replaced *list, struct index_node *node)
{
    node->retired.release = release_node;
    node->retired.next = list->first;
    list->first = &node->retired;
    if (!list->end)
        list->end = &node->retired;
}

// Ensures that `need` spare nodes are there; returns false if out of memory. The stores are ordered so that a
// forked child has a node too few, never one that is in use, as in slab_pool.c. Only the holder of the lock
// uses spares; the memory orders are for the fork alone.
static bool stock(struct index *index, unsigned need)
{
    unsigned have = atomic_load_explicit(&index->spares, memory_order_relaxed);
    if (have >= need)
        return true;
    void *more[INDEX_SPARES];
    unsigned n = INDEX_SPARES - have;
    if (slab_pool_get_many(&nodes, more, n)) {
        n = need - have;
        if (slab_pool_get_many(&nodes, more, n))
            return false;
    }
    memcpy(&index->spare[have], more, n * sizeof *more);
    atomic_store_explicit(&index->spares, have + n, memory_order_release);
    return true;
}

static struct index_node *take(struct index *index, bool leaf)
{
    unsigned have = atomic_load_explicit(&index->spares, memory_order_relaxed);
    assert(have > 0);
    struct index_node *node = index->spare[have - 1];
    atomic_store_explicit(&index->spares, have - 1, memory_order_relaxed);
    node->leaf = leaf;
    node->count = 0;
    return node;
}

// Puts back a node that was never published.
static void give_back(struct index *index, struct index_node *node)
{
    unsigned have = atomic_load_explicit(&index->spares, memory_order_relaxed);
    if (have == INDEX_SPARES) {
        slab_pool_put(&nodes, node);
        return;
    }
    index->spare[have] = node;
    atomic_store_explicit(&index->spares, have + 1, memory_order_release);
}

static void append(struct index_node *to, const struct index_node *from, unsigned start, unsigned end)
{
    memcpy(&to->base[to->count], &from->base[start], (end - start) * sizeof *to->base);
    // Plain copies are safe: only the holder of the lock stores to `from`, and `to` is not published yet.
    memcpy((void *)&to->below[to->count], (const void *)&from->below[start],
           (end - start) * sizeof *to->below);
    to->count += end - start;
}

static void append_entry(struct index_node *to, struct entry entry)
{
    to->base[to->count] = entry.base;
    // Relaxed: the entry is published with its node.
    atomic_store_explicit(&to->below[to->count++], entry.below, memory_order_relaxed);
}

// Appends the entries [start, end) of the sequence that results from `old` when `n` entries replace the
// `drop` entries at `slot`.
static void append_changed(struct index_node *to, const struct index_node *old, unsigned slot, unsigned drop,
                           const struct entry *add, unsigned n, unsigned start, unsigned end)
{
    if (start < slot)
        append(to, old, start, end < slot ? end : slot);
    for (unsigned i = start > slot ? start : slot; i < end && i < slot + n; i++)
        append_entry(to, add[i - slot]);
    if (end > slot + n)
        append(to, old, (start > slot + n ? start : slot + n) - n + drop, end - n + drop);
}

// Completes a node that was built.
static struct entry entry_of(struct index_node *node)
{
    for (unsigned i = node->count; i < FAN; i++)
        node->base[i] = UINT64_MAX;
    for (unsigned i = 0; i < FAN / GROUP - 1; i++)
        node->last[i] = node->base[i * GROUP + GROUP - 1];
    return (struct entry){node->base[0], node};
}

// Makes one new node or two from `old` with `n` entries in place of the `drop` entries at `slot`. Returns how
// many; 0 if no entry is left.
static unsigned change(struct index *index, const struct index_node *old, unsigned slot, unsigned drop,
                       const struct entry *add, unsigned n, struct entry made[2])
{
    unsigned total = old->count - drop + n;
    unsigned half = total <= FAN ? total : total - total / 2;
    if (!total)
        return 0;
    for (unsigned start = 0, end = half, i = 0;; start = half, end = total, i++) {
        struct index_node *node = take(index, old->leaf);
        append_changed(node, old, slot, drop, add, n, start, end);
        made[i] = entry_of(node);
        if (end == total)
            return i + 1;
    }
}

// Puts the entries of two neighbours into one new node or two. Returns how many.
static unsigned join(struct index *index, const struct index_node *left, const struct index_node *right,
                     struct entry made[2])
{
    unsigned total = left->count + right->count;
    unsigned half = total <= JOIN ? total : total - total / 2;
    struct index_node *a = take(index, left->leaf);
    unsigned from_left = left->count < half ? left->count : half;
    append(a, left, 0, from_left);
    append(a, right, 0, half - from_left);
    made[0] = entry_of(a);
    if (half == total)
        return 1;
    struct index_node *b = take(index, left->leaf);
    append(b, left, from_left, left->count);
    append(b, right, half - from_left, right->count);
    made[1] = entry_of(b);
    return 2;
}

static void publish(struct index *index, struct index_node *root)
{
    // seq_cst: pairs with load_root. A release would publish the nodes' contents; epochs need more (epoch.c).
    atomic_store_explicit(&index->root, root, memory_order_seq_cst);
}

static struct index_node *writer_root(struct index *index)
{
    // Relaxed: the lock is held, and only its holders store the root.
    return atomic_load_explicit(&index->root, memory_order_relaxed);
}

static void add_items(struct index *index, int n)
{
    // Relaxed: only the holder of the lock stores the number.
    size_t items = atomic_load_explicit(&index->items, memory_order_relaxed);
    atomic_store_explicit(&index->items, items + (size_t)n, memory_order_relaxed);
}

static void retire(const struct replaced *list)
{
    if (list->first)
        epoch_retire_list(list->first, list->end);
}

static void descend(struct index_node *root, uint64_t address, struct path *path)
{
    path->levels = 0;
    unsigned slot;
    for (struct index_node *node = root;; node = below(node, slot)) {
        assert(path->levels < LEVELS);
        slot = slot_of(node, address);
        path->at[path->levels].node = node;
        path->at[path->levels++].slot = slot;
        if (node->leaf)
            return;
    }
}

static struct index_node *leaf_of(const struct path *path, unsigned *slot)
{
    *slot = path->at[path->levels - 1].slot;
    return path->at[path->levels - 1].node;
}

// Returns whether the item reaches into the next item to the right of the path.
static bool overlaps_next(const struct path *path, const struct index_item *item)
{
    for (unsigned level = path->levels; level-- > 0;) {
        const struct index_node *node = path->at[level].node;
        unsigned slot = path->at[level].slot + 1;
        if (slot < node->count)
            return node->base[slot] - item->base < extent(item);
    }
    return false;
}

// Returns whether the item overlaps its neighbours on the path that leads to its base.
static bool overlaps(const struct path *path, const struct index_item *item)
{
    unsigned slot;
    const struct index_node *leaf = leaf_of(path, &slot);
    if (leaf->base[slot] > item->base)
        return leaf->base[slot] - item->base < extent(item);
    return item->base - leaf->base[slot] < extent(below(leaf, slot)) || overlaps_next(path, item);
}

// Makes a new root over two nodes, or over one item.
static struct index_node *root_over(struct index *index, const struct entry *entries, unsigned n, bool leaf)
{
    struct index_node *root = take(index, leaf);
    for (unsigned i = 0; i < n; i++)
        append_entry(root, entries[i]);
    return entry_of(root).below;
}

// Puts the item into a new leaf, or two; returns how many. The neighbour's size, which overlaps() reads, is
// prefetched meanwhile.
static unsigned change_leaf(struct index *index, const struct path *path, struct index_item *item,
                            struct entry made[2])
{
    unsigned slot;
    const struct index_node *leaf = leaf_of(path, &slot);
    __builtin_prefetch(below(leaf, slot));
    unsigned at = leaf->base[slot] > item->base ? slot : slot + 1;
    return change(index, leaf, at, 0, &(struct entry){item->base, item}, 1, made);
}

// Publishes a leaf in place of the path's by one store. Returns false, and does nothing, if the parent has to
// change.
static bool put_leaf(const struct path *path, struct entry made, struct replaced *old)
{
    unsigned slot;
    struct index_node *leaf = leaf_of(path, &slot);
    if (path->levels < 2 || made.base != leaf->base[0])
        return false;
    lead_to(path->at[path->levels - 2].node, path->at[path->levels - 2].slot, made.below);
    replace(old, leaf);
    return true;
}

// Returns the root of a tree in which n new nodes replace the path's leaf.
static struct index_node *build_over(struct index *index, const struct path *path, struct entry made[2],
                                     unsigned n, struct replaced *old)
{
    struct entry add[2];
    unsigned level = path->levels - 1;
    replace(old, path->at[level].node);
    while (level-- > 0) {
        memcpy(add, made, sizeof add);
        n = change(index, path->at[level].node, path->at[level].slot, 1, add, n, made);
        replace(old, path->at[level].node);
    }
    return n == 1 ? made[0].below : root_over(index, made, n, false);
}

static int insert_at(struct index *index, const struct path *path, struct index_item *item,
                     struct replaced *old)
{
    struct entry made[2];
    if (!stock(index, RESERVE + 2 * path->levels + 1))
        return overlaps(path, item) ? -EEXIST : -ENOMEM;
    unsigned n = change_leaf(index, path, item, made);
    if (overlaps(path, item)) {
        while (n-- > 0)
            give_back(index, made[n].below);
        return -EEXIST;
    }
    if (n > 1 || !put_leaf(path, made[0], old))
        publish(index, build_over(index, path, made, n, old));
    return 0;
}

// Requires the lock. If `former` is not NULL, the item replaces one of the same base.
static int put(struct index *index, struct index_item *item, struct index_item **former, struct replaced *old)
{
    struct index_node *root = writer_root(index);
    struct path path;
    unsigned slot;
    int r = 0;
    if (!root && !stock(index, RESERVE + 1))
        return -ENOMEM;
    if (!root) {
        publish(index, root_over(index, &(struct entry){item->base, item}, 1, true));
    } else {
        descend(root, item->base, &path);
        struct index_node *leaf = leaf_of(&path, &slot);
        if (former && leaf->base[slot] == item->base) {
            if (overlaps_next(&path, item))
                return -EEXIST;
            *former = below(leaf, slot);
            lead_to(leaf, slot, item);
            return 0;
        }
        r = insert_at(index, &path, item, old);
    }
    if (!r)
        add_items(index, 1);
    return r;
}

static int insert(struct index *index, struct index_item *item)
{
    struct replaced old = {0};
    lock_take(&index->lock);
    int r = put(index, item, NULL, &old);
    lock_give(&index->lock);
    retire(&old);
    return r;
}

int index_insert(struct index *index, struct index_item *item)
{
    int r = insert(index, item);
    if (r != -ENOMEM)
        return r;
    // The lock is not held here, because release functions may do anything.
    epoch_reclaim();
    return insert(index, item);
}

int index_put(struct index *index, struct index_item *item, struct index_item **former)
{
    int r = -ENOMEM;
    *former = NULL;
    for (unsigned attempt = 0; attempt < 2 && r == -ENOMEM; attempt++) {
        struct replaced old = {0};
        if (attempt)
            epoch_reclaim();
        r = put(index, item, former, &old);
        retire(&old);
    }
    return r;
}

// Returns the new root of a tree without the item that the path leads to, whose leaf was changed to the n
// nodes in `made`; NULL if no item is left.
static struct index_node *build_without(struct index *index, const struct path *path, struct entry made[2],
                                        unsigned n, struct replaced *old)
{
    struct entry add[2];
    unsigned level = path->levels - 1;
    replace(old, path->at[level].node);
    while (level-- > 0) {
        struct index_node *parent = path->at[level].node, *child = made[0].below;
        unsigned slot = path->at[level].slot, drop = 1;
        assert(n == 1 || child->count >= MIN);
        if (n == 1 && child->count < MIN) {
            unsigned left = slot ? slot - 1 : 0;
            struct index_node *other = below(parent, slot ? left : 1);
            n = slot ? join(index, other, child, made) : join(index, child, other, made);
            replace(old, other);
            give_back(index, child);
            slot = left;
            drop = 2;
        }
        memcpy(add, made, sizeof add);
        n = change(index, parent, slot, drop, add, n, made);
        replace(old, parent);
    }
    assert(n < 2);
    struct index_node *root = n ? made[0].below : NULL;
    if (root && !root->leaf && root->count == 1) {
        struct index_node *only = below(root, 0);
        give_back(index, root);
        root = only;
    }
    return root;
}

// Requires the lock. Removes the item of this base; if *item is not NULL, only that very item. *item is what
// was removed, or NULL. Returns 0 or -ENOMEM.
static int take_out(struct index *index, uint64_t base, struct index_item **item, struct replaced *old)
{
    struct index_node *root = writer_root(index);
    const struct index_item *wanted = *item;
    struct entry made[2];
    struct path path;
    unsigned slot;
    *item = NULL;
    if (!root)
        return 0;
    descend(root, base, &path);
    struct index_node *leaf = leaf_of(&path, &slot);
    if (leaf->base[slot] != base || (wanted && below(leaf, slot) != wanted))
        return 0;
    if (!stock(index, RESERVE) && !stock(index, 2 * path.levels + 1))
        return -ENOMEM;
    *item = below(leaf, slot);
    unsigned n = change(index, leaf, slot, 1, NULL, 0, made);
    if (leaf->count <= MIN || !put_leaf(&path, made[0], old))
        publish(index, build_without(index, &path, made, n, old));
    add_items(index, -1);
    return 0;
}

static int remove_base(struct index *index, uint64_t base, struct index_item **item)
{
    struct replaced old = {0};
    *item = NULL;
    lock_take(&index->lock);
    int r = take_out(index, base, item, &old);
    lock_give(&index->lock);
    retire(&old);
    return r;
}

struct index_item *index_remove(struct index *index, uint64_t base)
{
    struct index_item *item;
    if (remove_base(index, base, &item)) {
        epoch_reclaim();
        remove_base(index, base, &item);
    }
    return item;
}

bool index_take(struct index *index, struct index_item *item)
{
    struct index_item *found = item;
    int r = -ENOMEM;
    for (unsigned attempt = 0; attempt < 2 && r; attempt++) {
        struct replaced old = {0};
        if (attempt)
            epoch_reclaim();
        found = item;
        r = take_out(index, item->base, &found, &old);
        retire(&old);
    }
    return !r && found;
}

static void clear(struct index_node *node, void (*f)(struct index_item *, void *), void *context,
                  struct replaced *old)
{
    for (unsigned i = 0; i < node->count; i++) {
        if (!node->leaf)
            clear(below(node, i), f, context, old);
        else if (f)
            f(below(node, i), context);
    }
    replace(old, node);
}

void index_clear(struct index *index, void (*f)(struct index_item *, void *), void *context)
{
    struct replaced old = {0};
    lock_take(&index->lock);
    struct index_node *root = writer_root(index);
    publish(index, NULL);
    // Relaxed: the lock is held.
    atomic_store_explicit(&index->items, 0, memory_order_relaxed);
    for (unsigned n = atomic_exchange_explicit(&index->spares, 0, memory_order_relaxed); n-- > 0;)
        slab_pool_put(&nodes, index->spare[n]);
    lock_give(&index->lock);
    if (!root)
        return;
    clear(root, f, context, &old);
    epoch_retire_list(old.first, old.end);
}

static size_t items_below(const struct index_node *node)
{
    size_t n = node->leaf ? node->count : 0;
    for (unsigned i = 0; i < node->count && !node->leaf; i++)
        n += items_below(load_below(node, i));
    return n;
}

void index_after_fork(struct index *index)
{
    const struct index_node *root = load_root(index);
    lock_after_fork(&index->lock);
    slab_pool_after_fork(&nodes);
    // Relaxed: there is one thread. Another thread of the parent may have changed the tree and not yet the
    // number.
    atomic_store_explicit(&index->items, root ? items_below(root) : 0, memory_order_relaxed);
}

size_t index_mapped(void)
{
    return slab_pool_mapped(&nodes);
}
