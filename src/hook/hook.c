// SPDX-License-Identifier: MIT
#include "hook/hook.h"

#include <stdlib.h>

struct hook_row {
    enum driver_id id;
    driver_function hook;
    bool quick;
    driver_function real;     // what it stands in for; NULL: the driver lacks it
    driver_function instead;  // what a program is given that asks for it
};

static struct hook_row rows[] = {
#define HOOK(symbol) {DRIVER_##symbol, (driver_function)hook_##symbol, false, NULL, NULL},
#define QUICK(symbol) {DRIVER_##symbol, (driver_function)hook_##symbol, true, NULL, NULL},
#include "hook/hooks.def"
#undef HOOK
};

enum { ROWS = sizeof rows / sizeof *rows };

static int by_function(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct hook_row *)a)->real;
    uintptr_t y = (uintptr_t)((const struct hook_row *)b)->real;
    return (x > y) - (x < y);
}

// Release: pairs with the load in forward.c, after which a hook uses what was made before.
static void fill(driver_function *slot, driver_function f)
{
    __atomic_store_n(slot, f, __ATOMIC_RELEASE);
}

// Says what the slot of a row holds, and what a program that asks for the function gets.
static void choose(struct hook_row *row, const struct hook_forwarder *f)
{
    if (!row->quick)
        fill(&f->behind[row->id], row->hook);
    row->instead = row->quick ? row->hook : f->entries[row->id];
}

// The rows first: a thread that finds a filled slot runs its hook at once. A driver may have one function for several
// symbols. Those that have no hook get the function, not another call's hook.
void hook_install(const struct driver *real, const struct hook_forwarder *f)
{
    bool hooked[DRIVER_CALLS] = {0};
    for (int i = 0; i < ROWS; i++) {
        rows[i].real = real->call[rows[i].id];
        hooked[rows[i].id] = rows[i].real;
        choose(&rows[i], f);
    }
    qsort(rows, ROWS, sizeof *rows, by_function);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].real)
            fill(&f->slots[rows[i].id], rows[i].quick ? rows[i].hook : f->watched);
    for (int i = 0; i < DRIVER_CALLS; i++)
        if (!hooked[i])
            fill(&f->slots[i], real->call[i] ? real->call[i] : f->missing);
}

driver_function hook_instead_of(driver_function f)
{
    int low = 0, high = ROWS;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (rows[middle].real == f)
            return f ? rows[middle].instead : f;
        if ((uintptr_t)rows[middle].real < (uintptr_t)f)
            low = middle + 1;
        else
            high = middle;
    }
    return f;
}
