// SPDX-License-Identifier: MIT
// Sets the environment of a program so that memory pools do not hide buffers from moat.
#ifndef MOAT_CLI_POOLS_H
#define MOAT_CLI_POOLS_H

#include "base/option.h"

// folder: of our libraries, the guard among them. Makes NVTX announcements reach the guard, unless a tool is
// set already, and turns pools off (--unpool), unless the user has set them. Returns 0 or a negative code.
int pools_set(const char *folder, const struct options *options);

#endif
