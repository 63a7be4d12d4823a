// SPDX-License-Identifier: MIT
// The kernels launched last: an error that a GPU reports later was caused by one of them. A graph counts as
// one launch, with the names of all its kernels.
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

// A launch adds to count, and to graphs if it is a graph, is noted in only, is passed to the driver, and adds
// to made. So at any moment, if made is read first and with acquire (additions are releases):
//
//   made <= count
//
// and when no launch is under way, because relaxed reads of two words have no order:
//
//   made == count, and graphs <= count
//   if only has seen one launch target, every entry of function is that one
struct launch_ring {
    _Atomic uint64_t count;                            // kernels and graphs
    _Atomic uint64_t made;                             // of them, those whose driver call has returned
    _Atomic uint64_t graphs;                           // of them, graphs
    _Atomic(const void *) function[LAUNCH_RING_KEPT];  // or what graph_names_of returned
    struct one_or_many only;                           // all launch targets ever
};
extern struct launch_ring launch_ring;

// Relaxed: what a report names is a hint, and launches of different threads have no order anyway.
static inline void launch_ring_note(const void *function)
{
    uint64_t n = atomic_fetch_add_explicit(&launch_ring.count, 1, memory_order_relaxed);
    atomic_store_explicit(&launch_ring.function[n % LAUNCH_RING_KEPT], function, memory_order_relaxed);
    one_or_many_note(&launch_ring.only, function);
}

// Release: pairs with the acquire in list_from of launch_ring.c, so that a thread that sees the set sees its
// names.
static inline void launch_ring_note_graph(const struct graph_names *names)
{
    uint64_t n = atomic_fetch_add_explicit(&launch_ring.count, 1, memory_order_relaxed);
    atomic_store_explicit(&launch_ring.function[n % LAUNCH_RING_KEPT], names, memory_order_release);
    atomic_fetch_add_explicit(&launch_ring.graphs, 1, memory_order_relaxed);
    one_or_many_note(&launch_ring.only, names);
}

// Called after the driver's call.
static inline void launch_ring_made(void)
{
    atomic_fetch_add_explicit(&launch_ring.made, 1, memory_order_release);
}

// Returns the count if every launch has been passed to the driver, so that a wait from now on covers all of
// them; otherwise 0.
static inline uint64_t launch_ring_all_made(void)
{
    // made is loaded first, so that a later launch cannot make up for one that is under way. Acquire pairs
    // with the release above.
    uint64_t made = atomic_load_explicit(&launch_ring.made, memory_order_acquire);
    uint64_t count = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    checked_assert(made <= count);
    return count == made ? made : 0;
}

// Returns whether the equations above hold. Requires that no launch is under way.
bool launch_ring_valid(void);

// Stores the names of the last kernels, newest first, none twice; returns how many, at most `most`.
// launch_ring_unknown comes last if there were kernels whose names are unknown.
unsigned launch_ring_recent(const char **names, unsigned most);
// Stores the names, as launch_ring_recent does, of all launches after the first `count`. Those no longer kept
// count as unknown, unless there was only one launch target ever.
unsigned launch_ring_since(uint64_t count, const char **names, unsigned most);
bool launch_ring_has_all_since(uint64_t count);
extern const char launch_ring_unknown[];

// Returns whether the names identify one kernel for certain.
static inline bool launch_ring_is_certain(const char *const *names, unsigned count)
{
    return count == 1 && names[0] != launch_ring_unknown;
}

// Appends the introduction and the names, if there are any, to a text of `used` characters, and returns its
// new length. Names are never truncated: part of a mangled name cannot be demangled.
size_t launch_ring_print(char *text, size_t size, size_t used, const char *introduction,
                         const char *const *names, unsigned count);

#endif
