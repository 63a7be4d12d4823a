// SPDX-License-Identifier: MIT
// Whether a program has had one thing of a kind, or several.
#ifndef MOAT_CORE_ONLY_H
#define MOAT_CORE_ONLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Relaxed, all: who has a thing has noted it before.
struct only {
    _Atomic(const void *) first;
    _Atomic(bool) several;
};

static inline bool only_one(const struct only *o)
{
    return !atomic_load_explicit(&o->several, memory_order_relaxed);
}

static inline void only_note(struct only *o, const void *thing)
{
    const void *first = atomic_load_explicit(&o->first, memory_order_relaxed);
    if (first == thing || !only_one(o))
        return;
    if (first || (!atomic_compare_exchange_strong_explicit(&o->first, &first, thing, memory_order_relaxed,
                                                           memory_order_relaxed) &&
                  first != thing))
        atomic_store_explicit(&o->several, true, memory_order_relaxed);
}

static inline void only_forget(struct only *o)
{
    atomic_store_explicit(&o->first, NULL, memory_order_relaxed);
    atomic_store_explicit(&o->several, false, memory_order_relaxed);
}

#endif
