// SPDX-License-Identifier: MIT
// Matrices whose elements lie in the registers of a warp: mma, wmma, ldmatrix, stmatrix, movmatrix. Internal to
// src/exec.
//
// A map says which element each part of each register of each lane holds. Elements are numbered row by row, of A as
// m rows of k, of B as k rows of n, of C and D as m rows of n. Types of 8 bits and less are handled as words of 32
// bits, which lie along k.
#ifndef MOAT_EXEC_MATRIX_H
#define MOAT_EXEC_MATRIX_H

#include "exec/warp.h"
#include "ptx/op.h"

enum { MATRIX_REGS = 8, MATRIX_PARTS = 2, MATRIX_MOST = 512 };  // MOST: elements of one operand

enum matrix_which { MATRIX_D, MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_OPERANDS };

struct matrix_shape {
    uint16_t m, n, k;
};

// What a map depends on.
struct matrix_kind {
    struct matrix_shape shape;
    uint8_t which;               // enum matrix_which; D and C are alike
    uint8_t type;                // enum ptx_type
    bool by_column, warp_level;  // .col; of wmma
    bool of_sparse;              // of mma.sp, which has twice the depth
};

struct matrix_map {
    struct matrix_map *next;  // of the same program
    struct matrix_kind kind;
    uint16_t rows, columns;  // in elements, or in words along k
    uint8_t nregs, parts;    // registers, and elements in each
    uint16_t at[MATRIX_REGS][EXEC_LANES][MATRIX_PARTS];
};

// False: there is no such matrix.
bool matrix_map_make(const struct matrix_kind *kind, struct matrix_map *out);

struct matrix_product {
    struct matrix_shape shape;
    uint8_t type[MATRIX_OPERANDS];  // enum ptx_type
    uint8_t rounding;               // f64: enum matrix_rounding
    bool saturates, by_and;         // integers; b1: and instead of xor
    bool by_group;                  // a part of wgmma
    const struct matrix_map *map[MATRIX_OPERANDS];
    uint32_t slot[MATRIX_OPERANDS][MATRIX_REGS];
};

// A has k / 2 columns, and `metadata` says which those are: of each four the two whose numbers two bits each give; of tf32
// of each two the one that the first of those says, halved. Four bits are of four numbers, or two of tf32.
struct matrix_sparse {
    struct matrix_product product;  // with a map of the whole of A
    const struct matrix_map *half;  // A's own, to which the slots belong
    uint32_t metadata;              // slot
    uint8_t selector;               // which lanes' counts
};
enum matrix_rounding { MATRIX_RN, MATRIX_RZ, MATRIX_RM, MATRIX_RP };

// A matrix in memory: its first element's address is in the instruction behind the one that is executed.
struct matrix_tile {
    const struct matrix_map *map;
    uint32_t slot[MATRIX_REGS];
    uint32_t stride;  // slot of the elements from row to row, or column to column; 0: natural
    uint8_t type;     // enum ptx_type
};

exec_fn mma_run;         // ptr: matrix_product
exec_fn mma_sparse_run;  // ptr: matrix_sparse

// ptr: matrix_tile; the address is i + 1's
exec_fn matrix_load, matrix_store;

// Where such a matrix lies, for one lane: in lines of so many bytes, `stride` apart.
struct matrix_lines {
    uint64_t start, stride;
    uint32_t lines, bytes;
};
struct matrix_lines matrix_lines(const struct exec_warp *w, const struct exec_insn *i, unsigned lane);

// d, b, c, e: slots of the matrices; flags: MATRIX_TRANSPOSE, count in the low bits; the addresses are i + 1's
exec_fn matrix_ldmatrix, matrix_stmatrix;
exec_fn matrix_movmatrix;  // d, a
enum { MATRIX_COUNT = 7, MATRIX_TRANSPOSE = 8 };

// False: not all lanes that are alive are here yet; execute *next instead.
bool matrix_meet(struct exec_warp *w, const struct exec_insn *i, const struct exec_insn **next);

// Elements, one in each word, from registers and back to those of active lanes.
void matrix_gather32(const struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                     uint32_t *out);
void matrix_scatter32(struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                      const uint32_t *from);
void matrix_gather64(const struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                     uint64_t *out);
void matrix_scatter64(struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                      const uint64_t *from);

// --- decoding (decode_matrix.c) -------------------------------------------------------------------------------

struct decode;
struct matrix_shape decode_shape(struct decode *d);  // that the statement spells
// The same for the same kind in all of a program; the statement is refused if there is none.
const struct matrix_map *decode_matrix_map(struct decode *d, const struct matrix_kind *k);

#endif
