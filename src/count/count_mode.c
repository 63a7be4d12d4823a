// SPDX-License-Identifier: MIT
// --mode=count as the hooks see it.
#include "count/count.h"
#include "count/count_read.h"
#include "launch/launch_call.h"
#include "mode/mode.h"
#include "track/guard_report.h"

static bool start(void)
{
    const char *why = !rewrite_possible() ? "the driver has no compiler" : count_start() ? "no memory" : NULL;
    if (why)
        guard_report_note("--mode=count cannot count: %s", why);
    else
        count_read_start();
    return !why;
}

static void after_fork(void)
{
    count_after_fork();
    count_read_after_fork();
}

static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    rewrite_plan_add(plan, "count", true);
}

static void module_loaded(const struct rewrite_module *module)
{
    count_read_add(module->row);
}

static void library_in_context(const void *library, CUmodule module)
{
    count_read_used(library);
}

static void function_of(CUfunction function, CUkernel kernel)
{
    count_handle(function, count_row_of(kernel));
}

static void launch(const struct launch_call *launch)
{
    if (launch->function)
        count_launch(launch->function);
}

const struct mode count_mode = {
    .start = start,
    .after_fork = after_fork,
    .end = count_report,
    .context_last_look = count_read_context_ending,
    .context_gone = count_read_context_ended,
    .plan = plan,
    .module_loaded = module_loaded,
    .module_ends = count_read_ending,
    .library_in_context = library_in_context,
    .function_found = count_read_found,
    .function_of = function_of,
    .launch = launch,
};
