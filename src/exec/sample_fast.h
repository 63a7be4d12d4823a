// SPDX-License-Identifier: MIT
// Fast path for common texture accesses: one level, at most two dimensions, no border. Results equal those of
// sample_read. Internal to src/exec.
#ifndef MOAT_EXEC_SAMPLE_FAST_H
#define MOAT_EXEC_SAMPLE_FAST_H

#include "exec/sample.h"

// Returns whether every access of an instruction to this texture can take the fast path; s holds what the
// lanes have in common. Checks the access rights of the whole texture.
bool sample_fast_suits(const struct texture *t, const struct sample *s);
void sample_fast_read(const struct texture *t, const struct sample *s, uint32_t out[4]);

#endif
