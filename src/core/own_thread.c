// SPDX-License-Identifier: MIT
#include "core/own_thread.h"

#include <pthread.h>
#include <signal.h>

enum { STACK = 256 << 10 };

bool own_thread(void *(*run)(void *))
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    if (pthread_attr_init(&attr))
        return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = !pthread_create(&thread, &attr, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return made;
}
