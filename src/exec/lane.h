// SPDX-License-Identifier: MIT
// Instructions that compute a lane's results from the same lane's operands: arithmetic, comparison, logic,
// shift, selection, moves, conversion. Each operation is a row in lanes_*.def.
//
// The files lanes_*.c are compiled once per instruction set (LANES_ISA: plain, avx2, avx512). A row has the
// same number in each; lane_fn returns its function in the chosen set.
//
// Operands of a row, whatever the instruction:
//   d        the first destination
//   e        the second destination (setp p|q, lop3 d|p), else the fourth source (bfi); a scratch slot if the
//            instruction omits it
//   a, b, c  the sources in order; a predicate written !p is inverted before
//   imm      lop3: the table in bits 0 to 7; with .BoolOp the slot of the predicate q in bits 32 to 63
//   flags    from lane_pick
// A source that the syntax allows to be missing (setp without c, min with two) has slot 0, and the flags say
// so. Slots have the width of the instruction's type; the decoder resizes wider registers that cvt may name.
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

// Chooses the row for an instruction with that many source operands. Returns 0, or -ENOTSUP if no row has the
// operation or the combination does not exist.
int lane_pick(const struct ptx_form *form, unsigned nsources, struct lane_op *out);

// Rows for instructions that the decoder adds itself, with one source. lane_resize truncates or extends
// between slots of 16, 32 and 64 bits; lane_extend extends the low 8, 16 or 32 bits of a slot to its full
// width.
uint16_t lane_mov(unsigned bits);  // 1 (pred), 16, 32, 64, 128
uint16_t lane_resize(unsigned from, unsigned to, bool is_signed);
uint16_t lane_extend(unsigned bits, unsigned slot, bool is_signed);
uint16_t lane_add(void);  // 64-bit addition, for addresses
uint16_t lane_pred_not(void);
// Chooses the row that reads a component of a special register as 32 bits. Returns 0, or -ENOTSUP if
// special.c reads it.
int lane_special(enum ptx_sreg id, unsigned component, uint16_t *row);

exec_fn *lane_fn(uint16_t row);

// For counters and tests.
unsigned lane_rows(void);
const char *lane_name(uint16_t row);

#endif
