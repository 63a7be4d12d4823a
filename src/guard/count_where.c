// SPDX-License-Identifier: MIT
#include "guard/count_where.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // a leaf
static CUcontext alive[COUNT_WHERE];                      // the first `living`
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

void count_where_begun(CUcontext context)
{
    if (!context)
        return;
    pthread_mutex_lock(&lock);
    bool known = find(context) < living;
    if (!known && living < COUNT_WHERE)
        alive[living++] = context;
    else
        crowded |= !known;
    pthread_mutex_unlock(&lock);
}

void count_where_ended(CUcontext context)
{
    pthread_mutex_lock(&lock);
    unsigned i = find(context);
    if (i < living)
        alive[i] = alive[--living];
    pthread_mutex_unlock(&lock);
}

bool count_where_lives(CUcontext context)
{
    pthread_mutex_lock(&lock);
    bool lives = find(context) < living;
    pthread_mutex_unlock(&lock);
    return lives;
}

unsigned count_where_list(CUcontext list[COUNT_WHERE], bool *all)
{
    pthread_mutex_lock(&lock);
    unsigned n = living;
    memcpy(list, alive, n * sizeof *list);
    *all = !crowded;
    pthread_mutex_unlock(&lock);
    return n;
}

// The parent's contexts are not the child's: no driver works across a fork.
void count_where_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    living = 0;
    crowded = false;
}
