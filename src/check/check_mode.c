// SPDX-License-Identifier: MIT
// --mode=check as the hooks see it.
#include "check/check_apart.h"
#include "check/check_certain.h"
#include "check/check_graph.h"
#include "check/check_host.h"
#include "check/check_launch.h"
#include "prove/check_prove.h"
#include "check/check_race.h"
#include "check/check_report.h"
#include "check/check_stray.h"
#include "check/check_unchecked.h"
#include "core/guard.h"
#include "launch/launch_call.h"
#include "mode/mode.h"
#include "track/guard_report.h"

static bool start(void)
{
    const char *why = !rewrite_possible()                          ? "the driver has no compiler"
                      : check_launch_start() || check_host_start() ? "no memory"
                                                                   : NULL;
    if (why)
        guard_report_note("--mode=check cannot check: %s", why);
    if (!why) {
        check_report_start();
        check_certain_start();
    }
    return !why;
}

static void after_fork(void)
{
    check_host_after_fork();
    check_launch_after_fork();
    check_apart_after_fork();
    check_graph_after_fork();
    check_prove_after_fork();
    check_race_after_fork();
    check_report_after_fork();
    check_unchecked_after_fork();
}

static void look(void)
{
    check_report_read(true);
    check_report_count();
}

static void context_last_look(CUcontext context)
{
    look();
}

static void context_ends(CUcontext context, enum driver_id call)
{
    check_race_order(MODE_ORDER_ALL);
    check_host_context_ends(context, call);
}

static void context_gone(CUcontext context)
{
    check_host_context_gone(context);
    check_apart_context_gone(context);
}

// The aborting thread may hold any lock: what cannot be read at once is not read.
static void aborts(void)
{
    check_report_read(false);
}

// --- memory ------------------------------------------------------------------------------------------------

static bool alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    if (a->kind == MODE_POOL) {
        check_host_alloc_in_order(a->stream, a->per_thread);
        check_race_alloc(a->stream, a->per_thread);
    }
    return false;
}

static bool free_(const struct mode_free *f, CUresult *r)
{
    if (f->way != MODE_FREE_IN_ORDER) {
        check_race_order(MODE_ORDER_ALL);
    } else if (!f->captured) {
        check_race_free(f->pointer, f->stream, f->per_thread);
        check_host_free_in_order(f->pointer, f->stream, f->per_thread);
    }
    return false;
}

// --- modules -----------------------------------------------------------------------------------------------

// "auto" is apart: launches that are proved then run the program's own code and wait for no compiler, and the
// CPU device decodes no variant that no launch needs.
static bool variants_are_apart(void)
{
    return guard.options.check_variants != OPTION_CHECK_VARIANTS_TOGETHER;
}

static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    if (!check_host_shadow)  // --mode=shadow has passes of its own
        rewrite_plan_add(plan, "check", true);
    plan->apart = variants_are_apart();
}

static const enum guard_count left[PASS_CHECK_LEFTS] = {
    [PASS_CHECK_SHARED] = GUARD_CHECK_LEFT_UNKNOWN,    [PASS_CHECK_LOCAL] = GUARD_CHECK_LEFT_UNKNOWN,
    [PASS_CHECK_ELSEWHERE] = GUARD_CHECK_LEFT_UNKNOWN, [PASS_CHECK_COLLECTIVE] = GUARD_CHECK_LEFT_MATRICES,
    [PASS_CHECK_ASYNC] = GUARD_CHECK_LEFT_ASYNC,       [PASS_CHECK_UNSIZED] = GUARD_CHECK_LEFT_OTHER};

static void count_sites(const struct pass_check *c)
{
    guard_add(GUARD_CHECK_KERNELS, c->nkernels);
    if (check_host_shadow)
        guard_add(GUARD_SHADOW_ACCESSES, c->nsites);
    for (uint32_t i = 0; i < c->nsites && !check_host_shadow; i++)
        if (c->sites[i].width)  // else a call of free
            guard_count(c->sites[i].root == PASS_CHECK_OWN ? GUARD_CHECK_OWN
                        : c->sites[i].root == PASS_CHECK_PARAM || c->sites[i].root == PASS_CHECK_VARIABLE
                            ? GUARD_CHECK_BASE
                            : GUARD_CHECK_INTERIOR);
    for (uint32_t i = 0; i < c->nfuncs; i++)
        for (int why = 0; why < PASS_CHECK_LEFTS; why++)
            guard_add(left[why], c->funcs[i].left[why]);
}

static void module_loaded(const struct rewrite_module *module)
{
    bool any = false;
    // Variants that are compiled later are modules of their own.
    bool later = module->row && module->row->later;
    for (unsigned i = 0; i < module->nparts; i++)
        if (module->parts[i]->check) {
            count_sites(module->parts[i]->check);
            if (module->parts[i]->check->foreign)
                check_stray_unseen();
            any = true;
        }
    if (later)
        guard_count(GUARD_CHECK_APART);
    else if (any)
        check_host_module(module->row);
}

// Its kernels have ended when the driver unloads it, and their errors are named by what is known of it.
static void module_ends(const void *handle)
{
    if (guard.real.cuCtxSynchronize && check_host_is_checked(handle))
        guard.real.cuCtxSynchronize();
    look();
    check_host_module_ends(handle, true);
    check_apart_ends(handle, true);
}

static void module_stays(const void *handle)
{
    check_host_module_ends(handle, false);
    check_apart_ends(handle, false);
}

static void limit_set(CUlimit limit)
{
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        check_host_limit_set();
}

// --- launches ----------------------------------------------------------------------------------------------

static void waited(enum driver_id call, uint64_t ended)
{
    check_report_read(ended != 0);
    if (ended)
        check_report_ended();
    check_host_waited(ended);
    check_host_find_heaps();
}

static void order(enum mode_order what)
{
    if (what == MODE_ORDER_GRAPHICS)
        check_stray_unseen();
    check_report_moved();
    check_race_order(what);
}

const struct mode check_mode = {
    .checks_kernels = true,
    .keeps_kernels = true,
    .start = start,
    .after_fork = after_fork,
    .end = check_unchecked_report,
    .summarise = check_launch_summarise,
    .aborts = aborts,
    .alloc = alloc,
    .free = free_,
    .context_last_look = context_last_look,
    .context_ends = context_ends,
    .context_stays = check_host_context_stays,
    .context_gone = context_gone,
    .limit_set = limit_set,
    .plan = plan,
    .module_loaded = module_loaded,
    .module_ends = module_ends,
    .module_stays = module_stays,
    .module_gone = check_apart_gone,
    .function_found = check_launch_found,
    .function_of = check_launch_function_of,
    .variant = check_launch_variant,
    .launch = check_launch,
    .node = check_launch,
    .node_set = check_graph_node_set,
    .node_ends = check_graph_node_ends,
    .graph_made = check_graph_made,
    .graph_updated = check_graph_updated,
    .graph_ends = check_graph_ends,
    .exec_ends = check_graph_exec_ends,
    .poll = check_report_poll,
    .waited = waited,
    .order = order,
};
