// SPDX-License-Identifier: MIT
// malloc and free inside kernels, as the hooks see it: a part of --mode=canary and of --mode=check. In canary
// mode its monitor reads and scans the heaps. Check mode alone does not scan: checks find what a scan would,
// and blocks that were freed stay so for longer; malloc releases them when they are many.
#include "canary/canary.h"
#include "core/guard.h"
#include "kwatch/kheap_host.h"
#include "kwatch/kheap_import.h"
#include "kwatch/kheap_watch.h"
#include "mode/mode.h"
#include "track/guard_report.h"

static const struct canary_companion companion = {kheap_host_any, kheap_watch_read, kheap_watch_context};

static bool is_checked(void)
{
    return guard.options.mode >> OPTION_MODE_CHECK & 1;
}

static bool start(void)
{
    static bool started;
    const char *name = is_checked() ? "check" : "canary";
    if (!guard.options.kheap || started)
        return false;
    started = true;
    if (!rewrite_possible()) {
        guard_report_note("%s: malloc inside kernels is not watched: the driver has no compiler", name);
        return false;
    }
    kheap_host_start(name, is_checked());
    canary_monitor_set_companion(&companion);
    return true;
}

static bool allocates(const struct rewrite_origin *from)
{
    if (!canary_on && !is_checked())
        return false;
    return from->path   ? kheap_import_file(from->path, from->arch)
           : from->size ? kheap_import_bytes(from->image, from->size, from->arch)
                        : kheap_import_memory(from->image, from->arch);
}

static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    if (allocates(origin))
        rewrite_plan_add(plan, "kheap", false);
}

static void input_left(const struct rewrite_origin *origin)
{
    if (allocates(origin))
        kheap_host_foreign(false, "an input of a link");
}

static void module_loaded(const struct rewrite_module *module)
{
    for (unsigned i = 0; i < module->nparts; i++)
        if (pass_symbol_of(module->parts[i], "kheap")) {
            kheap_host_module(module->row);
            return;
        }
}

static void module_left(const struct rewrite *r)
{
    if (rewrite_plan_has(&r->plan, "kheap"))
        kheap_host_foreign(r->library, r->detail);
}

static void context_gone(CUcontext context)
{
    struct context *ctx = context_find(context);
    if (!ctx)
        return;
    canary_monitor_lock();
    kheap_host_context_gone(ctx);
    canary_monitor_unlock();
}

static void limit_set(CUlimit limit)
{
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        kheap_host_limit_set();
}

static void launch(const struct launch_call *launch)
{
    kheap_host_launch();
}

// In canary mode the monitor does this.
static void context_ends(CUcontext context, enum driver_id call)
{
    if (!canary_on)
        kheap_watch_ending(context_find(context), true);
}

static void context_stays(CUcontext context)
{
    if (!canary_on)
        kheap_watch_ending(context_find(context), false);
}

static void context_last_look(CUcontext context)
{
    kheap_watch_read_all(true);
}

static void poll(void)
{
    kheap_watch_read_all(false);
}

static void waited(enum driver_id call, uint64_t ended)
{
    kheap_watch_read_all(ended != 0);
}

const struct mode kheap_mode = {
    .start = start,
    .after_fork = kheap_host_after_fork,
    .aborts = poll,
    .context_last_look = context_last_look,
    .context_ends = context_ends,
    .context_stays = context_stays,
    .context_gone = context_gone,
    .limit_set = limit_set,
    .plan = plan,
    .input_left = input_left,
    .module_loaded = module_loaded,
    .module_left = module_left,
    .module_ends = kheap_host_module_ends,
    .module_stays = kheap_host_module_stays,
    .launch = launch,
    .poll = poll,
    .waited = waited,
};
