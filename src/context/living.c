// SPDX-License-Identifier: MIT
#include "context/living.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // a leaf
static CUcontext alive[LIVING_MOST];                      // the first `living`
static unsigned living;
static bool crowded;

// Under the lock. living: it is not there.
static unsigned find(CUcontext context)
{
    unsigned i = 0;
    while (i < living && alive[i] != context)
        i++;
    return i;
}

void living_begun(CUcontext context)
{
    if (!context)
        return;
    pthread_mutex_lock(&lock);
    bool known = find(context) < living;
    if (!known && living < LIVING_MOST)
        alive[living++] = context;
    else
        crowded |= !known;
    pthread_mutex_unlock(&lock);
}

void living_ended(CUcontext context)
{
    pthread_mutex_lock(&lock);
    unsigned i = find(context);
    if (i < living)
        alive[i] = alive[--living];
    pthread_mutex_unlock(&lock);
}

bool living_lives(CUcontext context)
{
    pthread_mutex_lock(&lock);
    bool lives = find(context) < living;
    pthread_mutex_unlock(&lock);
    return lives;
}

unsigned living_list(CUcontext list[LIVING_MOST], bool *all)
{
    pthread_mutex_lock(&lock);
    unsigned n = living;
    memcpy(list, alive, n * sizeof *list);
    *all = !crowded;
    pthread_mutex_unlock(&lock);
    return n;
}

// The parent's contexts are not the child's: no driver works across a fork.
void living_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    living = 0;
    crowded = false;
}
