// SPDX-License-Identifier: MIT
// What the files of proof_eval share: the state of one evaluation.
//
//   proof_eval.c   lays out memory, walks the instructions, answers for accesses
//   proof_value.c  what instructions do to forms
//   proof_bits.c   which bits of a value may be set
//   proof_fact.c   predicates, and the facts that follow from them
//   proof_join.c   values where blocks meet; counters of loops
#ifndef MOAT_FLOW_PROOF_STATE_H
#define MOAT_FLOW_PROOF_STATE_H

#include "flow/affine.h"

enum proof_truth { PROOF_MAYBE, PROOF_TRUE, PROOF_FALSE, PROOF_DEAD = 4 };

struct proof_edge_state {
    uint32_t facts;
    bool live;
};

struct proof_state {
    struct affine_state s;
    const struct proof *p;
    const struct proof_launch *l;
    struct affine *forms;  // by instruction; of a COMPARE: left side minus right side
    uint64_t *bits;        // by instruction: those that its form may have, see proof_bits
    uint8_t *truth;        // by instruction: enum proof_truth; PROOF_DEAD if it was not executed
    struct proof_edge_state *edges;
    uint32_t *counters;   // by instruction: symbol of a LOOP, PROOF_NONE if it never comes to a second round
    uint32_t indices[6];  // symbols of thread and block indices, PROOF_NONE until used
    uint32_t *bases;      // by root and space: symbols
    uint32_t block;       // the current one
    bool *vague;          // by access, see proof_eval_vague; NULL: not wanted
};

// Whether a launch is one that can be: see proof_eval.
bool proof_launch_valid(const struct proof *p, const struct proof_launch *l);

static inline struct affine_place proof_here(const struct proof_state *e)
{
    return (struct affine_place){e->block, PROOF_NONE};
}

// A value of which nothing is known but its type. bits: 0 if not even that.
struct affine proof_opaque(struct proof_state *e, unsigned bits, bool sign, uint8_t reason);
// A value in a range, which may be soft.
struct affine proof_within(struct proof_state *e, struct affine_range r);
bool proof_fits(affine_wide v);  // in 64 bits

struct affine proof_value(struct proof_state *e, const struct proof_insn *i);
// Returns the bits that the form of an instruction may have, which is then not negative and below 2^62; or
// PROOF_ANY_BITS.
#define PROOF_ANY_BITS UINT64_MAX
// Returns whether a form with these bits is a number below 2^width.
static inline bool proof_bits_below(uint64_t bits, unsigned width)
{
    return bits >> 62 == 0 && (width >= 62 || bits >> width == 0);
}
uint64_t proof_bits(const struct proof_state *e, uint32_t at, const struct proof_insn *block);
struct affine proof_extend(struct proof_state *e, struct affine f, unsigned bits, bool sign);
uint16_t proof_add_roots(uint16_t a, uint16_t b);

struct affine proof_select(struct proof_state *e, const struct proof_insn *i);
struct affine proof_merge(struct proof_state *e, const struct proof_insn *i, const struct proof_insn *block);
void proof_loop(struct proof_state *e, uint32_t at);
struct affine proof_shrinks(struct proof_state *e, const struct proof_insn *i);
struct affine proof_stays(struct proof_state *e, const struct proof_insn *i);
struct affine proof_turns(struct proof_state *e, const struct proof_insn *i);
struct affine proof_grows(struct proof_state *e, const struct proof_insn *i);
struct affine proof_steps(struct proof_state *e, const struct proof_insn *i);

void proof_predicate(struct proof_state *e, uint32_t at, const struct proof_insn *block);
// Puts what follows from a predicate, or from its opposite, in front of a list of facts.
void proof_facts(struct proof_state *e, uint32_t predicate, bool holds, uint32_t *list);

#endif
