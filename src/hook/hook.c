// SPDX-License-Identifier: MIT
#include "hook/hook.h"

#include <stdlib.h>

struct hook_row {
    enum driver_id id;
    driver_function hook;
    bool quick;  // the hook disables cancellation itself
    bool looks;  // the hook can be left out
};

static const struct hook_row rows[] = {
#define HOOK(symbol) {DRIVER_##symbol, (driver_function)hook_##symbol, false, false},
#define LOOK(symbol) {DRIVER_##symbol, (driver_function)hook_##symbol, false, true},
#define QUICK(symbol) {DRIVER_##symbol, (driver_function)hook_##symbol, true, true},
#include "hook/hooks.def"
#undef HOOK
};

enum { ROWS = sizeof rows / sizeof *rows };

// What a program is given that asks for a function of the driver. Ordered by function; of several for one,
// hooks come first: a driver may have one function for several symbols.
static struct answer {
    driver_function real, instead;
    bool hooked;
} answers[DRIVER_CALLS];
static int nanswers;

static int by_function(const void *a, const void *b)
{
    const struct answer *p = a, *q = b;
    uintptr_t x = (uintptr_t)p->real, y = (uintptr_t)q->real;
    return x != y ? (x > y) - (x < y) : q->hooked - p->hooked;
}

// Release: pairs with the load in forward.c, so that a hook sees all that was initialised before.
static void fill(driver_function *slot, driver_function f)
{
    __atomic_store_n(slot, f, __ATOMIC_RELEASE);
}

// Fills the answers before the slots, because a thread that finds a filled slot runs its hook at once. A
// driver may have one function for several symbols; those without a hook get the function, not another call's
// hook.
void hook_install(const struct driver *real, const struct hook_forwarder *f, bool all)
{
    driver_function targets[DRIVER_CALLS];
    bool watched[DRIVER_CALLS], hooked[DRIVER_CALLS] = {0};
    for (int i = 0; i < DRIVER_CALLS; i++) {
        targets[i] = real->call[i] ? real->call[i] : f->missing;
        watched[i] = all && driver_calls[i].since;
    }
    for (int i = 0; i < ROWS; i++) {
        enum driver_id id = rows[i].id;
        if (!real->call[id])
            continue;
        targets[id] = rows[i].hook;
        hooked[id] = true;
        watched[id] |= !rows[i].quick;
    }
    for (int i = 0; i < DRIVER_CALLS; i++) {
        fill(&f->behind[i], targets[i]);
        if (real->call[i] && (watched[i] || hooked[i]))
            answers[nanswers++] = (struct answer){real->call[i], f->entries[i], hooked[i]};
    }
    qsort(answers, (size_t)nanswers, sizeof *answers, by_function);
    for (int i = 0; i < DRIVER_CALLS; i++)
        fill(&f->slots[i], watched[i] ? f->watched : targets[i]);
}

// A thread that finds the old value of a slot calls what it finds there, which is right too.
void hook_pause(const struct driver *real, const struct hook_forwarder *f, bool on, bool all)
{
    mode_order(MODE_ORDER_ALL);  // what is paused sees no order
    for (int i = 0; i < ROWS; i++) {
        enum driver_id id = rows[i].id;
        if (!rows[i].looks || !real->call[id])
            continue;
        bool watched = !rows[i].quick || (all && driver_calls[id].since);
        fill(&f->slots[id], on ? real->call[id] : watched ? f->watched : rows[i].hook);
    }
}

// The first of the function's answers.
driver_function hook_instead_of(driver_function f)
{
    int low = 0, high = nanswers;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if ((uintptr_t)answers[middle].real < (uintptr_t)f)
            low = middle + 1;
        else
            high = middle;
    }
    return low < nanswers && answers[low].real == f ? answers[low].instead : f;
}
