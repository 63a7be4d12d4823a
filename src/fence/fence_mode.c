// SPDX-License-Identifier: MIT
// --mode=fence as the hooks see it.
#include "core/guard.h"
#include "fence/fence_client.h"
#include "fence/fence_handles.h"
#include "fence/fence_host.h"
#include "fence/fence_launch.h"
#include "fence/fence_memory.h"
#include "fence/fence_report.h"
#include "launch/launch_call.h"
#include "mode/mode.h"
#include "track/guard_report.h"

static bool start(void)
{
    const char *why = !rewrite_possible()                          ? "the driver has no compiler"
                      : fence_launch_start() || fence_host_start() ? "no memory"
                                                                   : NULL;
    if (why)
        guard_report_note("--mode=fence cannot fence: %s", why);
    else {
        fence_report_start();
        fence_client_start();
    }
    return !why;
}

static void after_fork(void)
{
    fence_host_after_fork();
    fence_memory_after_fork();
    fence_report_after_fork();
    fence_client_after_fork();
}

static void look(void)
{
    fence_report_read(true);
    fence_report_count();
}

static void context_last_look(CUcontext context)
{
    look();
}

static void context_gone(CUcontext context)
{
    fence_host_context_gone(context);
    fence_memory_context_gone(context);
    fence_report_forget();
}

// The aborting thread may hold any lock: what cannot be read at once is not read.
static void aborts(void)
{
    fence_report_read(false);
}

static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    static const char *const passes[][2] = {
        [OPTION_FENCE_MASK] = {"fence", "fence_watchdog"},
        [OPTION_FENCE_CHECK] = {"fence_check", "fence_check_watchdog"},
        [OPTION_FENCE_MODULO] = {"fence_modulo", "fence_modulo_watchdog"},
    };
    rewrite_plan_add(plan, passes[guard.options.fence][guard.options.fence_watchdog != 0], true);
    plan->closed = true;
}

// Its kernels have ended when the driver unloads it, and what they recorded is named by what is known of it.
static void module_ends(const void *handle)
{
    look();
    fence_host_module_ends(handle, true);
}

static void module_stays(const void *handle)
{
    fence_host_module_ends(handle, false);
}

static void poll(void)
{
    fence_memory_poll();
}

static void waited(enum driver_id call, uint64_t ended)
{
    fence_report_read(ended != 0);
    fence_memory_poll();
}

const struct mode fence_mode = {
    .checks_kernels = true,
    .start = start,
    .after_fork = after_fork,
    .aborts = aborts,
    .alloc = fence_memory_alloc,
    .free = fence_memory_free,
    .ask = fence_memory_ask,
    .held = fence_memory_held,
    .context_last_look = context_last_look,
    .context_ends = fence_host_context_ends,
    .context_stays = fence_host_context_stays,
    .context_gone = context_gone,
    .limit_set = fence_host_limit_set,
    .limit = fence_host_limit,
    .object = fence_handles_object,
    .tensor = fence_handles_tensor,
    .plan = plan,
    .module_loaded = fence_host_module,
    .module_ends = module_ends,
    .module_stays = module_stays,
    .module_gone = fence_host_module_gone,
    .function_found = fence_launch_found,
    .function_of = fence_launch_function_of,
    .variant = fence_launch_variant,
    .launch = fence_launch,
    .node = fence_launch,
    .poll = poll,
    .waited = waited,
};
