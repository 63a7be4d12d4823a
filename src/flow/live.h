// SPDX-License-Identifier: MIT
// Liveness: the registers whose current value may still be read.
//
// r is live at a point if a path leads from there to a read of r with no write of the whole of r before it. A
// write under a guard or to a part neither reads nor kills the old value. The registers that a function
// returns are read by ret, and at the function's end if control may run into it. All blocks count, reachable
// or not.
//
// The sets are stored as lists, because most registers live in one block only and are in no list, and the
// rest are few at each place: a bit per block and register would take gigabytes where this takes megabytes.
//
//   in[in_at[b] .. in_at[b + 1])     live where block b starts: indices of struct regs, ascending
//   out[out_at[b] .. out_at[b + 1])  live where it ends: the union of its successors' in, and if it may run
//                                    into the function's end, the registers that the function returns
#ifndef MOAT_FLOW_LIVE_H
#define MOAT_FLOW_LIVE_H

#include "flow/cfg.h"
#include "flow/regs.h"

struct live {
    struct arena arena;
    const struct regs *regs;
    const struct cfg *cfg;
    uint32_t *in_at, *in;
    uint32_t *out_at, *out;
};

struct live_list {
    const uint32_t *at;
    uint32_t n;
};

// Computes liveness; the result keeps pointers to both arguments. limit: bytes, 0 for BUILD_LIMIT. Time and
// memory grow with the size of the result. Returns 0, -ENOMEM or -E2BIG.
int live_build(const struct cfg *c, const struct regs *r, size_t limit, struct live **out);
void live_free(struct live *l);
bool live_valid(const struct live *l);

static inline struct live_list live_in(const struct live *l, uint32_t block)
{
    return (struct live_list){l->in + l->in_at[block], l->in_at[block + 1] - l->in_at[block]};
}

static inline struct live_list live_out(const struct live *l, uint32_t block)
{
    return (struct live_list){l->out + l->out_at[block], l->out_at[block + 1] - l->out_at[block]};
}

bool live_list_has(struct live_list list, uint32_t reg);  // reg: index

// Walks a block backwards. live_walk_block starts after the last statement of a block; each live_walk_back
// moves before one more statement.
//
//   item[0 .. n): what is live there, in no order;  r is live  <=>  place[r] < n && item[place[r]] == r
struct live_walk {
    const struct live *live;
    uint32_t stmt;  // the walk is before this statement
    uint32_t n;
    uint32_t *item, *place;
};

int live_walk_init(struct live_walk *w, const struct live *l);  // 0 or -ENOMEM
void live_walk_free(struct live_walk *w);
void live_walk_block(struct live_walk *w, uint32_t block);
void live_walk_back(struct live_walk *w);

static inline bool live_walk_has(const struct live_walk *w, uint32_t reg)
{
    return w->place[reg] < w->n && w->item[w->place[reg]] == reg;
}

#endif
