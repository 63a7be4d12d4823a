// SPDX-License-Identifier: MIT
#include "hook/api_error.h"

#include <stdio.h>

#include "core/guard.h"
#include "track/guard_report.h"

enum { ANY = -1 };

static const struct {
    int call, result;  // ANY: whichever
} usual[] = {
#define USUAL(symbol, result, why) {DRIVER_##symbol, (int)result},
#define ALWAYS(result, why) {ANY, (int)result},
#include "hook/usual_failures.def"
#undef USUAL
#undef ALWAYS
};

static bool is_usual(enum driver_id call, CUresult r)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if ((usual[i].call == ANY || usual[i].call == (int)call) &&
            (usual[i].result == ANY || usual[i].result == (int)r))
            return true;
    return false;
}

bool api_error_wanted(void)
{
    return guard.watching && guard.options.api_errors;
}

void api_error_seen(enum driver_id call, CUresult r)
{
    if (is_usual(call, r))
        return;
    char note[200];
    snprintf(note, sizeof note, "%s returned %d, %s: %s", driver_calls[call].symbol, (int)r,
             driver_result_name(r), driver_result_text(r));
    guard_report_finding(
        &(struct guard_finding){.type = REPORT_API_ERROR, .call = call, .nowhere = true, .note = note});
}
