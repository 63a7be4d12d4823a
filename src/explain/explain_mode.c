// SPDX-License-Identifier: MIT
// --mode=explain as the hooks see it.
#include "explain/explain.h"
#include "explain/explain_text.h"
#include "mode/mode.h"
#include "track/guard_report.h"

static bool start(void)
{
    bool started = explain_start();
    if (!started)
        guard_report_note("--mode=explain cannot work: no memory");
    return started;
}

// Wants no pass: the image is read here and loaded as it is.
static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    explain_text_plan(origin);
}

const struct mode explain_mode = {
    .start = start,
    .after_fork = explain_after_fork,
    .end = explain_end,
    .plan = plan,
    .module_made = explain_made,
    .module_gone = explain_gone,
    .library_in_context = explain_alias,
    .function_found = explain_function_found,
    .function_of = explain_function_of,
    .launch = explain_launch,
    .node = explain_launch,
};
