// SPDX-License-Identifier: MIT
// pthread_cancel ends a thread inside calls that may wait: reads, writes, opens, sleeps, and whatever of a
// driver's own makes such calls. A thread that holds a lock of ours, or has half of a change made, must not
// end there. Between cancel_hold and cancel_release it does not: a cancellation that comes meanwhile is acted
// upon at the thread's next cancellation point. Sections nest, and belong to the thread that opened them.
#ifndef MOAT_BASE_CANCEL_H
#define MOAT_BASE_CANCEL_H

#include <pthread.h>

struct cancel_state {
    unsigned depth;  // sections that are open
    int before;      // the program's choice; valid while depth > 0
};

static inline void cancel_open(struct cancel_state *s)
{
    if (!s->depth++)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &s->before);
}

static inline void cancel_close(struct cancel_state *s)
{
    if (!--s->depth)
        pthread_setcancelstate(s->before, NULL);
}

// For libraries that are preloaded: the variable is in the static block, as libc's lookup of others may
// allocate. Those that are opened later have mutex.h.
extern __thread struct cancel_state cancel_state __attribute__((tls_model("initial-exec")));

static inline void cancel_hold(void)
{
    cancel_open(&cancel_state);
}

static inline void cancel_release(void)
{
    cancel_close(&cancel_state);
}

#endif
