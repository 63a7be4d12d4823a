// SPDX-License-Identifier: MIT
// malloc and free inside kernels, as the hooks see it: a part of --mode=canary.
#include "canary/canary.h"
#include "core/guard.h"
#include "kwatch/kheap_host.h"
#include "kwatch/kheap_import.h"
#include "kwatch/kheap_watch.h"
#include "mode/mode.h"
#include "track/guard_report.h"

static const struct canary_companion companion = {kheap_host_any, kheap_watch_read, kheap_watch_context};

static bool start(void)
{
    if (!guard.options.kheap)
        return false;
    if (!rewrite_possible()) {
        guard_report_note("canary: malloc inside kernels is not watched: the driver has no compiler");
        return false;
    }
    kheap_host_start();
    canary_monitor_set_companion(&companion);
    return true;
}

static bool allocates(const struct rewrite_origin *from)
{
    if (!canary_on)
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

const struct mode kheap_mode = {
    .start = start,
    .after_fork = kheap_host_after_fork,
    .context_gone = context_gone,
    .limit_set = limit_set,
    .plan = plan,
    .input_left = input_left,
    .module_loaded = module_loaded,
    .module_left = module_left,
    .module_ends = kheap_host_module_ends,
    .module_stays = kheap_host_module_stays,
    .launch = launch,
};
