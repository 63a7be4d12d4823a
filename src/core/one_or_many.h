// SPDX-License-Identifier: MIT
// Records whether a program has had one object of a kind, or several.
#ifndef MOAT_CORE_ONE_OR_MANY_H
#define MOAT_CORE_ONE_OR_MANY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// All accesses are relaxed: a thread that has an object has noted it before.
struct one_or_many {
    _Atomic(const void *) first;
    _Atomic(bool) several;
};

static inline bool one_or_many_one(const struct one_or_many *o)
{
    return !atomic_load_explicit(&o->several, memory_order_relaxed);
}

static inline void one_or_many_note(struct one_or_many *o, const void *thing)
{
    const void *first = atomic_load_explicit(&o->first, memory_order_relaxed);
    if (first == thing || !one_or_many_one(o))
        return;
    if (first || (!atomic_compare_exchange_strong_explicit(&o->first, &first, thing, memory_order_relaxed,
                                                           memory_order_relaxed) &&
                  first != thing))
        atomic_store_explicit(&o->several, true, memory_order_relaxed);
}

static inline void one_or_many_forget(struct one_or_many *o)
{
    atomic_store_explicit(&o->first, NULL, memory_order_relaxed);
    atomic_store_explicit(&o->several, false, memory_order_relaxed);
}

#endif
