// SPDX-License-Identifier: MIT
// Matrix products with operands in shared memory: wgmma. Internal to src/exec.
//
// Four warps compute a product of 64 rows. Each computes its 16 rows alone when it reaches the instruction,
// which the fences and waits around it allow. A descriptor gives an operand's position in shared memory:
//
//   bits 0 to 13   the first byte, in units of 16
//   bits 16 to 29  the leading offset, likewise
//   bits 32 to 45  the stride, likewise
//   bits 62 to 63  swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
#ifndef MOAT_EXEC_WGMMA_H
#define MOAT_EXEC_WGMMA_H

#include "exec/matrix.h"

// WGMMA_COLUMNS: columns computed at once. WGMMA_RESULTS: the most registers of D.
enum { WGMMA_COLUMNS = 8, WGMMA_RESULTS = 128 };

struct wgmma {
    struct matrix_product product;  // 16 rows and 8 columns; slots of A, if it is in registers
    uint16_t n;
    bool a_in_registers;
    bool a_by_row, b_by_row;  // rows of A, or columns of B, are contiguous, not k
    bool a_negated, b_negated;
    uint32_t a, b;   // slots of the descriptors
    uint32_t adds;   // slot of a predicate: add to D; see always
    uint8_t always;  // 1: always add to D; 0: never; 2: the predicate decides
    uint32_t d[WGMMA_RESULTS];
};

exec_fn wgmma_run;  // ptr: struct wgmma; i + 1 has the flags of the accesses to shared memory

#endif
