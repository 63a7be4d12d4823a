// SPDX-License-Identifier: MIT
#include "prove/worth.h"

bool worth_evaluating(const struct worth *w)
{
    return w->credit > 0 || w->refused >= WORTH_AGAIN;
}

void worth_refused(struct worth *w)
{
    w->refused++;
}

void worth_spent(struct worth *w, uint32_t ninsns)
{
    // No debt: what is evaluated now and then without credit is paid for by its rarity.
    w->credit = w->credit > ninsns ? w->credit - ninsns : 0;
    w->refused = 0;
}

// Returns the sum of a credit and what a launch wins.
static int64_t add(int64_t credit, uint64_t threads, uint32_t accesses)
{
    uint64_t won = threads / WORTH_ACCESSES > WORTH_MOST ? WORTH_MOST : threads * accesses / WORTH_ACCESSES;
    credit += won > WORTH_MOST ? WORTH_MOST : (int64_t)won;
    return credit > WORTH_MOST ? WORTH_MOST : credit;
}

void worth_won(struct worth *w, uint64_t threads, uint32_t accesses)
{
    w->credit = add(w->credit, threads, accesses);
}

void worth_won_aside(struct worth *w, uint64_t threads, uint32_t accesses)
{
    int64_t aside = atomic_load_explicit(&w->aside, memory_order_relaxed);
    if (aside < WORTH_MOST)
        atomic_store_explicit(&w->aside, add(aside, threads, accesses), memory_order_relaxed);
}

void worth_settle(struct worth *w)
{
    int64_t aside = atomic_load_explicit(&w->aside, memory_order_relaxed);
    if (!aside)
        return;
    atomic_store_explicit(&w->aside, 0, memory_order_relaxed);
    w->credit = w->credit + aside > WORTH_MOST ? WORTH_MOST : w->credit + aside;
}
