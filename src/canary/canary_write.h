// SPDX-License-Identifier: MIT
// Writes canaries: around one buffer, or into a new slab.
#ifndef MOAT_CANARY_CANARY_WRITE_H
#define MOAT_CANARY_CANARY_WRITE_H

#include "canary/canary_slab.h"

// Computes the canaries of a buffer; *count is set to the length of the tail.
void canary_write_make(const struct canary_place *place, uint8_t head[CANARY_HEAD],
                       uint8_t tail[CANARY_TAIL_MOST], uint32_t *count);
// Writes them, and returns when that is done. Requires ctx to be current.
CUresult canary_write_place(struct context *ctx, const struct canary_place *place);
// Writes all canaries of a slab that is not open yet, and returns when that is done. Requires ctx to be
// current.
CUresult canary_write_slab(struct context *ctx, const struct canary_slab *slab);

void canary_write_after_fork(void);

#endif
