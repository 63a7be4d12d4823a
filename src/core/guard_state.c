// SPDX-License-Identifier: MIT
// Separate from guard_start.c, so that unit tests need not link all hooks.
#include "core/guard.h"

struct guard guard;
