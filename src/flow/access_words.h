// SPDX-License-Identifier: MIT
// What an access touches, in CUDA's words, from its function's proof program (proof.h):
//
//   address   p0 + 4*(blockIdx.x*blockDim.x + threadIdx.x + k1*p3)
//   guards    blockIdx.x*blockDim.x + threadIdx.x < p2
//   loops     k1 = 0, 1, ... while threadIdx.x + k1*p3 < p2
//
// Parameters are p0, p1, ..., and p1.8 at byte 8 of a structure; counters of loops are k1, k2, ...; "?" is
// what is not understood, and "..." what is too long. Widths of registers are left out: the words say what is
// computed, and proof_eval whether it wraps around.
#ifndef MOAT_FLOW_ACCESS_WORDS_H
#define MOAT_FLOW_ACCESS_WORDS_H

#include "base/out.h"
#include "flow/ranges.h"

enum { ACCESS_WORDS_LOOPS = 8, ACCESS_WORDS_CONDITIONS = 9 };

// Where a parameter lies.
struct access_words_param {
    uint32_t offset, size;
};

// The counters that the words of an access name, in their order.
struct access_words {
    const struct proof *p;
    const struct ptx_func *f;  // NULL: the parameters are these
    const struct access_words_param *params;
    uint32_t nparams;
    uint32_t access;  // its ACCESS in the program
    uint32_t root;    // what its address starts from; PROOF_NONE if not known
    uint32_t steps;   // instructions looked at, which are limited
    uint32_t nloops;  // counters beyond ACCESS_WORDS_LOOPS are "k"
    uint32_t loops[ACCESS_WORDS_LOOPS];
};

// Starts the words of an access. Returns false if the program does not have it.
bool access_words_start(struct access_words *w, const struct ranges *r, uint32_t access);

// Starts the words of an access, a row of the program, without the function. root: of the program, PROOF_NONE
// if not known. Returns false if the program does not have the access.
bool access_words_open(struct access_words *w, const struct proof *p, uint32_t row, uint32_t root,
                       const struct access_words_param *params, uint32_t nparams);

// A predicate that holds, or does not, wherever the access is made.
struct access_words_condition {
    uint32_t predicate;
    bool negated;
};
// Lists the conditions, outermost first. Returns how many there are, at most ACCESS_WORDS_CONDITIONS.
unsigned access_words_conditions(const struct access_words *w, struct access_words_condition *out);
void access_words_condition(struct access_words *w, const struct access_words_condition *c, struct out *to);
// Returns the sign of a COMPARE, between blanks.
const char *access_words_relation(const struct proof_insn *compare, bool negated);

// Each appends to a text. The last two return how many they wrote; access_words_loops lists the counters that
// the words before it have named, and those that these depend on.
void access_words_address(struct access_words *w, struct out *to);
unsigned access_words_guards(struct access_words *w, struct out *to);
unsigned access_words_loops(struct access_words *w, struct out *to);

#endif
