// SPDX-License-Identifier: MIT
// What the files of closed_build share: the state of one construction.
//
//   closed.c        lays out memory, builds a form with more and more numbers fixed, compares, writes it
//   closed_eval.c   runs a closed form
//   closed_num.c    polynomials, conditions, instructions of the closed form
//   closed_bound.c  bounds of polynomials with symbols
//   closed_value.c  what instructions do
//   closed_flow.c   predicates, facts, joins, loops
//   closed_walk.c   blocks and accesses
//
// Every rule is the one of proof_*.c of the same name, or a part of it; those files say why it holds.
#ifndef MOAT_FLOW_CLOSED_STATE_H
#define MOAT_FLOW_CLOSED_STATE_H

#include "flow/closed.h"
#include "flow/proof_state.h"

enum closed_op {
    CLOSED_CONST,   // imm
    CLOSED_PARAM,   // `bits` bits at byte imm, with `sign`
    CLOSED_LAUNCH,  // imm: enum proof_launch_value
    CLOSED_MUL,     // a * b
    CLOSED_MULI,    // a * imm
    CLOSED_MADI,    // a + b * imm
    CLOSED_ADDI,    // a + imm
    CLOSED_QUOT,    // floor(a / b); b < 1 ends the evaluation
    CLOSED_QUOTI,   // floor(a / imm), imm > 0
    CLOSED_MIN,
    CLOSED_MAX,
    CLOSED_AND,
    CLOSED_OR,
    CLOSED_XOR,
    CLOSED_GE,  // a >= imm is required
    CLOSED_LE,  // a <= imm is required
};

enum { CLOSED_MOST_OPS = 4096, CLOSED_NO_REG = 0xFFFF };

struct closed_insn {
    uint8_t op, bits, sign, zero;
    uint16_t a, b;
    int64_t imm;
};

// The answer for an access: the ends are reg + add, or add.
struct closed_out {
    uint8_t verdict, reason, exact, guarded;
    uint16_t lo, hi;
    uint16_t coefs, c;  // with the bits of all coefficients and the constant; NO_REG: these are numbers
    uint32_t root;
    int64_t lo_add, hi_add, coefs_add, c_add;
};

struct closed {
    uint32_t nops;
    uint32_t nshape;           // the first ones, which depend on grid, block and dynamic shared memory alone
    struct closed_insn ops[];  // behind them the outs
};

bool closed_reads_b(uint8_t op);  // whether b is a register

// --- polynomials -------------------------------------------------------------------------------------------

// A number of the launch, or one that is computed from such numbers: op of (a, b), or imm.
struct closed_atom {
    struct closed_insn insn;
    int64_t value;        // at the launch that the form is made from
    int64_t least, most;  // whatever the launch
};

enum { CLOSED_FACTORS = 4, CLOSED_MOST_TERMS = 24 };

// A product of atoms; number 0 is that of none.
struct closed_mono {
    uint16_t atom[CLOSED_FACTORS];
    uint16_t n, reg;
    int64_t value;
    int64_t least, most;  // whatever the launch; INT64_MIN, INT64_MAX: not known
};

struct closed_term {
    int64_t coef;  // not 0
    uint32_t sym;  // number of a symbol + 1, or 0
    uint32_t mono;
};

// terms[first .. first + n), by symbol and product. It is uniform if it has no symbols.
struct poly {
    uint32_t first;
    uint16_t n;
    uint16_t root;
};

enum closed_kind { CLOSED_NONE, CLOSED_SOFT, CLOSED_HARD };

struct closed_sym {
    struct poly lo, hi;        // uniform
    uint8_t lo_kind, hi_kind;  // enum closed_kind
    uint8_t kind;              // enum affine_sym_kind
    bool thread;
    uint32_t block, facts;
    struct poly of, by;  // as in struct affine_sym
    uint16_t mapped;     // as in struct affine_sym
    bool generic;
    bool halved;        // each value is `first` divided by powers of 2, rounded down
    struct poly first;  // uniform
};

struct closed_fact {
    struct poly form;  // >= 0
    uint32_t next;
};

struct closed_block {
    uint32_t up, depth, facts;
    bool live;
    uint8_t guards;
    uint32_t guard;
};

struct closed_pin {
    uint8_t op, bits, sign;
    int64_t imm;
};

enum { CLOSED_MOST_PINS = 24 };

struct closed_build {
    const struct proof *p;
    const struct proof_launch *l;
    struct closed_term *terms;
    struct closed_mono *monos;
    struct closed_atom *atoms;
    struct closed_sym *syms;
    struct closed_fact *facts;
    struct closed_block *blocks;
    struct proof_edge_state *edges;
    struct poly *forms;  // by instruction; of a COMPARE: left side minus right side
    uint8_t *truth;      // by instruction
    uint32_t *counters;  // by instruction
    uint32_t *bases;     // by root and space
    struct closed_insn *ops;
    struct closed_out *outs;
    uint32_t nterms, most_terms, nmonos, most_monos, natoms, most_atoms, nsyms, most_syms, nfacts, most_facts;
    uint32_t nops, most_ops;
    uint16_t known[1 << 10];  // instructions by hash
    uint32_t searches;        // combinations of facts that may still be tried
    uint32_t indices[6];
    uint32_t block;
    uint32_t npins;
    struct closed_pin pins[CLOSED_MOST_PINS];
    bool split;     // numbers that are factors of what is divided are fixed
    bool strict;    // comparisons that differ between threads are decided if they can be
    bool doubtful;  // the launch's numbers kept a rule from being used: at other launches it may be
    bool failed;    // there is no closed form
    bool pinned;    // another number has to be fixed: start again
};

struct poly closed_const(struct closed_build *b, int64_t c);
bool closed_is_const(const struct closed_build *b, struct poly f, int64_t *c);
bool closed_uniform(const struct closed_build *b, struct poly f);
struct poly closed_of_sym(struct closed_build *b, uint32_t sym);
struct poly closed_atom(struct closed_build *b, struct closed_insn insn, int64_t value, int64_t least,
                        int64_t most);
// ca * f + cg * g, without a root
struct poly closed_sum(struct closed_build *b, int64_t ca, struct poly f, int64_t cg, struct poly g);
struct poly closed_plus(struct closed_build *b, struct poly f, int64_t c);
struct poly closed_times(struct closed_build *b, struct poly f, struct poly g);
bool closed_same(const struct closed_build *b, struct poly f, struct poly g);
// The coefficient of a symbol, and the part of f without symbols.
struct poly closed_coef(struct closed_build *b, struct poly f, uint32_t sym);
struct poly closed_rest(struct closed_build *b, struct poly f);
// Finds m with f == m * g, for uniform f and g. Returns false if there is none of a simple kind.
bool closed_ratio(struct closed_build *b, struct poly f, struct poly g, struct poly *m);
// The greatest common divisor of g and all coefficients of f.
int64_t closed_factor(const struct closed_build *b, struct poly f, int64_t g);
bool closed_divides(const struct closed_build *b, int64_t d, struct poly f);
struct poly closed_over(struct closed_build *b, struct poly f, int64_t d);  // f / d, which d divides

// The value of a uniform polynomial at the launch.
int64_t closed_value(struct closed_build *b, struct poly f);
// Requires f >= 0 of all launches; it must be so at this one.
void closed_require(struct closed_build *b, struct poly f);
// Returns whether f >= 0 at this launch, and requires the same of all.
bool closed_decide(struct closed_build *b, struct poly f);
// Returns whether f is not negative at this launch; if it is, no launch may have it positive. Both allow 0.
bool closed_sign(struct closed_build *b, struct poly f);
// Fixes all numbers of the launch that f depends on. Returns true if there was none left.
bool closed_fix(struct closed_build *b, struct poly f);
uint16_t closed_reg(struct closed_build *b, struct poly f, int64_t *add);
uint16_t closed_whole(struct closed_build *b, struct poly f);  // with its constant
uint16_t closed_emit(struct closed_build *b, struct closed_insn i);

struct poly closed_pair(struct closed_build *b, uint8_t op, struct poly f, struct poly g);  // MIN to XOR
struct poly closed_floor(struct closed_build *b, struct poly f, struct poly d);             // uniform, d > 0

// --- bounds ------------------------------------------------------------------------------------------------

struct closed_end {
    uint8_t kind;  // NONE: there is no such end
    struct poly at;
};

// The greatest or least value of f at a place; of the ranges of the symbols alone if `box`.
struct closed_end closed_bound(struct closed_build *b, struct poly f, bool up, struct affine_place at,
                               uint8_t kind);
struct closed_end closed_box(struct closed_build *b, struct poly f, bool up, uint8_t kind);
// Returns whether f lies in a range at this launch, as far as its bounds say; then all launches must have it
// there.
bool closed_inside(struct closed_build *b, struct poly f, affine_wide lo, affine_wide hi);
bool closed_at_least(struct closed_build *b, struct poly f, int64_t least);  // the same for one end

void closed_refuse(struct closed_build *b, struct poly f, affine_wide lo, affine_wide hi);

// What was computed since the mark, and its conditions, are not needed: no symbol or fact may refer to it.
struct closed_mark {
    uint32_t nterms, nmonos, natoms, nops;
};
struct closed_mark closed_mark(const struct closed_build *b);
void closed_undo(struct closed_build *b, struct closed_mark m);

static inline struct affine_place closed_here(const struct closed_build *b)
{
    return (struct affine_place){b->block, PROOF_NONE};
}

void closed_fact(struct closed_build *b, struct poly f, uint32_t *list);
uint32_t closed_sym(struct closed_build *b, struct closed_sym s);
uint32_t closed_block_of(const struct closed_build *b, struct poly f);
bool closed_above(const struct closed_build *b, uint32_t a, uint32_t c);
uint32_t closed_common(const struct closed_build *b, uint32_t a, uint32_t c);

// --- rules -------------------------------------------------------------------------------------------------

struct poly closed_opaque(struct closed_build *b, unsigned bits, bool sign);
struct poly closed_within(struct closed_build *b, struct closed_end lo, struct closed_end hi);
struct poly closed_extend(struct closed_build *b, struct poly f, unsigned bits, bool sign);
struct poly closed_apply(struct closed_build *b, const struct proof_insn *i);
struct poly closed_select(struct closed_build *b, const struct proof_insn *i);
struct poly closed_merge(struct closed_build *b, const struct proof_insn *i, const struct proof_insn *block);
struct poly closed_shrinks(struct closed_build *b, const struct proof_insn *i);
struct poly closed_stays(struct closed_build *b, const struct proof_insn *i);
struct poly closed_turns(struct closed_build *b, const struct proof_insn *i);
struct poly closed_grows(struct closed_build *b, const struct proof_insn *i);
struct poly closed_steps(struct closed_build *b, const struct proof_insn *i);
void closed_loop(struct closed_build *b, uint32_t at);
void closed_predicate(struct closed_build *b, uint32_t at, const struct proof_insn *block);
void closed_facts(struct closed_build *b, uint32_t predicate, bool holds, uint32_t *list);
void closed_walk(struct closed_build *b);

#endif
