// SPDX-License-Identifier: MIT
// The pass that redirects malloc and free: see pass_kheap.h. For each of them a small function chooses
// between the heap and the driver.
#include "pass/pass_kheap.h"

#include <errno.h>
#include <stddef.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kheap/kheap.h"
#include "pass/pass.h"
#include "pass/regbound.h"

#define RETURN_FROM(function)                                                        \
    "{\n.param .b64 a;\n.param .b64 b;\nst.param.b64 [a], %%n;\ncall (b), " function \
    ", (a);\nld.param.b64 %%p, [b];\n}\nst.param.b64 [r], %%p;\nret;\n"

// %s: the type of the parameters as the module declares them; two declarations must have the same. %u: offset
// of a field of struct kheap.
static const char take_text[] =
    ".extern .func (.param %s r) malloc (.param %s n);\n"
    ".func (.param .b64 r) " EDIT_PREFIX "kheap_take (.param .b64 n)\n"
    "{\n"
    ".reg .b64 %%n, %%heap, %%p;\n"
    ".reg .pred %%theirs;\n"
    "ld.param.b64 %%n, [n];\n"
    "ld.global.u64 %%heap, [" KHEAP_VARIABLE "];\n"
    "setp.eq.u64 %%theirs, %%heap, 0;\n"
    "@%%theirs bra driver;\n"
    "ld.volatile.global.u64 %%p, [%%heap+%u];\n"
    "setp.ne.u64 %%theirs, %%p, 0;\n"
    "@%%theirs bra driver;\n" RETURN_FROM(KHEAP_MALLOC) "driver:\n" RETURN_FROM("malloc") "}\n";
static const char give_text[] = ".extern .func free (.param %s p);\n"
                                ".func " EDIT_PREFIX "kheap_give (.param .b64 p)\n"
                                "{\n"
                                ".reg .b64 %%p, %%heap, %%at, %%n;\n"
                                ".reg .pred %%theirs, %%ours;\n"
                                "ld.param.b64 %%p, [p];\n"
                                "setp.eq.u64 %%theirs, %%p, 0;\n"
                                "@%%theirs ret;\n"
                                "ld.global.u64 %%heap, [" KHEAP_VARIABLE "];\n"
                                "setp.eq.u64 %%theirs, %%heap, 0;\n"
                                "@%%theirs bra driver;\n"
                                "sub.u64 %%at, %%p, %%heap;\n"
                                "ld.global.u64 %%n, [%%heap+%u];\n"
                                "setp.lt.u64 %%ours, %%at, %%n;\n"
                                "@%%ours bra here;\n"
                                "ld.volatile.global.u64 %%n, [%%heap+%u];\n"
                                "setp.ne.u64 %%theirs, %%n, 0;\n"
                                "@%%theirs bra driver;\n"
                                "here:\n"
                                "{\n"
                                ".param .b64 a;\n"
                                "st.param.b64 [a], %%p;\n"
                                "call " KHEAP_FREE ", (a);\n"
                                "}\n"
                                "ret;\n"
                                "driver:\n"
                                "{\n"
                                ".param .b64 a;\n"
                                "st.param.b64 [a], %%p;\n"
                                "call free, (a);\n"
                                "}\n"
                                "ret;\n"
                                "}\n";
// The heap's malloc aligns to 16 bytes, and to more only if it has `bounds`, and not to more than
// KHEAP_ALIGN_MOST. Other alignments come from the driver, and `foreign` is set for free.
static const char aligned_text[] =
    ".extern .func (.param %s r) __cuda_syscall_aligned_malloc (.param %s n, .param %s to);\n"
    ".func (.param .b64 r) " EDIT_PREFIX "kheap_take_aligned (.param .b64 n, .param .b64 to)\n"
    "{\n"
    ".reg .b64 %%n, %%to, %%heap, %%p;\n"
    ".reg .pred %%ours, %%none;\n"
    "ld.param.b64 %%n, [n];\n"
    "ld.param.b64 %%to, [to];\n"
    "ld.global.u64 %%heap, [" KHEAP_VARIABLE "];\n"
    "setp.eq.u64 %%none, %%heap, 0;\n"
    "@%%none bra driver;\n"
    "ld.volatile.global.u64 %%p, [%%heap+%u];\n"
    "setp.ne.u64 %%none, %%p, 0;\n"
    "@%%none bra driver;\n"
    "setp.le.u64 %%ours, %%to, 16;\n"
    "@%%ours bra here;\n"
    "ld.global.u64 %%p, [%%heap+%u];\n"
    "setp.ne.u64 %%ours, %%p, 0;\n"
    "setp.le.and.u64 %%ours, %%to, %u, %%ours;\n"
    "@%%ours bra aligned;\n"
    "st.volatile.global.u64 [%%heap+%u], 1;\n"
    "membar.gl;\n"
    "driver:\n"
    "{\n"
    ".param .b64 a;\n"
    ".param .b64 b;\n"
    ".param .b64 c;\n"
    "st.param.b64 [a], %%n;\n"
    "st.param.b64 [c], %%to;\n"
    "call (b), __cuda_syscall_aligned_malloc, (a, c);\n"
    "ld.param.b64 %%p, [b];\n"
    "}\n"
    "st.param.b64 [r], %%p;\n"
    "ret;\n"
    "aligned:\n"
    "{\n"
    ".param .b64 a;\n"
    ".param .b64 b;\n"
    ".param .b64 c;\n"
    "st.param.b64 [a], %%n;\n"
    "st.param.b64 [c], %%to;\n"
    "call (b), " KHEAP_ALIGNED ", (a, c);\n"
    "ld.param.b64 %%p, [b];\n"
    "}\n"
    "st.param.b64 [r], %%p;\n"
    "ret;\n"
    "here:\n" RETURN_FROM(KHEAP_MALLOC) "}\n";

static const struct row {
    const char *name;     // the driver's function
    const char *instead;  // ours
    uint8_t nrets, nparams;
} rows[] = {
    {"malloc", EDIT_PREFIX "kheap_take", 1, 1},
    {"free", PASS_KHEAP_GIVE, 0, 1},
    {"__cuda_syscall_aligned_malloc", EDIT_PREFIX "kheap_take_aligned", 1, 2},
};
enum { MALLOC, FREE, ALIGNED, ROWS };
_Static_assert(sizeof rows / sizeof *rows == ROWS, "a row for each");

bool pass_kheap_is(struct str name)
{
    for (unsigned i = 0; i < ROWS; i++)
        if (str_eq(name, str_from(rows[i].name)))
            return true;
    return false;
}

uint64_t pass_kheap_sum(void)
{
    uint64_t sum = XXH3_64bits(kheap_functions_ptx, strlen(kheap_functions_ptx));
    sum = XXH3_64bits_withSeed(take_text, sizeof take_text, sum);
    sum = XXH3_64bits_withSeed(give_text, sizeof give_text, sum);
    return XXH3_64bits_withSeed(aligned_text, sizeof aligned_text, sum ^ PASS_KHEAP_REGISTERS);
}

// --- what is added -----------------------------------------------------------------------------------------

// from: the driver's function, NULL if the module does not declare it; to: the function called in its place.
struct redirection {
    const struct ptx_func *from[ROWS];
    uint32_t sym[ROWS], to[ROWS];
};

static const char *type_of(const struct ptx_var *v)
{
    switch (v->type) {
    case PTX_B64: return ".b64";
    case PTX_U64: return ".u64";
    case PTX_S64: return ".s64";
    default: return NULL;
    }
}

// Returns the type of all parameters and results; NULL if the function is not declared as the driver's is.
static const char *types_of(const struct ptx_func *f, const struct row *row)
{
    const char *type = f->nparams == row->nparams && f->nrets == row->nrets ? type_of(&f->params[0]) : NULL;
    for (uint32_t i = 0; type && i < f->nparams; i++)
        type = type_of(&f->params[i]) == type ? type : NULL;
    if (type && f->nrets)
        type = type_of(&f->rets[0]) == type ? type : NULL;
    return type;
}

static bool find(struct pass_context *c, struct redirection *r)
{
    bool any = false;
    for (unsigned i = 0; i < ROWS; i++) {
        struct str name = str_from(rows[i].name);
        const struct ptx_sym *sym = ptx_find(c->m, name);
        if (!sym || sym->kind != PTX_SYM_FUNC || sym->func->has_body)
            continue;
        r->from[i] = sym->func;
        r->sym[i] = edit_find(c->edit, name);
        any = true;
    }
    return any;
}

// Prints one function. All functions go into one text, so that they can refer to each other.
static int print_function(struct pass_context *c, const struct redirection *r, unsigned i, struct out *to)
{
    const unsigned plain = offsetof(struct kheap, plain), foreign = offsetof(struct kheap, foreign),
                   bytes = offsetof(struct kheap, bytes), bounds = offsetof(struct kheap, bounds);
    const char *type = types_of(r->from[i], &rows[i]);
    if (!type) {
        diag_report(c->sink, DIAG_ERROR, &c->m->source, 0, 0, "%s is declared with unknown types",
                    rows[i].name);
        return -ENOTSUP;
    }
    switch (i) {
    case MALLOC: out_fmt(to, take_text, type, type, plain); break;
    case FREE: out_fmt(to, give_text, type, bytes, foreign); break;
    case ALIGNED:
        out_fmt(to, aligned_text, type, type, type, plain, bounds, (unsigned)KHEAP_ALIGN_MOST, foreign);
        break;
    }
    return 0;
}

static int add_functions(struct pass_context *c, struct redirection *r)
{
    struct out text;
    int err = out_to_memory(&text);
    if (err)
        return err;
    out_str(&text, str_from(kheap_functions_ptx));
    for (unsigned i = 0; i < ROWS && !err; i++)
        if (r->from[i])
            err = print_function(c, r, i, &text);
    if (!err)
        err = text.error;
    if (!err)
        edit_add(c->edit, (struct str){text.buf, text.len});
    out_close(&text);
    for (unsigned i = 0; i < ROWS && !err; i++)
        if (r->from[i])
            r->to[i] = edit_find(c->edit, str_from(rows[i].instead));
    return err ? err : edit_error(c->edit);
}

// --- the program's calls -----------------------------------------------------------------------------------

static void redirect_stmt(struct pass_context *c, const struct redirection *r, struct ptx_func *f,
                          uint32_t at)
{
    const struct ptx_stmt *s = &f->stmts[at];
    for (uint32_t slot = 0; slot < s->nslots; slot++)
        for (unsigned i = 0; i < ROWS; i++)
            if (r->from[i] && s->operands[slot].kind == PTX_SYM && s->operands[slot].id == r->sym[i])
                edit_set(c->edit, at, slot, edit_sym(r->to[i]));
}

static void redirect_func(struct pass_context *c, const struct redirection *r, struct ptx_func *f)
{
    edit_func(c->edit, f);
    for (uint32_t i = 0; i < f->nstmts && !edit_error(c->edit); i++)
        if (f->stmts[i].kind == PTX_INSN)
            redirect_stmt(c, r, f, i);
}

int pass_kheap(struct pass_context *c)
{
    struct redirection r = {{0}, {0}, {0}};
    if (!find(c, &r))
        return edit_error(c->edit);
    unsigned arch;
    int err = pass_raise_version(c, &arch);
    if (!err)
        err = regbound_add(c);
    if (!err)
        err = add_functions(c, &r);
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++) {
        redirect_func(c, &r, c->funcs[i]);
        err = edit_error(c->edit);
    }
    c->result->registers = PASS_KHEAP_REGISTERS;
    return err ? err : pass_add_symbol(c, STR(KHEAP_VARIABLE), sizeof(uint64_t));
}
