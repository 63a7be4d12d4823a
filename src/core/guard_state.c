// SPDX-License-Identifier: MIT
// Apart from guard.c, so that tests of a part need not link all hooks.
#include "core/guard.h"

struct guard guard;
