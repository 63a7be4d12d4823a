// SPDX-License-Identifier: MIT
// Rewrites PTX: parses it, runs the requested passes, prints it.
//
//   struct pass_request request = {.passes = "count", .arch = 90};
//   struct pass_result *r;
//   if (!pass_rewrite("kernel.ptx", text, &request, sink, &r))
//       ... cuModuleLoadData(r->text.ptr); then for each of r->symbols cuModuleGetGlobal ...
//   pass_result_free(r);
//
// What the host must know of a rewritten module is plain data, and can be stored as text beside compiled
// code: pass_describe writes it, pass_description reads it.
#ifndef MOAT_PASS_PASS_H
#define MOAT_PASS_PASS_H

#include "base/out.h"
#include "flow/flow.h"
#include "ptx/edit.h"
#include "ptx/ptx.h"

// Facts that hold for a module before any pass, and until a pass breaks them.
enum pass_fact {
    PASS_ANY = 0,     // as a requirement: nothing in particular
    PASS_PARAMS = 1,  // kernels and functions have the parameters that their callers expect
    PASS_INSNS = 2,   // each of the program's instructions is there once, in order, under its guard
    PASS_BLOCKS = 4,  // control flow between them is unchanged
    PASS_ALL_FACTS = 7,
};

// Why a function was left as it was.
enum pass_why {
    PASS_REWRITTEN,
    PASS_LAUNCHES,  // it launches kernels itself; the host could not prepare those launches
    PASS_UNWANTED,  // a kernel that the request does not want
    PASS_UNCOPIED,  // pass_check cannot copy it: it has a variable of its own, or unknown statements
    PASS_CROWDED,   // its products of wgmma leave no registers for checks
    PASS_WHY_COUNT,
};
extern const char *const pass_why_names[PASS_WHY_COUNT];

struct pass_func {
    struct str name;
    bool is_entry;
    uint8_t why;       // enum pass_why
    bool approximate;  // counts can be too low: a function it calls may end the thread
    uint32_t unsized;  // accesses of unknown width: they are counted, their bytes are not
};

// A variable that a pass added and that the host must read or set.
struct pass_symbol {
    const char *pass;  // its name in passes.def
    struct str name;
    uint64_t bytes;
};

struct pass_check;  // pass_check.h

// Functions that rewritten code calls, as a text of their own: compiled once, with few registers, instead of
// once into each kernel, which then needs its own registers and theirs.
struct pass_apart {
    const char *text;  // without a header
    unsigned registers;
};

struct pass_result {
    struct arena arena;
    struct str text;     // the module, followed by a NUL; empty in the result of pass_description
    bool lowered;        // its .target was changed
    unsigned registers;  // most registers that the compiler may use; 0: no limit. Not in a description
    const struct pass_apart *apart;  // what the text must be linked with; NULL: nothing. Not in a description
    uint32_t nfuncs, nsymbols;
    struct pass_func *funcs;  // those with a body, in the module's order
    struct pass_symbol *symbols;
    struct pass_check *check;  // of the pass `check`; NULL if it did not run
    struct out out;            // holds the text
};

struct pass_request {
    const char *passes;  // comma-separated names; passes run in the order of passes.def
    unsigned arch;       // of the GPU, 90 for sm_90: edit_target changes the .target to it; 0: no change
    bool verify;         // run the verifier before, between and after the passes
    bool linked;         // the caller links the text with that of `apart`
    bool (*wants)(struct str name);  // whether to rewrite the kernel of that name; NULL: all
    const char *judge;  // for tests: PTX in place of the text that defines KCHECK_ACCESS and KCHECK_VARIABLE
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

bool pass_known(const char *passes);  // whether each name of the list is in passes.def

// Writes the passes with their versions and sums, for the key of a cache: "count.1,kheap.1:SUM". Requires a
// known list. The key is truncated to fit the buffer.
void pass_key(const char *passes, char *key, size_t size);

// Rewrites a module. Returns 0, or a negative code: the program should then get its module unchanged.
//   -ENOENT   there is no such pass
//   -EINVAL   the text is no PTX, or, with verify, it is wrong before or after a pass: reported
//   -ENOTSUP  PTX of a kind that passes do not take, such as 32-bit addresses: reported
//   -EEXIST   it has names of ours: it was rewritten before
//   -ENOMEM
// name and text need not outlive the call.
int pass_rewrite(const char *name, struct str text, const struct pass_request *request,
                 struct diag_sink *sink, struct pass_result **out);
// Changes nothing of a module but its .target, for that GPU. Returns what pass_rewrite does.
int pass_retarget(const char *name, struct str text, unsigned arch, struct diag_sink *sink,
                  struct pass_result **out);
void pass_result_free(struct pass_result *r);

// Returns the first variable that the pass of that name added, NULL if it added none.
const struct pass_symbol *pass_symbol_of(const struct pass_result *r, const char *pass);

void pass_describe(const struct pass_result *r, struct out *to);
int pass_description(struct str text, struct pass_result **out);  // 0, -EINVAL or -ENOMEM: *out is NULL

// --- for the passes' own files -----------------------------------------------------------------------------

struct pass_context {
    struct ptx_module *m;
    struct edit *edit;
    struct diag_sink *sink;
    struct pass_result *result;
    struct ptx_func **funcs;         // by index of result->funcs
    const char *pass;                // name of the running pass
    bool (*wants)(struct str name);  // of the request
    const char *judge;               // of the request
    bool linked;                     // of the request
    struct flow *flows;              // see pass_flow
    uint32_t *flow_edits;            // each func's nedits when its analyses were made
};

// Returns whether a function of the device's runtime launches kernels.
bool pass_is_launch(struct str name);

// Returns the analyses of a function, by its index: flow_cfg(pass_flow(c, i), &cfg). They are computed once
// and shared by all passes, until one breaks PASS_INSNS or PASS_BLOCKS, or edits the function. A pass that
// requests them while it edits the function gets results for the statements before the edit; when the edit
// ends, they are invalid.
struct flow *pass_flow(struct pass_context *c, uint32_t func);
// Drops all analyses if one of those facts is PASS_INSNS or PASS_BLOCKS, which they depend on.
void pass_break(struct pass_context *c, unsigned facts);

// Raises the PTX version to this one at least, which does not change the module's meaning.
void pass_raise_to(struct ptx_module *m, uint32_t major, uint32_t minor);
// Raises it to what inserted code is written in, and stores the architecture of the target. Returns -ENOTSUP,
// and reports why, if that is older than sm_70: there, lanes of a warp wait for one another, and a newer
// target would change what the module means.
int pass_raise_version(struct pass_context *c, unsigned *arch);

// Runs a pass. Returns 0 or a negative code; an error of the edit takes precedence.
typedef int pass_fn(struct pass_context *c);
// Adds a symbol to the result; the name is copied. Returns 0 or -ENOMEM.
int pass_add_symbol(struct pass_context *c, struct str name, uint64_t bytes);

#define PASS(name, ...) pass_fn pass_##name;
#include "pass/passes.def"

#endif
