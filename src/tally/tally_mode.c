// SPDX-License-Identifier: MIT
// --mode=tally: counts the events that modes get. It decides nothing, and exists for the tests of moat:
// whoever adds a mode can see which events a program causes, and that a mode takes a folder and a row.
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "launch/launch_call.h"
#include "mode/mode.h"
#include "track/guard_report.h"

enum event {
#define EVENT(id, name) id,
#include "tally/tally_events.def"
#undef EVENT
    EVENTS
};

static const char *const names[EVENTS] = {
#define EVENT(id, name) name,
#include "tally/tally_events.def"
#undef EVENT
};

static _Atomic uint64_t counts[EVENTS];  // relaxed: each stands alone, and is read at the end

static void count(enum event which)
{
    atomic_fetch_add_explicit(&counts[which], 1, memory_order_relaxed);
}

static void after_fork(void)
{
    for (int i = 0; i < EVENTS; i++)
        atomic_store_explicit(&counts[i], 0, memory_order_relaxed);
}

static void end(void)
{
    char text[200];
    size_t used = 0;
    for (int i = 0; i < EVENTS && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %" PRIu64, i ? ", " : "", names[i],
                                 atomic_load_explicit(&counts[i], memory_order_relaxed));
    guard_report_note("tally: %s", text);
}

static bool alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    count(ALLOC);
    return false;
}

static bool free_(const struct mode_free *f, CUresult *r)
{
    count(FREE);
    return false;
}

static enum mode_what ask(uint64_t address, struct mode_answer *answer)
{
    count(ASK);
    return MODE_NOT_OURS;
}

static void context_gone(CUcontext context)
{
    count(CONTEXT_GONE);
}

static void module_gone(const void *handle)
{
    count(MODULE_GONE);
}

static void function_found(const void *handle, const void *owner, const char *name)
{
    count(FUNCTION);
}

static void launch(const struct launch_call *launch)
{
    count(launch->graph ? GRAPH : LAUNCH);
}

static void node(const struct launch_call *node)
{
    count(NODE);
}

static void waited(enum driver_id call, uint64_t ended)
{
    count(WAIT);
}

const struct mode tally_mode = {
    .after_fork = after_fork,
    .end = end,
    .alloc = alloc,
    .free = free_,
    .ask = ask,
    .context_gone = context_gone,
    .module_gone = module_gone,
    .function_found = function_found,
    .launch = launch,
    .node = node,
    .waited = waited,
};
