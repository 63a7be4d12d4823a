// SPDX-License-Identifier: MIT
// A launch on its way to the driver.
#ifndef MOAT_LAUNCH_LAUNCH_CALL_H
#define MOAT_LAUNCH_LAUNCH_CALL_H

#include "driver/driver.h"

struct launch_call {
    CUfunction function;  // or a CUkernel; NULL: a graph is launched
    CUgraphExec graph;    // NULL: a kernel is launched
};

#endif
