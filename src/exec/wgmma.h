// SPDX-License-Identifier: MIT
// Products whose operands lie in shared memory: wgmma. Internal to src/exec.
//
// Four warps make a product of 64 rows together; each makes its 16 rows alone, when it comes to the instruction, which
// the fences and waits around it allow. Where an operand lies in shared memory is said by a descriptor:
//
//   bits 0 to 13   the first byte, in units of 16       bits 16 to 29   the leading offset, likewise
//   bits 32 to 45  the stride, likewise                 bits 62 to 63   swizzle: 0 none, 1 128 bytes, 2 64, 3 32
#ifndef MOAT_EXEC_WGMMA_H
#define MOAT_EXEC_WGMMA_H

#include "exec/matrix.h"

enum { WGMMA_COLUMNS = 8, WGMMA_RESULTS = 128 };  // columns that are made at once; most registers of D

struct wgmma {
    struct matrix_product product;  // of 16 rows and 8 columns; slots of A, if it lies in registers
    uint16_t n;
    bool a_in_registers, a_by_row,
        b_by_row;  // by_row: what lies side by side are rows of A, columns of B, not k
    bool a_negated, b_negated;
    uint32_t a, b;   // slots of the descriptors
    uint32_t adds;   // slot of a predicate: D is added to; see always
    uint8_t always;  // 1: it always is; 0: never; 2: the predicate says
    uint32_t d[WGMMA_RESULTS];
};

exec_fn wgmma_run;  // ptr: struct wgmma; i + 1 has the flags of the accesses to shared memory

#endif
