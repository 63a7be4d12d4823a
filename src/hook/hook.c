// SPDX-License-Identifier: MIT
#include "hook/hook.h"

#include <stdlib.h>

struct hook_row {
    enum driver_id id;
    driver_function hook;
    driver_function real;  // the driver's function; NULL: the driver lacks it
};

static struct hook_row rows[] = {
#define HOOK(symbol) {DRIVER_##symbol, (driver_function)hook_##symbol, NULL},
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

// Release: pairs with the load in forward.c, so that a hook sees all that was initialised before.
static void fill(driver_function *slot, driver_function f)
{
    __atomic_store_n(slot, f, __ATOMIC_RELEASE);
}

// Sorts the rows before it fills slots, because a thread that finds a filled slot runs its hook at once. A
// driver may have one function for several symbols; those without a hook get the function, not another call's
// hook.
void hook_install(const struct driver *real, driver_function *slots, driver_function missing)
{
    bool hooked[DRIVER_CALLS] = {0};
    for (int i = 0; i < ROWS; i++) {
        rows[i].real = real->call[rows[i].id];
        hooked[rows[i].id] = rows[i].real;
    }
    qsort(rows, ROWS, sizeof *rows, by_function);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].real)
            fill(&slots[rows[i].id], rows[i].hook);
    for (int i = 0; i < DRIVER_CALLS; i++)
        if (!hooked[i])
            fill(&slots[i], real->call[i] ? real->call[i] : missing);
}

driver_function hook_instead_of(driver_function f)
{
    int low = 0, high = ROWS;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (rows[middle].real == f)
            return f ? rows[middle].hook : f;
        if ((uintptr_t)rows[middle].real < (uintptr_t)f)
            low = middle + 1;
        else
            high = middle;
    }
    return f;
}
