// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_plan.h"

#include <stdio.h>
#include <string.h>

bool rewrite_plan_has(const struct rewrite_plan *plan, const char *pass)
{
    for (unsigned i = 0; i < plan->count; i++)
        if (strcmp(plan->passes[i], pass) == 0)
            return true;
    return false;
}

void rewrite_plan_add(struct rewrite_plan *plan, const char *pass, bool whole)
{
    plan->whole |= whole;
    if (plan->count < REWRITE_PLAN_PASSES && !rewrite_plan_has(plan, pass))
        plan->passes[plan->count++] = pass;
}

void rewrite_plan_list(const struct rewrite_plan *plan, char *list, size_t size)
{
    size_t len = 0;
    if (size)
        *list = 0;
    for (unsigned i = 0; i < plan->count && len < size; i++)
        len += (size_t)snprintf(list + len, size - len, "%s%s", i ? "," : "", plan->passes[i]);
}
