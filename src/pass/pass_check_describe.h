// SPDX-License-Identifier: MIT
// The part of a description that the pass `check` adds.
#ifndef MOAT_PASS_PASS_CHECK_DESCRIBE_H
#define MOAT_PASS_PASS_CHECK_DESCRIBE_H

#include "base/arena.h"
#include "base/out.h"
#include "pass/pass_check.h"

void check_describe(const struct pass_check *check, struct out *to);

// Reads what follows the word "check" on its line, and the lines behind it, which are taken off *rest.
// Returns 0, -EINVAL or -ENOMEM.
int check_description(struct arena *arena, struct str line, struct str *rest, struct pass_check **out);

#endif
