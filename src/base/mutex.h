// SPDX-License-Identifier: MIT
// Locks whose holder is not cancelled (cancel.h): what it does with the lock held may be a cancellation
// point, as a wait for a condition is. For libraries that a program or moat opens at run time.
#ifndef MOAT_BASE_MUTEX_H
#define MOAT_BASE_MUTEX_H

#include <pthread.h>

#include "base/cancel.h"

extern _Thread_local struct cancel_state mutex_state;

// The same without a lock.
static inline void mutex_hold(void)
{
    cancel_open(&mutex_state);
}

static inline void mutex_release(void)
{
    cancel_close(&mutex_state);
}

static inline void mutex_lock(pthread_mutex_t *m)
{
    mutex_hold();
    pthread_mutex_lock(m);
}

static inline void mutex_unlock(pthread_mutex_t *m)
{
    pthread_mutex_unlock(m);
    mutex_release();
}

static inline void mutex_lock_read(pthread_rwlock_t *m)
{
    mutex_hold();
    pthread_rwlock_rdlock(m);
}

static inline void mutex_lock_write(pthread_rwlock_t *m)
{
    mutex_hold();
    pthread_rwlock_wrlock(m);
}

static inline void mutex_unlock_rw(pthread_rwlock_t *m)
{
    pthread_rwlock_unlock(m);
    mutex_release();
}

#endif
