// SPDX-License-Identifier: MIT
// Device memory for large buffers between canaries, mapped piece by piece: --canary-memory=mapped. A context
// reserves addresses, and each new piece is mapped right behind the one before it. So a buffer may reach from
// one piece into the next, and buffers do not each lose the rest of the 2 MiB that are the device's
// granularity.
//
//   | lead | buffer, canary | buffer, canary | buffer, ca ...          by address
//   |        piece        | piece |        piece        | piece |     unmapped when nothing in it is taken
//
// Nothing is mapped before the first piece, nor before a piece behind a gap. The lead there holds the head of
// the first buffer.
#ifndef MOAT_CANARY_CANARY_MAPPED_H
#define MOAT_CANARY_CANARY_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "canary/canary_suballoc.h"
#include "context/context.h"
#include "share/share.h"

enum { CANARY_MAPPED_LEAST = 1 << 20 };  // smaller ranges are not taken here

// Returns whether the context can map more memory, as far as is known.
bool canary_mapped_usable(const struct context *ctx);
// Stops mapping and handing out memory in this context, because copies across pieces fail, for example. A
// note says why.
void canary_mapped_disable(const struct context *ctx, const char *why);

// Returns a range of `bytes` bytes, or 0 if there is none. Makes no driver call.
uint64_t canary_mapped_take(const struct context *ctx, uint64_t bytes);
void canary_mapped_give(const struct context *ctx, uint64_t base, uint64_t bytes);

// Maps memory for a range of `bytes` bytes and for some more of its size. Returns 0 or -ENOMEM. Requires ctx
// to be current.
int canary_mapped_grow(const struct context *ctx, uint64_t bytes);

// Returns the bytes in pieces that could be unmapped if the n ranges in `assumed` were free.
uint64_t canary_mapped_spare(const struct context *ctx, const struct canary_extent *assumed, unsigned n);
// Unmaps unused pieces until `want` bytes have been returned to the driver. Returns how many were. No scan
// may be running.
uint64_t canary_mapped_trim(const struct context *ctx, uint64_t want);

// Returns whether a buffer lies in mapped memory, in few enough pieces to be exported to another process.
bool canary_mapped_can_share(uint64_t buffer, uint64_t size);
// Exports the pieces of a buffer. Returns false if that fails; no descriptor stays open.
bool canary_mapped_share(uint64_t buffer, uint64_t size, struct share_memory *memory);
// Lets another device access the mapped memory of a context.
void canary_mapped_set_access(CUcontext context, const CUmemAccessDesc *desc);

void canary_mapped_context_gone(const struct context *ctx);
void canary_mapped_after_fork(void);

#endif
