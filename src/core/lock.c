// SPDX-License-Identifier: MIT
#include "core/lock.h"

#include <stdint.h>

#ifdef MOAT_CHECKED

enum { DEEPEST = 16 };

// The locks that the calling thread holds, in the order in which it took them. depth <= DEEPEST.
static _Thread_local const struct lock *held[DEEPEST];
static _Thread_local unsigned depth;

static bool is_recursive(const struct lock *lock)
{
    for (unsigned i = 0; i < depth; i++)
        if (held[i] == lock)
            return true;
    return false;
}

// Returns whether every lock that the thread holds has a lesser rank than this one.
static bool is_in_order(const struct lock *lock)
{
    for (unsigned i = 0; i < depth; i++)
        if (held[i]->rank >= lock->rank)
            return false;
    return true;
}

void lock_note_take(const struct lock *lock, bool tried)
{
    checked_assert(lock->rank < LOCK_RANKS);
    checked_assert(tried || is_recursive(lock) || is_in_order(lock));
    checked_assert(depth < DEEPEST);
    held[depth++] = lock;
}

void lock_note_give(const struct lock *lock)
{
    unsigned at = depth;
    while (at && held[at - 1] != lock)
        at--;
    checked_assert(at);  // the thread holds it
    for (; at < depth; at++)
        held[at - 1] = held[at];
    depth--;
}

bool lock_is_held(const struct lock *lock)
{
    return is_recursive(lock);
}

void lock_forget_held(void)
{
    depth = 0;
}

#else

void lock_forget_held(void)
{
}

#endif
