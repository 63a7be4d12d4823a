// SPDX-License-Identifier: MIT
// What the files of ranges_build share: a program under construction.
//
//   ranges.c        marks what is needed, emits blocks, edges and accesses, puts the bytes together
//   ranges_value.c  translates instructions
//   ranges_loop.c   finds counters, their steps, and the tests that end a loop
//   ranges_carried.c  values that a loop carries on by factors
//   ranges_choice.c  values that are one of several pointers
//   ranges_form.c   classifies addresses without a launch
#ifndef MOAT_FLOW_RANGES_BUILD_H
#define MOAT_FLOW_RANGES_BUILD_H

#include "base/vec.h"
#include "flow/ranges.h"

struct ranges_build {
    const struct ptx_module *m;
    const struct ptx_func *f;
    const struct cfg *cfg;
    const struct dom *dom;
    const struct loops *loops;
    const struct reach *reach;
    const struct regs *regs;
    VEC(struct proof_insn) insns;
    VEC(struct proof_edge) edges;
    VEC(struct proof_test) tests;
    VEC(uint32_t) inputs;
    VEC(struct proof_root) roots;
    VEC(struct proof_access) accesses;
    VEC(char) names;
    VEC(uint32_t) todo;                  // values that are needed and not looked at
    VEC(const struct ptx_form *) forms;  // of each OPAQUE with the reason OPERATOR, by instruction
    uint32_t *node;                      // by value: its instruction, PROOF_NONE until emitted
    uint8_t *needed;                     // by value
    uint32_t *number;                    // by block of the cfg: its number in the program
    uint32_t *chance;                    // by block: CHANCE that stands for its choice, PROOF_NONE if none
    uint32_t *join_at, *joins;           // JOINs by block
    uint32_t *param_at;                  // by parameter: its place in the buffer
    uint32_t params;
    uint32_t block_start;  // first instruction of the current block
    uint32_t ncalls;
    bool failed;  // out of memory
};

// Adds an instruction and returns its number; an equal one of the same block serves again.
uint32_t ranges_emit(struct ranges_build *b, struct proof_insn i);
uint32_t ranges_const(struct ranges_build *b, int64_t v);
uint32_t ranges_extend(struct ranges_build *b, uint32_t a, unsigned bits, bool sign);
uint32_t ranges_opaque(struct ranges_build *b, uint32_t reg, uint8_t reason, const struct ptx_form *form);

void ranges_need(struct ranges_build *b, uint32_t value);
// Returns the value that a statement reads from a register (by number); REACH_NONE if it reads none.
uint32_t ranges_read(const struct ranges_build *b, uint32_t stmt, uint32_t reg);
uint32_t ranges_root(struct ranges_build *b, struct proof_root root, struct str name);
bool ranges_is_pred(const struct ranges_build *b, uint32_t value);

// Finds the predicate under which control goes from block u to block v. Returns false if there is none.
struct ranges_condition {
    uint32_t stmt, reg;
    bool negated;
};
bool ranges_condition(const struct ranges_build *b, uint32_t u, uint32_t v, struct ranges_condition *out);

// --- ranges_value.c ----------------------------------------------------------------------------------------

// Whether the result of a statement depends on its operands in a way that is understood.
bool ranges_understood(const struct ptx_stmt *s);
// Emits what a statement writes to a value and returns the instruction. Operands come from node().
typedef uint32_t ranges_node(struct ranges_build *b, uint32_t value, void *ctx);
uint32_t ranges_translate(struct ranges_build *b, uint32_t value, ranges_node *node, void *ctx);
// Emits an address operand, without its offset.
uint32_t ranges_address(struct ranges_build *b, uint32_t stmt, const struct ptx_operand *o, ranges_node *node,
                        void *ctx);
uint32_t ranges_node_of(struct ranges_build *b, uint32_t value, void *ctx);
// Emits a predicate operand of a statement, and returns the instruction.
uint32_t ranges_predicate(struct ranges_build *b, uint32_t stmt, const struct ptx_operand *o);
// Emits a predicate that holds wherever a value is not 0: that of the selection between 0 and another number
// that made it. Returns PROOF_NONE if it was made otherwise.
uint32_t ranges_not_zero(struct ranges_build *b, uint32_t value);
// Stores the number that operand i of a statement is. Returns false if it is none.
bool ranges_constant(const struct ptx_stmt *s, unsigned i, int64_t *v);

// --- ranges_loop.c -----------------------------------------------------------------------------------------

// Marks what the counters of all loops need.
void ranges_need_loops(struct ranges_build *b);
// Marks what a JOIN in the header of a loop needs.
void ranges_need_counter(struct ranges_build *b, uint32_t join);
// Emits the LOOP of a header and the values that it joins.
void ranges_loop(struct ranges_build *b, uint32_t block);
// Emits the merge of a join's inputs on the ways into its block that are no way around a loop.
uint32_t ranges_merge(struct ranges_build *b, uint32_t join);
// Returns whether a way from block u to block v goes around no loop.
bool ranges_forward(const struct ranges_build *b, uint32_t u, uint32_t v);

// Returns whether a value is the same in all rounds of a loop.
bool ranges_fixed(const struct ranges_build *b, uint32_t loop, uint32_t value);
// Returns the value of an operand that changes in the loop, REACH_NONE if it does not.
uint32_t ranges_moving(const struct ranges_build *b, uint32_t loop, uint32_t stmt,
                       const struct ptx_operand *o);
bool ranges_plain_int(const struct ptx_form *f);

// Finds the next branch that every round passes and that leaves the loop on one side. *at: 0 at first. The
// loop goes on if *pred holds, or, *holds false, if it does not. Returns false if there is none.
bool ranges_exit(const struct ranges_build *b, uint32_t loop, uint32_t *at, uint32_t *pred, bool *holds);

// A comparison that lets a loop go on: of a value that changes in the loop with one that does not, which a
// round may compute anew.
struct ranges_compare {
    uint32_t stmt, left;
    const struct ptx_operand *limit;
    uint8_t relation, bits;
    bool sign;
};
// Understands the comparison that made a predicate, which lets the loop go on if it `holds`.
bool ranges_compared(struct ranges_build *b, uint32_t loop, uint32_t pred, bool holds,
                     struct ranges_compare *t);

// Emits what a comparison's limit is, and returns the instruction. Call it at the header of the loop.
uint32_t ranges_limit(struct ranges_build *b, const struct ranges_compare *t);

// --- ranges_carried.c --------------------------------------------------------------------------------------

// Marks what a JOIN in the header of a loop needs that is no counter. Returns whether it is understood: then
// the values that it joins from outside of the loop are needed too.
bool ranges_need_carried(struct ranges_build *b, uint32_t loop, uint32_t join);
// Emits the value of such a JOIN and returns the instruction; PROOF_NONE if it is not understood.
uint32_t ranges_carried(struct ranges_build *b, uint32_t loop, uint32_t join);

// --- ranges_choice.c ---------------------------------------------------------------------------------------

// Marks what a JOIN in the header of a loop needs if it is one of several pointers.
void ranges_need_choice(struct ranges_build *b, uint32_t join);
// Emits which pointers a value may be that instruction `at` gives, and returns the instruction; `at` if it is
// not known to be one of several.
uint32_t ranges_choice(struct ranges_build *b, uint32_t value, uint32_t at);

// --- ranges_form.c -----------------------------------------------------------------------------------------

void ranges_classify(const struct ranges_build *b, struct ranges *r, struct arena *keep,
                     struct arena *scratch);

#endif
