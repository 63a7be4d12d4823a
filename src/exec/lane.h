// SPDX-License-Identifier: MIT
// Instructions that compute a lane's results from the same lane's operands: arithmetic, comparison, logic, shift,
// selection, moves, conversion. One row per operation in lanes_*.def.
//
// The files lanes_*.c are compiled once per instruction set (LANES_ISA: plain, avx2, avx512); rows have the same
// number in each, and lane_fn gives the function for the set that was chosen.
//
// Operands of a row, whatever the instruction:
//   d        the first destination
//   e        the second destination (setp p|q, lop3 d|p), else the fourth source (bfi); a scratch slot if the
//            instruction leaves it out
//   a, b, c  the sources in order; a predicate written !p is inverted before
//   imm      lop3: the table in bits 0 to 7; with .BoolOp the slot of the predicate q in bits 32 to 63
//   flags    what lane_pick gave
// A source that is missing where the syntax allows it (setp without c, min with two) has slot 0: flags tell.
// Slots have the width of the instruction's type; the decoder resizes wider registers that cvt may name.
#ifndef MOAT_EXEC_LANE_H
#define MOAT_EXEC_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/warp.h"
#include "ptx/op.h"

struct lane_op {
    uint16_t row;
    uint32_t flags;
};

// Which row executes an instruction with that many source operands. 0, or -ENOTSUP: not one of ours, or a
// combination that does not exist.
int lane_pick(const struct ptx_form *form, unsigned nsources, struct lane_op *out);

// Rows for what the decoder makes up itself, with one source. Among slots of 16, 32 and 64 bits, resize truncates
// or extends; extend does so to the low 8, 16 or 32 bits of a slot without changing its width.
uint16_t lane_mov(unsigned bits);  // 1 (pred), 16, 32, 64, 128
uint16_t lane_resize(unsigned from, unsigned to, bool is_signed);
uint16_t lane_extend(unsigned bits, unsigned slot, bool is_signed);
uint16_t lane_add(void);  // 64 bits, of addresses
uint16_t lane_pred_not(void);
// A component of a special register, to 32 bits. Status 0, or -ENOTSUP: special.c reads it.
int lane_special(enum ptx_sreg id, unsigned component, uint16_t *row);

exec_fn *lane_fn(uint16_t row);

// For counting and tests.
unsigned lane_rows(void);
const char *lane_name(uint16_t row);

#endif
