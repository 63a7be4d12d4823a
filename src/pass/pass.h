// SPDX-License-Identifier: MIT
// From PTX to PTX that does more: parse, the passes asked for, print.
//
//   struct pass_request request = {.passes = "count", .arch = 90};
//   struct pass_result *r;
//   if (!pass_rewrite("kernel.ptx", text, &request, sink, &r))
//       ... cuModuleLoadData(r->text.ptr); then for each of r->symbols cuModuleGetGlobal ...
//   pass_result_free(r);
//
// What the host must know of a rewritten module is plain data, and can be kept beside compiled code as text:
// pass_describe writes it, pass_description reads it.
#ifndef MOAT_PASS_PASS_H
#define MOAT_PASS_PASS_H

#include "base/out.h"
#include "flow/flow.h"
#include "ptx/edit.h"
#include "ptx/ptx.h"

// What holds of a module before any pass, and until one breaks it.
enum pass_fact {
    PASS_ANY = 0,     // as a requirement: nothing in particular
    PASS_PARAMS = 1,  // kernels and functions have the parameters that their callers know
    PASS_INSNS = 2,   // each of the program's instructions stands, once, in its order and under its guard
    PASS_BLOCKS = 4,  // control goes where it went
    PASS_ALL_FACTS = 7,
};

// Why a function is as it was.
enum pass_why {
    PASS_REWRITTEN,
    PASS_LAUNCHES,  // it launches kernels itself: what a pass wants of a launch, the host could not give
    PASS_WHY_COUNT,
};
extern const char *const pass_why_names[PASS_WHY_COUNT];

struct pass_func {
    struct str name;
    bool is_entry;
    uint8_t why;       // enum pass_why
    bool approximate;  // counts can come out low: something it calls may end the thread
    uint32_t unsized;  // accesses whose width is not known: their number is counted, not their bytes
};

// A variable that a pass added and the host must read or fill.
struct pass_symbol {
    const char *pass;  // its name in passes.def
    struct str name;
    uint64_t bytes;
};

struct pass_result {
    struct arena arena;
    struct str text;  // the module; a NUL stands behind it. Empty in what pass_description made
    bool lowered;     // its .target was another
    unsigned
        registers;  // the compiler may use so many at most; 0: a pass has set no limit. Not in a description
    uint32_t nfuncs, nsymbols;
    struct pass_func *funcs;  // those with a body, in the order of the module
    struct pass_symbol *symbols;
    struct out out;  // holds the text
};

struct pass_request {
    const char *passes;  // names, with commas; they run in the order of passes.def
    unsigned arch;  // of the GPU, 90 for sm_90: the .target is changed as edit_target does it; 0: it stays
    bool verify;    // run the verifier before, between and behind
};

struct pass_row {
    const char *name;
    unsigned version;
    uint64_t (*sum)(void);
    unsigned requires, keeps, breaks;  // enum pass_fact
    const char *help;
};
extern const struct pass_row pass_rows[];
extern const unsigned pass_row_count;
extern const char *const pass_names;  // all of them, for a message

bool pass_known(const char *passes);  // a list of names, each in passes.def

// Which passes in which versions, with their sums, for the key of a cache: "count.1,kheap.1:SUM". Requires a
// known list. What does not fit the buffer is cut.
void pass_key(const char *passes, char *key, size_t size);

// 0, or a negative code: the program should get its module as it is.
//   -ENOENT   there is no such pass
//   -EINVAL   the text is no PTX, or, with verify, a pass broke it: reported
//   -ENOTSUP  PTX of a kind that passes do not take: 32-bit addresses, registers outside of functions
//   -EEXIST   it has names of ours: it was rewritten before
//   -ENOMEM
// name and text must outlive the call only.
int pass_rewrite(const char *name, struct str text, const struct pass_request *request,
                 struct diag_sink *sink, struct pass_result **out);
void pass_result_free(struct pass_result *r);

// The variable that the pass of that name added; NULL: it added none.
const struct pass_symbol *pass_symbol_of(const struct pass_result *r, const char *pass);

void pass_describe(const struct pass_result *r, struct out *to);
int pass_description(struct str text, struct pass_result **out);  // 0, -EINVAL or -ENOMEM; all else NULL

// --- for the passes' own files ------------------------------------------------------------------------------

struct pass_context {
    struct ptx_module *m;
    struct edit *edit;
    struct diag_sink *sink;
    struct pass_result *result;
    struct ptx_func **funcs;  // by index of result->funcs
    const char *pass;         // the name of the one that runs
    struct flow *flows;       // see pass_flow
    uint32_t *flow_edits;     // each func's nedits when its analyses were made
};

// The analyses of a function, by its index: flow_cfg(pass_flow(c, i), &cfg). They are made once and lent to
// every pass, until one breaks PASS_INSNS or PASS_BLOCKS, or edits the function. A pass may ask while it
// edits the function, and is told of the statements as they were before; when the edit ends, what was lent is
// void.
struct flow *pass_flow(struct pass_context *c, uint32_t func);
// Ends the loan of all analyses if one of those facts is what they rest on.
void pass_break(struct pass_context *c, unsigned facts);

// 0 or a negative code; what the edit says comes on top.
typedef int pass_fn(struct pass_context *c);
// The string is copied.
int pass_add_symbol(struct pass_context *c, struct str name, uint64_t bytes);

#define PASS(name, ...) pass_fn pass_##name;
#include "pass/passes.def"

#endif
