// SPDX-License-Identifier: MIT
// The registers that a function accesses, and where, as plain arrays.
//
// Only registers that are used get an index, in the order of their numbers. (A function may declare millions
// and use three.) Beyond the accesses that ptx_stmt_regs lists for a statement:
//   a ret reads the registers that the function returns;
//   registers declared outside functions are read by every ret, and read and perhaps written by every call;
//   an instruction that is not in ops.def reads and perhaps writes every register it names.
// The accesses of a statement kept verbatim are not known: see cfg.h on `uncertain`.
//
//   reg[i] < reg[i + 1];  index[reg[i]] == i + 1, and 0 for registers that are not used
//   access[access_at[s] .. access_at[s + 1])  what statement s does, each register once; it reads first
#ifndef MOAT_FLOW_REGS_H
#define MOAT_FLOW_REGS_H

#include "ptx/ptx.h"

#define REGS_NONE UINT32_MAX

struct regs_access {
    uint32_t reg;  // index
    bool reads, writes;
    bool partial;  // writes, but may keep (part of) the old value: guarded, or through a selector
};

struct regs {
    struct arena arena;
    uint32_t n, nstmts;
    uint32_t *reg;        // by index: the register's number
    uint32_t *index;      // by number: its index + 1
    uint32_t *access_at;  // by statement, and one past the last
    struct regs_access *access;
    uint32_t nreturned;  // registers whose values the caller sees
    uint32_t *returned;  // indices, ascending
};

struct regs_list {
    const struct regs_access *at;
    uint32_t n;
};

// Lists the accesses of a function; the result is invalid once its statements change. limit: bytes, 0 for
// BUILD_LIMIT. Returns 0, -ENOMEM or -E2BIG.
int regs_build(const struct ptx_func *f, size_t limit, struct regs **out);
void regs_free(struct regs *r);
bool regs_valid(const struct regs *r);

static inline struct regs_list regs_at(const struct regs *r, uint32_t stmt)
{
    return (struct regs_list){r->access + r->access_at[stmt], r->access_at[stmt + 1] - r->access_at[stmt]};
}

// Returns the index of a register, REGS_NONE if it is not used.
static inline uint32_t regs_index(const struct regs *r, uint32_t reg)
{
    return r->index[reg] - 1;
}

#endif
