// SPDX-License-Identifier: MIT
// Affine forms for proof_eval: c + sum of coefficient * symbol, in mathematical integers.
//
// A symbol is an integer that is the same wherever it occurs in one thread at one time: a thread index, a
// loop counter, a quotient, something that was loaded. It lies in [lo, hi]; a `soft` end is that of a type
// and true, but useless as a bound of memory. A fact is a form that is not negative while control is in
// certain blocks.
//
// All memory is in the struct affine_state that proof_eval lays out; what does not fit sets `full`, and the
// evaluation gives no bound at all. No operation here rounds or wraps: one that would overflow returns
// false.
#ifndef MOAT_FLOW_AFFINE_H
#define MOAT_FLOW_AFFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/proof.h"

__extension__ typedef __int128 affine_wide;

enum { AFFINE_MOST_TERMS = 12 };
// NO_HI, with SOFT_HI: `hi` says nothing, the symbol may be larger.
enum { AFFINE_SOFT_LO = 1, AFFINE_SOFT_HI = 2, AFFINE_NO_HI = 4 };
// Root of a form: 0 none, else its number + 1; AFFINE_WEAK: it may be a number.
enum { AFFINE_WEAK = 0x8000, AFFINE_MIXED = 0x7FFF };

struct affine_term {
    int64_t coef;  // not 0
    uint32_t sym, zero;
};

struct affine {
    int64_t c;
    uint32_t first;  // terms[first .. first + n), by symbol
    uint16_t n;
    uint16_t root;
};

enum affine_sym_kind {
    AFFINE_PLAIN,
    AFFINE_FLOOR,
    AFFINE_TRUNC,
    AFFINE_SIGNED,
    AFFINE_UNSIGNED,
    AFFINE_MULTIPLE,
};

struct affine_sym {
    int64_t lo, hi;
    uint8_t kind, soft, reason;
    bool thread;     // a thread or block index: each combination occurs in some thread
    uint32_t block;  // where it becomes defined
    uint32_t facts;  // first of the facts that hold wherever it is defined; PROOF_NONE if none
    // FLOOR, TRUNC: of / by; SIGNED, UNSIGNED: the value of its low `by` bits; MULTIPLE: a multiple of `of`,
    // whose `power` is `by`
    struct affine of;
    int64_t by;
    int64_t power;  // a power of 2: each value is 0, or a power of 2 up to this one; 0 if that is not known
    // The address of a variable in the memory of some block of the cluster: its root, + 1; else 0.
    uint16_t mapped;
    bool generic;   // of `mapped`
    bool is_least;  // it is the smaller one of two forms, whose symbols exist in its block
    struct affine one, other;
    int64_t least, most;  // of affine_point.c, if `turn` is the state's
    uint32_t turn;
};

struct affine_fact {
    struct affine form;  // >= 0
    uint32_t next;
    bool follows;  // from others of its list and the ranges of symbols
};

struct affine_block {
    uint32_t up, depth;  // nearest dominator among live blocks, PROOF_NONE for the entry
    uint32_t facts;      // hold in it, and in the blocks below it
    bool live;
    // Conditions that a thread must meet to come here: 0 none, AFFINE_ONE_GUARD one, which is the only fact
    // of this block or of `guard`, AFFINE_MORE_GUARDS others.
    uint8_t guards;
    uint32_t guard;
};
enum { AFFINE_NO_GUARD, AFFINE_ONE_GUARD, AFFINE_MORE_GUARDS };

// Where a form is to be bounded: in a block, under further facts.
struct affine_place {
    uint32_t block, facts;
};

struct affine_range {
    affine_wide lo, hi;
    uint8_t soft;    // ends that rest on a soft end of a symbol
    uint8_t reason;  // of such a symbol
    bool facts;      // facts made it smaller
};

// A range that was found for a form without its constant, at the end of a block with these facts.
enum { AFFINE_KNOWN = 8, AFFINE_KNOWN_TERMS = 4 };
struct affine_known {
    struct affine_range range;
    uint32_t block, facts;
    uint32_t n;  // 0: none
    struct affine_term terms[AFFINE_KNOWN_TERMS];
};

struct affine_state {
    struct affine_term *terms;
    struct affine_sym *syms;
    struct affine_fact *facts;
    struct affine_block *blocks;
    uint32_t nterms, most_terms, nsyms, most_syms, nfacts, most_facts;
    struct affine_known known[AFFINE_KNOWN];
    uint32_t turn;          // counts the searches for a point
    uint32_t budget;        // combinations of facts that may still be tried
    uint32_t ties;          // how many quotients of such forms are being made
    uint32_t cases;         // how many symbols that are one of two forms are being replaced
    uint32_t cases_budget;  // the budget for that: it must not take what other bounds need
    bool full;
};

static inline struct affine affine_const(int64_t c)
{
    return (struct affine){.c = c};
}

static inline bool affine_is_const(struct affine f)
{
    return !f.n;
}

bool affine_same(const struct affine_state *s, struct affine a, struct affine b);  // roots aside

// *out = ca * a + cb * b, without a root. Returns false on overflow or too many terms.
bool affine_sum(struct affine_state *s, int64_t ca, struct affine a, int64_t cb, struct affine b,
                struct affine *out);
// *out = f * by + plus
bool affine_scale(struct affine_state *s, struct affine f, int64_t by, int64_t plus, struct affine *out);

// Makes a symbol and returns its form. If there is no room, sets full and returns 0.
struct affine affine_new(struct affine_state *s, struct affine_sym sym);
// Returns the symbol of that kind, `of` and `by` if there is one, else PROOF_NONE.
uint32_t affine_find(const struct affine_state *s, uint8_t kind, struct affine of, int64_t by);
struct affine affine_of_sym(struct affine_state *s, uint32_t sym);

// Finds a symbol of f that is the smaller one of two forms, and replaces it by each of them: f is one of the
// results, the smaller one if the symbol's coefficient, *coef, is positive. Returns false if there is none,
// or on overflow.
bool affine_cases(struct affine_state *s, struct affine f, int64_t *coef, struct affine *one,
                  struct affine *other);
// Returns the `power` of the values of f; 0 if they have none.
int64_t affine_power(const struct affine_state *s, struct affine f);

enum { AFFINE_MOST_CASES = 2 };  // symbols of a form that are replaced one after the other

uint64_t affine_gcd(uint64_t a, uint64_t b);
// Returns the greatest common divisor of n and all coefficients of f.
uint64_t affine_content(const struct affine_state *s, struct affine f, uint64_t n);

// Puts a fact in front of a list. A fact that finds no room is left out.
void affine_fact(struct affine_state *s, struct affine form, uint32_t *list);

// Returns the deepest block in which a symbol of f becomes defined; the entry, 0, if f is constant.
uint32_t affine_block(const struct affine_state *s, struct affine f);
// Returns whether block a is b or dominates it.
bool affine_above(const struct affine_state *s, uint32_t a, uint32_t b);
uint32_t affine_common(const struct affine_state *s, uint32_t a, uint32_t b);

// Returns whether values of the symbols inside their ranges are known for which the sum of the terms is `at`
// and all facts hold.
bool affine_attains(struct affine_state *s, const struct affine_term *terms, uint32_t n, affine_wide at,
                    const uint32_t *facts, uint32_t nfacts);

// Bounds f from the ranges of its symbols alone, and by facts too. The result is true whenever control is
// at the place.
struct affine_range affine_box(const struct affine_state *s, struct affine f);
struct affine_range affine_bound(struct affine_state *s, struct affine f, struct affine_place at);

#endif
