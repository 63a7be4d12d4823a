// SPDX-License-Identifier: MIT
// Locks of libmoat.so. Each has a rank: a thread takes locks in ascending order of rank only, and never two
// of one rank. The holder of a lock is not cancelled (base/cancel.h). Builds with MOAT_CHECKED
// (base/checked.h) assert the order of ranks whenever a lock is taken.
#ifndef MOAT_CORE_LOCK_H
#define MOAT_CORE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/cancel.h"
#include "base/checked.h"

// In the order in which a thread takes them.
enum lock_rank {
#define RANK(id, text) LOCK_##id,
#include "core/lock_ranks.def"
#undef RANK
    LOCK_RANKS
};
_Static_assert(LOCK_RANKS <= 64, "a bit for each rank");

struct lock {
    pthread_mutex_t mutex;
    enum lock_rank rank;
};

#define LOCK_INIT(id)                                         \
    {                                                         \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = LOCK_##id \
    }
// For a lock that its holder may take again, because a call into the driver may call back into libmoat.so.
#define LOCK_INIT_RECURSIVE(id)                                            \
    {                                                                      \
        .mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, .rank = LOCK_##id \
    }

#ifdef MOAT_CHECKED
void lock_note_take(const struct lock *lock, bool tried);
void lock_note_give(const struct lock *lock);
bool lock_is_held(const struct lock *lock);  // by the calling thread
#else
static inline void lock_note_take(const struct lock *lock, bool tried)
{
}
static inline void lock_note_give(const struct lock *lock)
{
}
static inline bool lock_is_held(const struct lock *lock)
{
    return true;
}
#endif

static inline void lock_take(struct lock *lock)
{
    lock_note_take(lock, false);
    cancel_hold();
    pthread_mutex_lock(&lock->mutex);
}

// Returns false if another thread holds the lock. lock_try never waits, so the order of ranks does not apply
// to it.
static inline bool lock_try(struct lock *lock)
{
    cancel_hold();
    bool taken = !pthread_mutex_trylock(&lock->mutex);
    if (taken)
        lock_note_take(lock, true);
    else
        cancel_release();
    return taken;
}

static inline void lock_give(struct lock *lock)
{
    lock_note_give(lock);
    pthread_mutex_unlock(&lock->mutex);
    cancel_release();
}

// Makes the lock free in the child of a fork, where another thread of the parent may have held it. Its owner
// initialises a recursive lock anew by itself.
static inline void lock_after_fork(struct lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
}

void lock_forget_held(void);  // in the child of a fork, whose one thread holds no lock

#endif
