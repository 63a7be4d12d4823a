// SPDX-License-Identifier: MIT
// Ranges: what the accesses of a function touch, as closed forms over the values of a launch.
//
// ranges_build translates the part of a function that its addresses depend on, and the branches around
// them, into a proof program (proof.h). Every access that ptx_stmt_mem lists with a read or a write to
// global, shared, local, constant or generic memory has a row; parameters, textures and the like have none.
//
//   struct flow w = {.m = m, .f = f};
//   struct ranges *r;
//   if (!ranges_build(&w, &r)) {
//       proof_eval(&r->proof, &launch, work, bounds, NULL);
//   }
//   ranges_free(r);
//
// Requires a function with a body. Of functions that are not kernels the arguments are not known: only what
// they do with variables and with values of the launch is bounded, and proof_eval answers for one call.
#ifndef MOAT_FLOW_RANGES_H
#define MOAT_FLOW_RANGES_H

#include "flow/flow.h"
#include "flow/proof.h"

// How far an address is understood without a launch; the letters are those of doc/proofs.md.
enum ranges_form {
    RANGES_AFFINE,   // A: affine in thread and block indices
    RANGES_LOOP,     // B: also in loop counters
    RANGES_MIXED,    // C: also quotients, masks, minima, selections, merges
    RANGES_INDEX,    // D: the root is known, the index is not
    RANGES_BASE,     // E: the root is loaded from memory or returned
    RANGES_UNKNOWN,  // F
    RANGES_FORMS,
};

// What is known of an access without a launch.
struct ranges_access {
    uint8_t form;               // enum ranges_form
    uint8_t reason;             // INDEX and above: enum proof_reason
    uint32_t root;              // of proof.roots; PROOF_NONE if not known
    uint32_t insn;              // its ACCESS in the program
    const struct ptx_form *op;  // reason OPERATOR: an instruction that is not understood; else NULL
};

struct ranges {
    struct arena arena;
    const struct ptx_module *m;
    const struct ptx_func *f;
    struct proof proof;                    // proof.head->size bytes from proof.head on: store these
    const struct ranges_access *accesses;  // proof.head->naccesses of them
    uint32_t form_count[RANGES_FORMS];
    // Instructions that are not understood and that an address or a branch depends on, each once, with the
    // number of accesses that depend on it.
    uint32_t nunknown;
    const struct ptx_form **unknown;
    const uint32_t *unknown_uses;
};

// Builds the program of a function. Kernels that are too large get a program in which every access is
// unknown. Returns 0, -ENOMEM, -E2BIG, or -EBADMSG if an instruction lacks operands. The result keeps
// pointers to the module, none to the flow.
int ranges_build(struct flow *w, struct ranges **out);
void ranges_free(struct ranges *r);

const char *ranges_form_text(enum ranges_form form);  // "affine", "affine with loops", ...

// Finds the source line of a statement; returns false if there is none.
bool ranges_source(const struct ptx_module *m, const struct ptx_func *f, uint32_t stmt,
                   struct ptx_source *out);

#endif
