// SPDX-License-Identifier: MIT
// Blocks that pool allocators announce (moat.h).
#include "context/capture_rule.h"
#include "core/guard.h"
#include "guard/forward.h"
#include "guard/guard_start.h"
#include "hook/api_error.h"
#include "hook/hook.h"
#include "mode/mode.h"
#include "track/guard_report.h"
#include "context/names.h"
#include "track/track.h"
#include "moat.h"

static void block_made(const void *base, size_t size, const char *name)
{
    guard_start();
    if (!guard.watching || !base)
        return;
    track_made_for(TRACK_ANNOUNCED, TRACK_MADE_BY_ANNOUNCEMENT, (uintptr_t)base, size, NULL,
                   names_keep(name));
    guard_count(GUARD_ANNOUNCED);
}

static void block_gone(const void *base)
{
    if (guard.watching)
        track_withdraw((uintptr_t)base);
}

static unsigned long long errors(void)
{
    return guard_report_errors();
}

static int pause_guard(int on)
{
    guard_start();
    if (!guard.watching || !mode_can_pause())
        return 0;
    atomic_store_explicit(&guard.paused, on, memory_order_relaxed);
    atomic_store_explicit(&guard.was_paused, true, memory_order_relaxed);
    capture_rule_begins();
    hook_pause(&guard.real, &forward_tables, on, api_error_wanted());
    return 1;
}

extern const struct moat_calls moat_calls;
__attribute__((visibility("default"))) const struct moat_calls moat_calls = {
    .size = sizeof moat_calls,
    .block_made = block_made,
    .block_gone = block_gone,
    .errors = errors,
    .pause = pause_guard,
};
