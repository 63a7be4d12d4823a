// SPDX-License-Identifier: MIT
// Matrices whose elements lie in the registers of a warp: mma, wmma, ldmatrix, stmatrix, movmatrix. Internal
// to src/exec.
//
// A map lists which element each part of each register of each lane holds. Elements are numbered row by row:
// A has m rows of k, B k rows of n, C and D m rows of n. Types of 8 bits and less are handled as 32-bit
// words, which lie along k.
#ifndef MOAT_EXEC_MATRIX_H
#define MOAT_EXEC_MATRIX_H

#include "exec/warp.h"
#include "ptx/op.h"

// MATRIX_MOST: the most elements of one operand
enum { MATRIX_REGS = 8, MATRIX_PARTS = 2, MATRIX_MOST = 512 };

enum matrix_which { MATRIX_D, MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_OPERANDS };

struct matrix_shape {
    uint16_t m, n, k;
};

// The key of a map.
struct matrix_kind {
    struct matrix_shape shape;
    uint8_t which;               // enum matrix_which; D and C are alike
    uint8_t type;                // enum ptx_type
    bool by_column, warp_level;  // by_column: .col; warp_level: wmma
    bool of_sparse;              // mma.sp, which has twice the depth
};

struct matrix_map {
    struct matrix_map *next;  // in the same program
    struct matrix_kind kind;
    uint16_t rows, columns;  // in elements, or in words along k
    uint8_t nregs, parts;    // registers; elements in each register
    uint16_t at[MATRIX_REGS][EXEC_LANES][MATRIX_PARTS];
};

// Fills the map. Returns false if there is no such matrix.
bool matrix_map_make(const struct matrix_kind *kind, struct matrix_map *out);

struct matrix_product {
    struct matrix_shape shape;
    uint8_t type[MATRIX_OPERANDS];  // enum ptx_type
    uint8_t rounding;               // f64: enum matrix_rounding
    bool saturates, by_and;         // saturates: integers; by_and: b1 with .and instead of .xor
    bool of_wgmma;                  // a part of wgmma
    const struct matrix_map *map[MATRIX_OPERANDS];
    uint32_t slot[MATRIX_OPERANDS][MATRIX_REGS];
};

// A is stored with k / 2 columns, and `metadata` says which columns of the full A those are. Of each four
// columns, two are stored, and two bits of metadata each give their numbers; of each two columns of tf32, one
// is stored, and half of the first two bits gives its number. Four bits of metadata cover four columns, or
// two of tf32.
struct matrix_sparse {
    struct matrix_product product;    // with the map of the full A
    const struct matrix_map *stored;  // the map of the stored A, for its slots
    uint32_t metadata;                // slot
    uint8_t selector;                 // which lanes hold the metadata
};
enum matrix_rounding { MATRIX_RN, MATRIX_RZ, MATRIX_RM, MATRIX_RP };

// A matrix in memory. The instruction that follows the executed one carries the address of its first element.
struct matrix_tile {
    const struct matrix_map *map;
    uint32_t slot[MATRIX_REGS];
    uint32_t stride;  // slot: elements from row to row, or from column to column; 0: contiguous
    uint8_t type;     // enum ptx_type
};

exec_fn mma_run;         // ptr: matrix_product
exec_fn mma_sparse_run;  // ptr: matrix_sparse

// ptr: matrix_tile; the address is in i + 1
exec_fn matrix_load, matrix_store;

// The memory of such a matrix, for one lane: `lines` lines of `bytes` bytes, `stride` apart.
struct matrix_lines {
    uint64_t start, stride;
    uint32_t lines, bytes;
};
struct matrix_lines matrix_lines(const struct exec_warp *w, const struct exec_insn *i, unsigned lane);

// d, b, c, e: slots of the matrices; flags: MATRIX_TRANSPOSE, and the count in the low bits; the addresses
// are in i + 1
exec_fn matrix_ldmatrix, matrix_stmatrix;
exec_fn matrix_movmatrix;  // d, a
enum { MATRIX_COUNT = 7, MATRIX_TRANSPOSE = 8 };

// Returns true if all live lanes have arrived at i. Otherwise returns false; execute *next instead.
bool matrix_converge(struct exec_warp *w, const struct exec_insn *i, const struct exec_insn **next);

// matrix_gather* read elements, one per word, from registers; matrix_scatter* write them to the registers of
// active lanes.
void matrix_gather32(const struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                     uint32_t *out);
void matrix_scatter32(struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                      const uint32_t *from);
void matrix_gather64(const struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                     uint64_t *out);
void matrix_scatter64(struct exec_warp *w, const struct matrix_map *map, const uint32_t *slot,
                      const uint64_t *from);

// --- decoding (decode_matrix.c) ----------------------------------------------------------------------------

struct decode;
struct matrix_shape decode_shape(struct decode *d);  // the shape that the statement spells
// Returns the map of a kind, one per program. Rejects the statement if there is no such matrix.
const struct matrix_map *decode_matrix_map(struct decode *d, const struct matrix_kind *k);

#endif
