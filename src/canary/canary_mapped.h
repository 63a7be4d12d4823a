// SPDX-License-Identifier: MIT
// Device memory for large buffers between canaries, mapped piece by piece: --canary-memory=mapped. A context has addresses in
// reserve; memory comes to lie behind what came before, so that a buffer may reach from one piece into the next, and of
// many buffers none loses the rest of the 2 MiB in which a device gives memory.
//
//   | lead | buffer, canary | buffer, canary | buffer, ca ...          by address
//   |        piece        | piece |        piece        | piece |     each goes back when nothing of it is taken
//
// Nothing is mapped before the first piece, nor behind a gap: there the lead is for the head of the first buffer.
#ifndef MOAT_CANARY_CANARY_MAPPED_H
#define MOAT_CANARY_CANARY_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "canary/canary_suballoc.h"
#include "context/context.h"
#include "share/share.h"

enum { CANARY_MAPPED_LEAST = 1 << 20 };  // smaller ranges are not for it

// Whether there is more to be had, as far as is known.
bool canary_mapped_usable(const struct context *ctx);
// Of this context no more memory is mapped, nor given out: copies across pieces, say, do not work. A note says why.
void canary_mapped_give_up(const struct context *ctx, const char *why);

// A range, or 0. Calls nothing of the driver's.
uint64_t canary_mapped_take(const struct context *ctx, uint64_t bytes);
void canary_mapped_give(const struct context *ctx, uint64_t base, uint64_t bytes);

// Memory for such a range, and for some more of them, becomes ranges to take. 0, or -ENOMEM. The context's context is current.
int canary_mapped_grow(const struct context *ctx, uint64_t bytes);

// Bytes of pieces of which nothing is taken but these ranges.
uint64_t canary_mapped_spare(const struct context *ctx, const struct canary_extent *but, unsigned n);
// Gives such pieces back to the driver, until it is so many bytes; how many it were. No scan may be under way.
uint64_t canary_mapped_trim(const struct context *ctx, uint64_t want);

// Whether the pieces in which a buffer lies can be given to another process: it is here, and they are not too many.
bool canary_mapped_can_share(uint64_t buffer, uint64_t size);
// Does so.
bool canary_mapped_share(uint64_t buffer, uint64_t size, struct share_memory *memory);
// Another device may use the memory of a context.
void canary_mapped_let(CUcontext context, const CUmemAccessDesc *desc);

void canary_mapped_context_gone(const struct context *ctx);
void canary_mapped_after_fork(void);

#endif
