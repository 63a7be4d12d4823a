// SPDX-License-Identifier: MIT
// What a program finds in its environment so that pools of memory do not hide buffers from moat.
#ifndef MOAT_CLI_POOLS_H
#define MOAT_CLI_POOLS_H

#include "base/option.h"

// folder: of our libraries, the guard among them. Makes the guard hear what is announced through NVTX, unless a tool is
// there already; turns pools off (--unpool), unless the user has set them; and lets Python do its part (--torch-alloc,
// --unpool). 0 or a negative code.
int pools_set(const char *folder, const struct options *options);

#endif
