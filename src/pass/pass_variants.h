// SPDX-License-Identifier: MIT
// The pass `variants`, which runs after `check` or one for the shadow: leaves of the module only the checked
// variants of its kernels and what they call, so that the program's own module can be loaded unchanged, and
// the variants in modules of their own when a launch first needs them. It sets pass_check.apart.
//
// Variables stay in the program's module. A variant takes their addresses from a constant table,
// pass_check.table, that the host fills; what was constant memory is accessed as global memory. The module is
// left as it is, and `apart` false, where that is impossible: functions whose address is taken cannot be
// called from another module, and some variables have no address that the host could find out.
#ifndef MOAT_PASS_PASS_VARIANTS_H
#define MOAT_PASS_PASS_VARIANTS_H

#include "base/diag.h"
#include "base/out.h"
#include "base/str.h"

// Returns whether a pass of that name makes variants that can be in modules of their own.
bool pass_variants_of(const char *pass);

// How a variant is compiled.
struct pass_variants_way {
    unsigned registers;  // most that the kernel may use; 0: as many as its own directives allow
    unsigned beside;     // the same, if its code is marked
    bool cold;  // cold code is marked, if there is much of it: the compiler takes PTX 9.0 (pass_cold.h)
};

// Writes the text that holds one kernel of a text that the pass has made, and what the kernel calls, followed
// by a NUL. Returns 0, -ENOENT if there is no such kernel, -EINVAL or -ENOMEM.
int pass_variants_cut(struct str text, struct str kernel, const struct pass_variants_way *way,
                      struct diag_sink *sink, struct out *to);

#endif
