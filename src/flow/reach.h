// SPDX-License-Identifier: MIT
// Reaching definitions: for each read of a register, the writes whose value it may see.
//
// They are stored in factored form. A register's content at a point is a value, and a value is one of
//   DEF    what a statement wrote. `partial`, under a guard or to a part of the register: that, or `input`
//   ENTRY  what the register held when the function was entered: an argument, else undefined
//   JOIN   one of its inputs, by the edge on which control came into the block
// A read has exactly one value. The definitions that reach it are the DEFs and the ENTRY that its value leads
// to through inputs (reach_sources): exactly those from which a path leads to the read without a write of the
// whole register on it. Two reads of one value read the same bits if no path between them passes the place
// where the value arises. There is a JOIN only where different values meet and a read may follow; in
// irreducible regions there may be JOINs of equal values, which changes no result. Memory and most of the
// time are linear in the function, where a bit per block and definition would take gigabytes.
//
// Paths start at the entry: reads in unreachable blocks have the value REACH_NONE, and writes there reach
// nothing. The carry flag is not a register here.
//
//   value[0 .. ndefs): the DEFs, by statement; after them ENTRYs and JOINs, by register
//   read[a], written[a]: by access of struct regs; REACH_NONE if it does not read, write
//   a partial write also has a read[a]: the value that it overwrites in part
//   JOIN in block b: input[v.input + i] comes from the i-th predecessor of b, REACH_NONE if that is never
//   reached; if b is the entry, one more input after them is the ENTRY
#ifndef MOAT_FLOW_REACH_H
#define MOAT_FLOW_REACH_H

#include "base/vec.h"
#include "flow/cfg.h"
#include "flow/dom.h"
#include "flow/regs.h"

#define REACH_NONE UINT32_MAX

enum reach_kind { REACH_DEF, REACH_ENTRY, REACH_JOIN };

struct reach_value {
    uint32_t reg;    // index of struct regs
    uint32_t place;  // DEF: statement; JOIN: block
    uint32_t input;  // DEF, partial: the value it overwrites in part; JOIN: first input
    uint8_t kind;
    bool partial;
};

struct reach {
    struct arena arena;
    const struct cfg *cfg;
    const struct regs *regs;
    uint32_t ndefs;
    uint32_t *read, *written;
    VEC(struct reach_value) value;
    VEC(uint32_t) input;
};

struct reach_list {
    const uint32_t *at;
    uint32_t n;
};

// Computes reaching definitions; d must be the dominators of the cfg. The result keeps pointers to cfg and
// regs. limit: bytes, 0 for BUILD_LIMIT. Returns 0, -ENOMEM or -E2BIG.
int reach_build(const struct cfg *c, const struct dom *d, const struct regs *r, size_t limit,
                struct reach **out);
void reach_free(struct reach *r);
bool reach_valid(const struct reach *r);

// Returns the value that a statement reads from a register (by index); REACH_NONE if it reads none.
uint32_t reach_read(const struct reach *r, uint32_t stmt, uint32_t reg);

// Returns the inputs of a JOIN, or the one of a partial DEF.
struct reach_list reach_inputs(const struct reach *r, uint32_t value);

// The list that reach_sources fills, and its scratch memory. It starts as {0} and can be reused.
struct reach_set {
    VEC(uint32_t) items;  // values, ascending
    VEC(uint32_t) stack;
    uint32_t *mark, nmarks, clock;
};

// Lists the DEFs, and the ENTRY, that a value leads to. Returns 0 or -ENOMEM.
int reach_sources(const struct reach *r, uint32_t value, struct reach_set *set);
void reach_set_free(struct reach_set *set);

#endif
