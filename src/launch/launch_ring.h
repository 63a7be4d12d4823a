// SPDX-License-Identifier: MIT
// Which kernels were launched last: an error that a GPU tells of later is one of theirs. A graph counts as one,
// with the names of all its kernels.
#ifndef MOAT_LAUNCH_LAUNCH_RING_H
#define MOAT_LAUNCH_LAUNCH_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"
#include "launch/graph_names.h"
#include "core/one_or_many.h"

enum { LAUNCH_RING_KEPT = 64 };

// A launch adds to count, and to graphs if it is one, is noted in only, is told to the driver, and adds to
// made. So, at any moment, if made is read first and with acquire (it is added to with release):
//
//   made <= count
//
// and when no launch is under way, for relaxed reads of two words have no order:
//
//   made == count, and graphs <= count
//   if only knows of one, all that is kept in function is that one
struct launch_ring {
    _Atomic uint64_t count;                            // kernels and graphs
    _Atomic uint64_t made;                             // of them, calls of the driver's that have ended
    _Atomic uint64_t graphs;                           // of them
    _Atomic(const void *) function[LAUNCH_RING_KEPT];  // or what graph_names_of told
    struct one_or_many only;                           // of those, ever
};
extern struct launch_ring launch_ring;

// Relaxed: what a report names is a hint, and launches of different threads have no order anyway.
static inline void launch_ring_note(const void *function)
{
    uint64_t n = atomic_fetch_add_explicit(&launch_ring.count, 1, memory_order_relaxed);
    atomic_store_explicit(&launch_ring.function[n % LAUNCH_RING_KEPT], function, memory_order_relaxed);
    one_or_many_note(&launch_ring.only, function);
}

// Release pairs with the acquire in launch_ring_since: who sees the names sees what is in them.
static inline void launch_ring_note_graph(const struct graph_names *names)
{
    uint64_t n = atomic_fetch_add_explicit(&launch_ring.count, 1, memory_order_relaxed);
    atomic_store_explicit(&launch_ring.function[n % LAUNCH_RING_KEPT], names, memory_order_release);
    atomic_fetch_add_explicit(&launch_ring.graphs, 1, memory_order_relaxed);
    one_or_many_note(&launch_ring.only, names);
}

// After the driver's call.
static inline void launch_ring_made(void)
{
    atomic_fetch_add_explicit(&launch_ring.made, 1, memory_order_release);
}

// The count, if the driver has been told of all of them: who waits now waits for each. Otherwise 0.
static inline uint64_t launch_ring_all_made(void)
{
    // In this order: what is made later cannot make up for one that is being made. Acquire pairs with the release above.
    uint64_t made = atomic_load_explicit(&launch_ring.made, memory_order_acquire);
    uint64_t count = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    checked_assert(made <= count);
    return count == made ? made : 0;
}

// Whether these hold. No launch is under way between its first count and its last.
bool launch_ring_valid(void);

// Names of the last kernels, the newest first, none twice; returns how many of at most `most`. launch_ring_unknown comes last
// where there were kernels that nobody knows a name of.
unsigned launch_ring_recent(const char **names, unsigned most);
// The same of all after the first `count`: those that are no longer kept are unknown too, unless there was only one ever.
unsigned launch_ring_since(uint64_t count, const char **names, unsigned most);
bool launch_ring_has_all_since(uint64_t count);
extern const char launch_ring_unknown[];

// Whether they leave no doubt about who it was.
static inline bool launch_ring_is_certain(const char *const *names, unsigned count)
{
    return count == 1 && names[0] != launch_ring_unknown;
}

// Appends to a text of `used` characters the introduction and the names, if there are any; returns how long it is then. Whole
// names only: a part of one cannot be made readable.
size_t launch_ring_print(char *text, size_t size, size_t used, const char *introduction,
                         const char *const *names, unsigned count);

#endif
