// SPDX-License-Identifier: MIT
// Locks of libmoat.so. Each has a rank: a thread takes locks in ascending order of rank only, and never two
// of one rank. Its holder is not cancelled (base/cancel.h). Builds with MOAT_CHECKED (base/checked.h) assert it at every lock that is taken.
#ifndef MOAT_CORE_LOCK_H
#define MOAT_CORE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/cancel.h"
#include "base/checked.h"

// From the one that is taken first to the one that is taken last.
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
// For a lock that its holder may take again: what is loaded into the driver may call us from inside the
// driver's calls.
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

// False: another thread has it. A lock that is only tried cannot wait, so its rank does not matter.
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

// In the child of a fork, whose parent's threads may have held it: it is free. A recursive one is initialised
// anew by its owner.
static inline void lock_after_fork(struct lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
}

void lock_forget_held(void);  // in the child of a fork: its one thread holds nothing

#endif
