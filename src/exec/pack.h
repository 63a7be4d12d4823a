// SPDX-License-Identifier: MIT
// Values built from parts and split into parts. Internal to src/exec.
#ifndef MOAT_EXEC_PACK_H
#define MOAT_EXEC_PACK_H

#include "exec/warp.h"

// Return the function for a value of 16, 32, 64 or 128 bits in 2 or 4 parts: pack_fn builds d from a, b, c,
// e; unpack_fn splits a into d, b, c, e.
exec_fn *pack_fn(unsigned bits, unsigned parts);
exec_fn *unpack_fn(unsigned bits, unsigned parts);

#endif
