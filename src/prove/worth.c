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

void worth_won(struct worth *w, uint64_t threads, uint32_t accesses)
{
    uint64_t won = threads / WORTH_ACCESSES > WORTH_MOST ? WORTH_MOST : threads * accesses / WORTH_ACCESSES;
    w->credit += won > WORTH_MOST ? WORTH_MOST : (int64_t)won;
    w->credit = w->credit > WORTH_MOST ? WORTH_MOST : w->credit;
}
