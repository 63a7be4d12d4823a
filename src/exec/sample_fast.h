// SPDX-License-Identifier: MIT
// The usual questions to a texture, quickly: one level, two dimensions at most, no border. Answers are those of
// sample_read. Internal to src/exec.
#ifndef MOAT_EXEC_SAMPLE_FAST_H
#define MOAT_EXEC_SAMPLE_FAST_H

#include "exec/sample.h"

// Whether all questions of an instruction to this texture are of that kind; s: what they have in common. Looks at the
// rights to the memory as a whole.
bool sample_fast_suits(const struct texture *t, const struct sample *s);
void sample_fast_read(const struct texture *t, const struct sample *s, uint32_t out[4]);

#endif
