// SPDX-License-Identifier: MIT
// Values put together from parts, and taken apart. Internal to src/exec.
#ifndef MOAT_EXEC_PACK_H
#define MOAT_EXEC_PACK_H

#include "exec/warp.h"

// A value of 16, 32, 64 or 128 bits in 2 or 4 parts: d from a, b, c, e; or a into d, b, c, e.
exec_fn *pack_fn(unsigned bits, unsigned parts);
exec_fn *unpack_fn(unsigned bits, unsigned parts);

#endif
