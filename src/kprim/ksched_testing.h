// SPDX-License-Identifier: MIT
// Runs every interleaving of a few threads in code over kprim.h, at its atomic operations, with a bounded
// number of preemptions.
//
// The code is the device's own. Threads of a test stop before each atomic operation; a schedule says which
// one continues. All schedules with at most `bound` preemptions are tried, depth first; where a thread ends,
// all choices are tried. Nothing may be shared without an order between atomic operations, which another test
// must check with ThreadSanitizer, so stopping there shows all that is visible under sequential consistency.
// KSCHED_BOUND raises the bound. For one test program: what kprim_host.h leaves to the test is defined here.
#ifndef MOAT_KPRIM_KSCHED_TESTING_H
#define MOAT_KPRIM_KSCHED_TESTING_H

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprim/kprim.h"

enum { KSCHED_THREADS = 3, KSCHED_POINTS = 4096 };

_Thread_local uint32_t kprim_self;
static _Thread_local int ksched_me = -1;  // the thread's number; -1: not scheduled

struct ksched_point {
    uint8_t choice, choices;
};

static struct {
    struct ksched_point path[KSCHED_POINTS];
    unsigned at, length, stops, bound;
    unsigned threads, running, waiting;  // running: a bit each; waiting: those in kprim_pause
    void (*const *work)(void);
    sem_t go[KSCHED_THREADS], done;
} ksched;

static _Noreturn void ksched_broken(const char *what)
{
    fprintf(stderr, "%s, in the schedule", what);
    for (unsigned i = 0; i < ksched.at; i++)
        if (ksched.path[i].choice)
            fprintf(stderr, " %u:%u", i, ksched.path[i].choice);
    fprintf(stderr, "\n");
    abort();
}

// Returns the next thread: the first option is the thread itself, if it can continue.
static int ksched_choose(int self)
{
    int options[KSCHED_THREADS], n = 0;
    bool goes_on = self >= 0 && ksched.running >> self & 1;
    if (goes_on)
        options[n++] = self;
    for (int i = 0; i < (int)ksched.threads; i++)
        if (i != self && ksched.running >> i & 1 && (!goes_on || ksched.stops < ksched.bound))
            options[n++] = i;
    if (ksched.at >= KSCHED_POINTS)
        ksched_broken("no end");
    struct ksched_point *p = &ksched.path[ksched.at];
    if (ksched.at >= ksched.length)
        *p = (struct ksched_point){0, (uint8_t)n};
    ksched.length = ksched.at >= ksched.length ? ksched.at + 1 : ksched.length;
    ksched.at++;
    ksched.stops += goes_on && p->choice;
    return options[p->choice];
}

void kprim_step(void)
{
    if (ksched_me < 0)
        return;
    int next = ksched_choose(ksched_me), self = ksched_me;
    if (next == self)
        return;
    sem_post(&ksched.go[next]);
    sem_wait(&ksched.go[self]);
}

// Lets another thread continue, if there is one; that is no preemption. A thread that is waiting itself is
// chosen only if all are, else they would wait for each other for ever.
void kprim_pause(void)
{
    int self = ksched_me;
    if (self < 0 || ksched.running == 1u << self)
        return;
    unsigned running = ksched.running, others = running & ~(1u << self);
    ksched.waiting = others & ~ksched.waiting ? ksched.waiting | 1u << self : 1u << self;
    ksched.running = others & ~ksched.waiting;
    int next = ksched_choose(self);
    ksched.running = running;
    sem_post(&ksched.go[next]);
    sem_wait(&ksched.go[self]);
    ksched.waiting &= ~(1u << self);
}

static void *ksched_thread(void *arg)
{
    ksched_me = (int)(intptr_t)arg;
    kprim_self = (uint32_t)ksched_me;
    for (;;) {
        sem_wait(&ksched.go[ksched_me]);
        if (!ksched.work)
            return NULL;
        ksched.work[ksched_me]();
        ksched.running &= ~(1u << ksched_me);
        if (ksched.running)
            sem_post(&ksched.go[ksched_choose(ksched_me)]);
        else
            sem_post(&ksched.done);
    }
}

// Advances to the next schedule. Returns false if that was the last.
static bool ksched_advance(void)
{
    while (ksched.length &&
           ksched.path[ksched.length - 1].choice + 1 >= ksched.path[ksched.length - 1].choices)
        ksched.length--;
    if (!ksched.length)
        return false;
    ksched.path[ksched.length - 1].choice++;
    return true;
}

// Runs work[0 ... threads - 1] in every schedule, each between before() and after(). Returns the number of
// schedules.
static unsigned long ksched_every(unsigned bound, void (*before)(void), void (*const *work)(void),
                                  unsigned threads, void (*after)(void))
{
    const char *more = getenv("KSCHED_BOUND");
    pthread_t all[KSCHED_THREADS];
    unsigned long n = 0;
    memset(&ksched, 0, sizeof ksched);
    ksched.bound = more ? (unsigned)atoi(more) : bound;
    ksched.threads = threads;
    ksched.work = work;
    sem_init(&ksched.done, 0, 0);
    for (unsigned i = 0; i < threads; i++) {
        sem_init(&ksched.go[i], 0, 0);
        if (pthread_create(&all[i], NULL, ksched_thread, (void *)(intptr_t)i))
            abort();
    }
    do {
        before();
        ksched.at = ksched.stops = 0;
        ksched.running = (1u << threads) - 1;
        ksched.waiting = 0;
        sem_post(&ksched.go[ksched_choose(-1)]);
        sem_wait(&ksched.done);
        after();
        n++;
    } while (ksched_advance());
    ksched.work = NULL;
    for (unsigned i = 0; i < threads; i++) {
        sem_post(&ksched.go[i]);
        pthread_join(all[i], NULL);
    }
    return n;
}

#endif
