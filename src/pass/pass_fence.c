// SPDX-License-Identifier: MIT
#include "pass/pass_fence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "pass/pass_fence_state.h"
#include "pass/pass_apart.h"
#include "pass/regbound.h"

// Sets x to the width: KFENCE_WIDE. The upper bits are 0 in others.
#define WIDTH_TEXT           \
    "shr.u64 x, what, 32;\n" \
    "and.b64 x, x, 65535;\n" \
    "shr.u64 y, what, 56;\n" \
    "shl.b64 y, y, 16;\n"    \
    "or.b64 x, x, y;\n"

// Texts that are inserted cannot declare parameters; registers they can pass. The first line keeps addresses
// of kernels' parameters, which lie in a space of their own; PTX has had the instruction since 7.7. An
// address in shared memory that is not aligned is as wrong as one outside; of more than 32 bytes 16 are asked
// for.
static const char find_text[] = ".func (.reg .b64 to) " FENCE_FIND " (.reg .b64 what, .reg .b64 address)\n"
                                "{\n"
                                ".reg .pred p, q;\n"
                                ".reg .b64 x, y;\n"
                                ".reg .b32 at, width, limit, own;\n"
                                "and.b64 x, what, 0x8000000000000;\n"
                                "setp.eq.u64 p, x, 0;\n"
                                "@p bra judge;\n"
                                "isspacep.local p, address;\n"
                                "@p bra local;\n"
                                "%s"
                                "%s"
                                "cvt.u32.u64 at, x;\n" WIDTH_TEXT "cvt.u32.u64 width, x;\n"
                                "setp.gt.u32 q, width, limit;\n"
                                "@q bra note;\n"
                                "sub.u32 limit, limit, width;\n"
                                "and.b64 y, what, %s;\n"
                                "setp.eq.u64 p, y, 0;\n"
                                "@p bra whole;\n"
                                "setp.gt.u64 p, x, 32;\n"
                                "selp.b64 x, 16, x, p;\n"
                                "sub.s64 x, x, 1;\n"
                                "and.b64 x, x, address;\n"
                                "setp.ne.u64 p, x, 0;\n"
                                "@p bra note;\n"
                                "whole:\n"
                                "%s"
                                "note:\n"
                                "call " FENCE_SHARED ", (what, address);\n"
                                "ld.const.u64 to, [" KFENCE_VARIABLE "+24];\n"
                                "@q bra back;\n"
                                "and.b32 limit, limit, -32;\n"
                                "add.u32 limit, limit, own;\n"
                                "cvt.u64.u32 x, limit;\n"
                                "cvta.shared.u64 to, x;\n"
                                "bra back;\n"
                                "judge:\n"
                                "{\n"
                                ".param .b64 a;\n.param .b64 b;\n.param .b64 r;\n"
                                "st.param.b64 [a], what;\n"
                                "st.param.b64 [b], address;\n"
                                "call (r), " KFENCE_FIND ", (a, b);\n"
                                "ld.param.b64 to, [r];\n"
                                "}\n"
                                "bra back;\n"
                                "local:\n"
                                "call (to), " FENCE_STACK ", (what, address);\n"
                                "bra back;\n"
                                "same:\n"
                                "mov.b64 to, address;\n"
                                "back:\n"
                                "ret;\n"
                                "}\n";
// Shared memory, without clusters and with them: what an address in it is, and how it is compared. The shared
// memory of a cluster's block of rank r is at r * 16 MiB, also for that block itself.
static const struct {
    const char *address, *compare;
} shared_texts[2] = {
    {"isspacep.shared p, address;\n"
     "@!p bra judge;\n"
     "mov.u32 limit, %total_smem_size;\n"
     "add.u32 limit, limit, 1024;\n"
     "mov.u32 own, 0;\n"
     "cvta.to.shared.u64 x, address;\n",
     "setp.le.u32 p, at, limit;\n"
     "@p bra same;\n"},
    {"isspacep.shared::cluster p, address;\n"
     "@!p bra judge;\n"
     "mov.u32 limit, %aggr_smem_size;\n"
     "mov.u32 own, %cluster_ctarank;\n"
     "shl.b32 own, own, 24;\n"
     "cvta.to.shared::cluster.u64 x, address;\n",
     "and.b32 width, at, 0xFF000000;\n"
     "xor.b32 at, at, width;\n"
     "setp.gt.u32 p, at, limit;\n"
     "@p bra note;\n"
     "setp.eq.u32 p, width, own;\n"
     "@p bra same;\n"
     "mov.u32 at, %cluster_nctarank;\n"
     "shl.b32 at, at, 24;\n"
     "setp.lt.u32 p, width, at;\n"
     "@p bra same;\n"},
};
static const char params_text[] = "isspacep.param p, address;\n"
                                  "@p bra same;\n";
// A generic address of local memory must lie on the thread's stack, which begins at one end of the window;
// this function's own variable is at its other end.
static const char stack_text[] = ".func (.reg .b64 to) " FENCE_STACK " (.reg .b64 what, .reg .b64 address)\n"
                                 "{\n"
                                 ".local .align 8 .b8 here[8];\n"
                                 ".reg .pred p, q;\n"
                                 ".reg .b64 x, width, kind;\n"
                                 ".reg .b32 low, high;\n"
                                 "mov.b64 to, address;\n"
                                 "cvta.to.local.u64 x, address;\n"
                                 "mov.u32 low, here;\n"
                                 "mov.b32 high, low;\n"
                                 "setp.lt.u32 p, low, 8388608;\n"
                                 "selp.b32 low, 0, low, p;\n"
                                 "selp.b32 high, high, 16777216, p;\n"
                                 "shr.u64 width, what, 32;\n"
                                 "and.b64 width, width, 65535;\n"
                                 "cvt.u64.u32 kind, low;\n"
                                 "setp.lt.u64 p, x, kind;\n"
                                 "cvt.u64.u32 kind, high;\n"
                                 "add.s64 x, x, width;\n"
                                 "setp.gt.u64 q, x, kind;\n"
                                 "or.pred p, p, q;\n"
                                 "@!p bra inside;\n"
                                 "or.b64 kind, what, %s;\n"
                                 "call " FENCE_NOTE ", (kind, address);\n"
                                 "ld.const.u64 to, [" KFENCE_VARIABLE "+24];\n"
                                 "bra back;\n"
                                 "inside:\n"
                                 "and.b64 x, what, 0x80000000000000;\n"
                                 "setp.eq.u64 p, x, 0;\n"
                                 "@p bra back;\n"
                                 "sub.s64 width, width, 1;\n"
                                 "and.b64 x, address, width;\n"
                                 "setp.eq.u64 p, x, 0;\n"
                                 "@p bra back;\n"
                                 "sub.s64 to, to, x;\n"
                                 "or.b64 kind, what, %s;\n"
                                 "call " FENCE_NOTE ", (kind, address);\n"
                                 "back:\n"
                                 "ret;\n"
                                 "}\n";
// A function that passes two words on.
static const char pass_text[] = ".func %s (.reg .b64 first, .reg .b64 second)\n"
                                "{\n"
                                "{\n"
                                ".param .b64 a;\n.param .b64 b;\n"
                                "st.param.b64 [a], first;\n"
                                "st.param.b64 [b], second;\n"
                                "call %s, (a, b);\n"
                                "}\n"
                                "ret;\n"
                                "}\n";

// The same for an address in shared memory. One that is not a multiple of the access's width is recorded as
// that; a width of more bytes is none that an instruction asks for.
static const char shared_text[] = ".func " FENCE_SHARED " (.reg .b64 first, .reg .b64 second)\n"
                                  "{\n"
                                  ".reg .pred p;\n"
                                  ".reg .b64 x, y;\n"
                                  "shr.u64 x, first, 32;\n"
                                  "and.b64 x, x, 65535;\n"
                                  "setp.gt.u64 p, x, 32;\n"
                                  "@p bra outside;\n"
                                  "sub.s64 x, x, 1;\n"
                                  "and.b64 x, x, second;\n"
                                  "setp.eq.u64 p, x, 0;\n"
                                  "@p bra outside;\n"
                                  "and.b64 x, first, %s;\n"
                                  "setp.eq.u64 p, x, 0;\n"
                                  "@p bra outside;\n"
                                  "or.b64 y, first, %s;\n"
                                  "call " FENCE_NOTE ", (y, second);\n"
                                  "ret;\n"
                                  "outside:\n"
                                  "{\n"
                                  ".param .b64 a;\n.param .b64 b;\n"
                                  "st.param.b64 [a], first;\n"
                                  "st.param.b64 [b], second;\n"
                                  "call " KFENCE_SHARED ", (a, b);\n"
                                  "}\n"
                                  "ret;\n"
                                  "}\n";

// A function that passes a word on and returns one.
static const char ask_text[] = ".func (.reg .b64 to) %s (.reg .b64 word)\n"
                               "{\n"
                               "{\n"
                               ".param .b64 a;\n.param .b64 r;\n"
                               "st.param.b64 [a], word;\n"
                               "call (r), %s, (a);\n"
                               "ld.param.b64 to, [r];\n"
                               "}\n"
                               "ret;\n"
                               "}\n";

// What kernels call in place of malloc, so that the lookup knows the heap's blocks.
static const struct {
    const char *name;     // the driver's function
    const char *instead;  // ours
    unsigned nparams;
} takers[] = {
    {"malloc", EDIT_PREFIX "fence_malloc", 1},
    {"__cuda_syscall_aligned_malloc", EDIT_PREFIX "fence_aligned_malloc", 2},
};
enum { TAKERS = 2 };

static const char take_text[] = ".extern .func (.param %s r) malloc (.param %s n);\n"
                                ".func (.param .b64 r) " EDIT_PREFIX "fence_malloc (.param .b64 n)\n"
                                "{\n"
                                ".reg .b64 %%n, %%p;\n"
                                "ld.param.b64 %%n, [n];\n"
                                "{\n"
                                ".param .b64 a;\n.param .b64 b;\n"
                                "st.param.b64 [a], %%n;\n"
                                "call (b), malloc, (a);\n"
                                "ld.param.b64 %%p, [b];\n"
                                "}\n"
                                "call " FENCE_TOOK ", (%%p, %%n);\n"
                                "st.param.b64 [r], %%p;\n"
                                "ret;\n"
                                "}\n";
static const char take_aligned_text[] =
    ".extern .func (.param %s r) __cuda_syscall_aligned_malloc (.param %s n, .param %s to);\n"
    ".func (.param .b64 r) " EDIT_PREFIX "fence_aligned_malloc (.param .b64 n, .param .b64 to)\n"
    "{\n"
    ".reg .b64 %%n, %%to, %%p;\n"
    "ld.param.b64 %%n, [n];\n"
    "ld.param.b64 %%to, [to];\n"
    "{\n"
    ".param .b64 a;\n.param .b64 b;\n.param .b64 c;\n"
    "st.param.b64 [a], %%n;\n"
    "st.param.b64 [c], %%to;\n"
    "call (b), __cuda_syscall_aligned_malloc, (a, c);\n"
    "ld.param.b64 %%p, [b];\n"
    "}\n"
    "call " FENCE_TOOK ", (%%p, %%n);\n"
    "st.param.b64 [r], %%p;\n"
    "ret;\n"
    "}\n";

uint64_t pass_fence_sum(void)
{
    const char *texts[] = {find_text,
                           stack_text,
                           shared_texts[0].address,
                           shared_texts[0].compare,
                           shared_texts[1].address,
                           shared_texts[1].compare,
                           pass_text,
                           shared_text,
                           params_text,
                           ask_text,
                           take_text,
                           take_aligned_text};
    uint64_t sum = XXH3_64bits(kfence_functions_ptx, strlen(kfence_functions_ptx));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sum = XXH3_64bits_withSeed(texts[i], strlen(texts[i]), sum);
    return sum;
}

// --- malloc in kernels -------------------------------------------------------------------------------------

static const char *type_of(const struct ptx_var *v)
{
    return v->type == PTX_B64 ? ".b64" : v->type == PTX_U64 ? ".u64" : v->type == PTX_S64 ? ".s64" : NULL;
}

// Adds what is called in place of a function of the driver that gives memory. Returns 0, or -ENOTSUP if the
// module declares it differently.
static int add_taker(struct fencing *k, unsigned i, struct out *to)
{
    struct pass_context *c = k->all.c;
    const struct ptx_sym *sym = ptx_find(c->m, str_from(takers[i].name));
    const struct ptx_func *f = sym && sym->kind == PTX_SYM_FUNC ? sym->func : NULL;
    if (!f || f->has_body)
        return 0;
    const char *type = f->nrets == 1 && f->nparams == takers[i].nparams ? type_of(&f->rets[0]) : NULL;
    if (!type)
        return -ENOTSUP;
    if (i)
        out_fmt(to, take_aligned_text, type, type_of(&f->params[0]), type_of(&f->params[1]));
    else
        out_fmt(to, take_text, type, type_of(&f->params[0]));
    k->taker[i] = edit_find(c->edit, str_from(takers[i].name));
    return 0;
}

void fence_redirect(struct fencing *k, struct ptx_func *f, uint32_t at)
{
    const struct ptx_stmt *s = &f->stmts[at];
    for (uint32_t slot = 0; slot < s->nslots; slot++)
        for (unsigned i = 0; i < TAKERS; i++)
            if (s->operands[slot].kind == PTX_SYM && s->operands[slot].id == k->taker[i])
                edit_set(k->all.c->edit, at, slot, edit_sym(k->instead[i]));
}

// --- what is refused ---------------------------------------------------------------------------------------

static int refuse(struct fencing *k, const struct ptx_stmt *s, const char *why)
{
    diag_report(k->all.c->sink, DIAG_ERROR, &k->all.c->m->source, s->pos == PTX_NONE ? 0 : s->pos, 0, "%s",
                why);
    return -ENOTSUP;
}

static int look_stmt(struct fencing *k, const struct ptx_stmt *s)
{
    if (s->kind == PTX_VERBATIM || (s->kind == PTX_INSN && s->form->id == PTX_OP_UNKNOWN))
        return refuse(k, s, "moat does not know this instruction, and cannot fence it");
    if (s->kind == PTX_DECL && (s->var->space == PTX_SPACE_GLOBAL || s->var->space == PTX_SPACE_CONST))
        return refuse(k, s, "a variable in a function has no name by which moat could find it");
    return 0;
}

// Unknown modifiers may change what an instruction accesses.
static int look_func(struct fencing *k, const struct ptx_func *f)
{
    int err = 0;
    for (uint32_t i = 0; i < f->nstmts && !err; i++)
        err = look_stmt(k, &f->stmts[i]);
    if (!err && f->nunknown)
        err = refuse(k, &f->stmts[0], "a function has an instruction that moat does not know");
    return err;
}

// --- the module --------------------------------------------------------------------------------------------

// A newer version does not change the module's meaning; a newer target would.
static int raise_version(struct fencing *k)
{
    unsigned arch;
    int err = pass_raise_version(k->all.c, &arch);
    k->exact_shared = !err && arch >= 90;
    if (k->exact_shared)
        pass_raise_to(k->all.c->m, 8, 1);
    return err;
}

// Blocks of full residency leave a thread so many registers.
enum { OWN_REGISTERS = 32 };

static int add_text(struct fencing *k)
{
    static const struct pass_apart functions = {kfence_functions_ptx, OWN_REGISTERS};
    struct pass_context *c = k->all.c;
    bool params = c->m->version_major > 7 || (c->m->version_major == 7 && c->m->version_minor >= 7);
    struct out text;
    int err = out_to_memory(&text);
    if (err)
        return err;
    if (c->linked) {
        pass_apart_declare(kfence_functions_ptx, &text);
        c->result->apart = &functions;
    } else {
        out_cstr(&text, kfence_functions_ptx);
    }
    out_fmt(&text, pass_text, FENCE_NOTE, KFENCE_NOTE);
    char left[24], misaligned[24], aligned[24];
    snprintf(left, sizeof left, "%" PRIu64, KFENCE_WHAT(0, 0, KFENCE_KIND(KFENCE_OUT_OF_LOCAL)));
    snprintf(misaligned, sizeof misaligned, "%" PRIu64, KFENCE_WHAT(0, 0, KFENCE_KIND(KFENCE_MISALIGNED)));
    snprintf(aligned, sizeof aligned, "%" PRIu64, KFENCE_WHAT(0, 0, KFENCE_ALIGNED));
    out_fmt(&text, shared_text, aligned, misaligned);
    out_fmt(&text, stack_text, left, misaligned);
    out_fmt(&text, find_text, params ? params_text : "", shared_texts[k->exact_shared].address, aligned,
            shared_texts[k->exact_shared].compare);
    out_fmt(&text, pass_text, FENCE_TOOK, KFENCE_TOOK);
    out_fmt(&text, ask_text, FENCE_OBJECT, KFENCE_OBJECT_FIND);
    out_fmt(&text, ask_text, FENCE_MAP, KFENCE_MAP_FIND);
    for (unsigned i = 0; i < TAKERS && !err; i++)
        err = add_taker(k, i, &text);
    err = err ? err : text.error;
    if (!err)
        edit_add(c->edit, (struct str){text.buf, text.len});
    out_close(&text);
    if (err)
        return err;
    k->variable = edit_find(c->edit, STR(KFENCE_VARIABLE));
    k->find = edit_find(c->edit, STR(FENCE_FIND));
    k->note = edit_find(c->edit, STR(FENCE_NOTE));
    k->shared = edit_find(c->edit, STR(FENCE_SHARED));
    k->object = edit_find(c->edit, STR(FENCE_OBJECT));
    k->map = edit_find(c->edit, STR(FENCE_MAP));
    for (unsigned i = 0; i < TAKERS; i++)
        k->instead[i] = k->taker[i] == PTX_NONE ? PTX_NONE : edit_find(c->edit, str_from(takers[i].instead));
    return edit_error(c->edit);
}

// The sites, in the form of pass_check's result.
static int keep_result(struct fencing *k)
{
    struct pass_result *r = k->all.c->result;
    struct pass_check *to = ARENA_NEW(&r->arena, struct pass_check);
    if (!to)
        return -ENOMEM;
    *to = (struct pass_check){.nkernels = (uint32_t)k->all.kernels.len, .nsites = (uint32_t)k->all.sites.len};
    to->kernels = ARENA_ARRAY(&r->arena, struct pass_check_kernel, to->nkernels + 1u);
    to->sites = ARENA_ARRAY(&r->arena, struct pass_check_site, to->nsites + 1u);
    to->funcs = ARENA_ARRAY(&r->arena, struct pass_check_func, 1);
    if (!to->kernels || !to->sites || !to->funcs)
        return -ENOMEM;
    if (to->nkernels)
        memcpy(to->kernels, k->all.kernels.items, to->nkernels * sizeof *to->kernels);
    if (to->nsites)
        memcpy(to->sites, k->all.sites.items, to->nsites * sizeof *to->sites);
    r->check = to;
    return 0;
}

// Names the module's variables, whose addresses the host lists. They follow the module's own variable.
static int add_variables(struct fencing *k)
{
    struct pass_context *c = k->all.c;
    const struct ptx_module *m = c->m;
    int err = pass_add_symbol(c, STR(KFENCE_VARIABLE), sizeof(struct kfence_module));
    for (uint32_t i = 0; i < m->nitems && !err; i++) {
        const struct ptx_var *v = m->items[i].kind == PTX_ITEM_VAR ? m->items[i].var : NULL;
        bool has_place = v && (v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST);
        k->has_window |= has_place && fence_variable_bytes(m, v->sym);
        if (has_place && v->linkage != PTX_EXTERN && ptx_var_size(v))
            err = pass_add_symbol(c, ptx_sym(m, v->sym)->name, ptx_var_size(v));
    }
    return err;
}

// Copies a kernel. Returns 0 or a negative code.
static int copy_kernel(struct pass_context *c, uint32_t index, const char *prefix, struct ptx_func **copy)
{
    struct str name = c->result->funcs[index].name;
    size_t n = strlen(prefix);
    char *text = arena_alloc(&c->m->arena, n + name.len);
    if (!text)
        return -ENOMEM;
    memcpy(mempcpy(text, prefix, n), name.ptr, name.len);
    *copy = edit_clone_func(c->edit, c->funcs[index], (struct str){text, n + name.len});
    return *copy ? 0 : edit_error(c->edit) ? edit_error(c->edit) : -ENOMEM;
}

// Copies each kernel that has accesses which need only a mask, and each one that a proof may show to need no
// fence, before anything is edited.
static int plan_variants(struct fencing *k)
{
    struct pass_context *c = k->all.c;
    uint32_t n = c->result->nfuncs;
    k->plans = ARENA_ARRAY(&c->m->arena, fence_plan, n + 1u);
    k->variants = ARENA_ARRAY(&c->m->arena, struct ptx_func *, n + 1u);
    k->bare = ARENA_ARRAY(&c->m->arena, bool, n + 1u);
    k->locals = ARENA_ARRAY(&c->m->arena, fence_locals, n + 1u);
    k->variables = ARENA_ARRAY(&c->m->arena, fence_variables, n + 1u);
    k->handles = ARENA_ARRAY(&c->m->arena, fence_handles, n + 1u);
    k->grid_words = ARENA_ARRAY(&c->m->arena, fence_rows, n + 1u);
    k->rests = ARENA_ARRAY(&c->m->arena, struct ptx_func *, n + 1u);
    k->covered = ARENA_ARRAY(&c->m->arena, fence_rows, n + 1u);
    k->rest_plans = ARENA_ARRAY(&c->m->arena, fence_plan, n + 1u);
    if (!k->plans || !k->variants || !k->bare || !k->locals || !k->variables || !k->rests || !k->covered ||
        !k->rest_plans || !k->handles || !k->grid_words)
        return -ENOMEM;
    memset(k->grid_words, 0, (n + 1u) * sizeof *k->grid_words);
    memset(k->handles, 0, (n + 1u) * sizeof *k->handles);
    memset(k->rests, 0, (n + 1u) * sizeof *k->rests);
    memset(k->covered, 0, (n + 1u) * sizeof *k->covered);
    memset(k->rest_plans, 0, (n + 1u) * sizeof *k->rest_plans);
    memset(k->variables, 0, (n + 1u) * sizeof *k->variables);
    memset(k->plans, 0, (n + 1u) * sizeof *k->plans);
    memset(k->locals, 0, (n + 1u) * sizeof *k->locals);
    memset(k->variants, 0, (n + 1u) * sizeof *k->variants);
    int err = 0;
    for (uint32_t i = 0; i < n && !err; i++) {
        struct pass_check_kernel row = {.proof = STR("")};
        err = k->way == FENCE_BY_CHECK ? 0 : fence_find_masked(k, i, &k->plans[i]);
        err = err ? err : fence_find_locals(k, i, &k->locals[i]);
        err = err ? err : fence_find_variables(k, i, &k->variables[i]);
        err = err ? err : fence_find_grid_words(k, i, &k->grid_words[i]);
        err = err ? err : fence_find_handles(k, i, &k->handles[i]);
        err = err ? err : fence_find_bare(k, i, &row, &k->covered[i]);
        err = err ? err : fence_find_rest(k, i, &k->plans[i], &k->covered[i], &k->rest_plans[i]);
        k->bare[i] = pass_check_may_be_bare((enum pass_check_proved)row.proved);
        if (!err && (k->plans[i].len || k->handles[i].len || row.proved != PASS_CHECK_FULL))
            err = fence_add_kernel(k, i, &k->plans[i], &k->rest_plans[i], &row);
    }
    for (uint32_t i = 0; i < n && !err; i++) {
        if (k->way != FENCE_BY_CHECK && (k->plans[i].len || k->handles[i].len))
            err = copy_kernel(c, i, KFENCE_PREFIX, &k->variants[i]);
        if (!err && k->covered[i].len)
            err = copy_kernel(c, i, KFENCE_REST_PREFIX, &k->rests[i]);
        struct ptx_func *bare;
        if (!err && k->bare[i])
            err = copy_kernel(c, i, KFENCE_BARE_PREFIX, &bare);
    }
    return err;
}

static int rewrite(struct fencing *k)
{
    struct pass_context *c = k->all.c;
    int err = add_variables(k);
    if (!err)
        err = raise_version(k);
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++)
        err = look_func(k, c->funcs[i]);
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++)
        err = fence_name_params(c->funcs[i]);
    if (!err && !c->linked)
        err = regbound_add(c);
    if (!err)
        err = fence_find_calls(k);
    if (!err)
        err = add_text(k);
    if (!err)
        err = fence_add_calls(k);
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++)
        if (c->result->funcs[i].why == PASS_REWRITTEN)
            err = check_find_crowded(c, i);
    if (!err)
        err = plan_variants(k);
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++) {
        if (c->result->funcs[i].why == PASS_CROWDED)
            continue;
        err = fence_func(k, i, c->funcs[i], NULL, NULL);
        if (!err && k->variants[i])
            err = fence_func(k, i, k->variants[i], &k->plans[i], NULL);
        if (!err && k->rests[i])
            err = fence_func(k, i, k->rests[i], k->way == FENCE_BY_CHECK ? NULL : &k->rest_plans[i],
                             &k->covered[i]);
    }
    return err ? err : keep_result(k);
}

static int fence(struct pass_context *c, enum fence_way way, bool watchdog)
{
    struct fencing k = {.all = {.c = c}, .taker = {PTX_NONE, PTX_NONE}, .way = way, .watchdog = watchdog};
    int err = c->result->nfuncs ? rewrite(&k) : 0;
    for (uint32_t i = 0; k.plans && i < c->result->nfuncs; i++)
        vec_free(&k.plans[i]);
    for (uint32_t i = 0; k.locals && i < c->result->nfuncs; i++)
        vec_free(&k.locals[i]);
    for (uint32_t i = 0; k.rest_plans && i < c->result->nfuncs; i++) {
        vec_free(&k.rest_plans[i]);
        vec_free(&k.covered[i]);
        vec_free(&k.handles[i]);
        vec_free(&k.grid_words[i]);
    }
    for (uint32_t i = 0; k.variables && i < c->result->nfuncs; i++)
        vec_free(&k.variables[i]);
    vec_free(&k.shapes);
    vec_free(&k.all.sites);
    vec_free(&k.all.kernels);
    return err;
}

int pass_fence(struct pass_context *c)
{
    return fence(c, FENCE_BY_MASK, false);
}

int pass_fence_modulo(struct pass_context *c)
{
    return fence(c, FENCE_BY_MODULO, false);
}

int pass_fence_watchdog(struct pass_context *c)
{
    return fence(c, FENCE_BY_MASK, true);
}

int pass_fence_modulo_watchdog(struct pass_context *c)
{
    return fence(c, FENCE_BY_MODULO, true);
}

int pass_fence_check(struct pass_context *c)
{
    return fence(c, FENCE_BY_CHECK, false);
}

int pass_fence_check_watchdog(struct pass_context *c)
{
    return fence(c, FENCE_BY_CHECK, true);
}
