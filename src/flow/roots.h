// SPDX-License-Identifier: MIT
// Root pointers: for each value of a register, the pointer that it was computed from, so that an access can
// be compared with the bounds of the buffer that it was meant for.
//
//   NONE      undefined on every path
//   NUMBER    no pointer, as far as is known: made by multiplication, shifts, from 32 bits, ...
//   OTHER     address of memory that is not global, and of no variable that is known
//   PARAM     the pointer at byte `id` of the kernel's parameter buffer
//   VARIABLE  the address of the variable with symbol `id` in its space: global, shared, local, constant, or
//             that of parameters; in global memory it is a generic address too
//   GENERIC   the generic address of the variable with symbol `id`, which is not in global memory
//   VALUE     the value `id` itself: a DEF that loads it or gets it from a call, an ENTRY that is an
//             argument, an address in the shared memory of another block, made by mapa
//   WEB       the value `id` itself, in which different roots meet: a JOIN, a partial DEF, a selection, or a
//             sum of two values of which either may be the pointer
//   OWN       several pointers in one sum, or nothing that is understood: there is no root
//
// A root passes through copies, cvta of global addresses, sums with a number, and merges of equal roots. In a
// sum of two values that may be pointers, the pointer is the one that is used as an address elsewhere, if the
// other is not; or the one that is not used as a factor, if the other is; else the sum is a WEB. A difference
// of two such values has no root, and neither has any sum with something that is computed from it.
//
// The root of a value is the latest execution of its DEF: what VALUE or WEB `id` held when the value was
// computed, it still holds. A JOIN keeps the root of its inputs only if the root's block strictly dominates
// its own; else the JOIN is a WEB, because an input may come from an earlier round of a loop.
//
// Registers of 32 bits have roots only if these are variables that are not in global memory, or made by
// mapa.
//
// Functions with instructions that are not known, see cfg.h on `uncertain`, have no roots: all is OWN.
#ifndef MOAT_FLOW_ROOTS_H
#define MOAT_FLOW_ROOTS_H

#include "flow/reach.h"

enum roots_kind {
    ROOTS_NONE,
    ROOTS_NUMBER,
    ROOTS_OTHER,
    ROOTS_PARAM,
    ROOTS_VARIABLE,
    ROOTS_GENERIC,
    ROOTS_VALUE,
    ROOTS_WEB,
    ROOTS_OWN,
    ROOTS_KINDS
};

struct roots_of {
    uint8_t kind;
    uint32_t id;
};

struct roots_rule;

struct roots {
    struct arena arena;
    const struct ptx_module *m;
    const struct ptx_func *f;
    const struct reach *reach;
    struct roots_of *of;             // by value
    bool *address;                   // by value: it is used as an address, perhaps after sums with numbers
    uint32_t rounds;                 // that the solution took
    struct roots_of *made;           // by partial DEF: the root of what it writes, without what it may keep
    const struct roots_rule *rules;  // by DEF; private
};

// Computes roots; all arguments must be of the function f. Returns 0, -ENOMEM or -E2BIG.
int roots_build(const struct ptx_module *m, const struct ptx_func *f, const struct reach *reach,
                const struct dom *dom, struct roots **out);
void roots_free(struct roots *r);
bool roots_valid(const struct roots *r);

// Returns the root of an address operand of a statement. A NUMBER or NONE that is used as an address has no
// root: OWN.
struct roots_of roots_address(const struct roots *r, uint32_t stmt, const struct ptx_operand *addr);

// Finds the roots that a selection chooses from: the first if the predicate is true. Returns false if the
// value is not written by a selection without a guard.
bool roots_picked(const struct roots *r, uint32_t value, struct roots_of out[2]);

// Finds the roots of both sides of a sum that is a WEB because either may be the pointer. Returns false if
// the value is not written by a sum without a guard.
bool roots_summed(const struct roots *r, uint32_t value, struct roots_of out[2]);

// Finds the offset of a byte of a kernel's parameter: the buffer is laid out as CUDA does. Returns false if
// sym is not a parameter of f.
bool roots_param_offset(const struct ptx_func *f, uint32_t sym, uint64_t *offset);

// Returns the space that the variable of a VARIABLE or GENERIC is in; PTX_SPACE_GENERIC for other roots.
enum ptx_space roots_space(const struct ptx_module *m, struct roots_of of);

extern const char *const roots_kind_names[ROOTS_KINDS];

#endif
