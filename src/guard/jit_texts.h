// SPDX-License-Identifier: MIT
// The PTX in what a program passes to a linker at run time.
#ifndef MOAT_GUARD_JIT_TEXTS_H
#define MOAT_GUARD_JIT_TEXTS_H

#include "base/out.h"

// Appends the texts of an input for `arch` (90 for sm_90), each followed by a NUL. The input is bytes, or the
// file at `path` if bytes.ptr is NULL: PTX, machine code whose PTX is known (ptx_registry.h), a fatbin, or a
// host object or library with fatbins. Returns 0, or a negative code of rewrite_source.h: -ENODATA if a part
// has no PTX.
int jit_texts_add(struct out *to, struct str bytes, const char *path, unsigned arch);

#endif
