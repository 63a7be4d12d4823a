// SPDX-License-Identifier: MIT
// The module's side of the checking pass: which functions are copied, what is added, what calls what. See
// pass_check.h.
#include "pass/pass_check.h"

#include <errno.h>
#include <string.h>

#include <xxhash.h>

#include "pass/pass_apart.h"
#include "pass/pass_check_state.h"
#include "pass/pass_cold.h"
#include "pass/pass_kheap.h"

// Blocks of full residency leave a thread so many registers.
enum { JUDGE_REGISTERS = 32 };
enum { PARAM_SPACE = 4352, PARAM_SPACE_8_1 = 32764 };

const char *const pass_check_root_names[PASS_CHECK_ROOTS] = {[PASS_CHECK_PARAM] = "parameter",
                                                             [PASS_CHECK_VARIABLE] = "variable",
                                                             [PASS_CHECK_LOADED] = "loaded",
                                                             [PASS_CHECK_WEB] = "several",
                                                             [PASS_CHECK_OWN] = "own"};
const char *const pass_check_left_names[PASS_CHECK_LEFTS] = {
    [PASS_CHECK_SHARED] = "shared",       [PASS_CHECK_LOCAL] = "local",
    [PASS_CHECK_ELSEWHERE] = "elsewhere", [PASS_CHECK_COLLECTIVE] = "collective",
    [PASS_CHECK_ASYNC] = "asynchronous",  [PASS_CHECK_UNSIZED] = "unsized"};

const struct pass_apart pass_check_apart = {kcheck_functions_ptx, JUDGE_REGISTERS};

#define CALL PASS_COLD_CALL
#define ENTER EDIT_PREFIX "check_enter"
// Texts that are inserted cannot declare parameters; registers they can pass.
static const char call_text[] =
    ".func (.reg .b32 v) " CALL " (.reg .b64 what, .reg .b64 address, .reg .b64 root, .reg .b64 launch)\n"
    "{\n"
    "{\n"
    ".param .b64 a;\n.param .b64 b;\n.param .b64 c;\n.param .b64 d;\n.param .b32 r;\n"
    "st.param.b64 [a], what;\n"
    "st.param.b64 [b], address;\n"
    "st.param.b64 [c], root;\n"
    "st.param.b64 [d], launch;\n"
    "call (r), " KCHECK_ACCESS ", (a, b, c, d);\n"
    "ld.param.b32 v, [r];\n"
    "}\n"
    "ret;\n"
    "}\n";

// The same for KCHECK_BOUNDS.
#define FIND EDIT_PREFIX "check_find"
static const char find_text[] = ".func (.reg .b64 v) " FIND " (.reg .b64 pointer)\n"
                                "{\n"
                                "{\n"
                                ".param .b64 a;\n.param .b64 r;\n"
                                "st.param.b64 [a], pointer;\n"
                                "call (r), " KCHECK_BOUNDS ", (a);\n"
                                "ld.param.b64 v, [r];\n"
                                "}\n"
                                "ret;\n"
                                "}\n";

// The same for KCHECK_ENTER.
static const char enter_text[] = ".func " ENTER " (.reg .b64 launch)\n"
                                 "{\n"
                                 "{\n"
                                 ".param .b64 a;\n"
                                 "st.param.b64 [a], launch;\n"
                                 "call " KCHECK_ENTER ", (a);\n"
                                 "}\n"
                                 "ret;\n"
                                 "}\n";

uint64_t pass_check_sum(void)
{
    uint64_t sum = XXH3_64bits(kcheck_functions_ptx, strlen(kcheck_functions_ptx));
    sum = XXH3_64bits_withSeed(enter_text, sizeof enter_text, sum);
    sum = XXH3_64bits_withSeed(find_text, sizeof find_text, sum);
    return XXH3_64bits_withSeed(call_text, sizeof call_text, sum);
}

// --- which functions ---------------------------------------------------------------------------------------

static void mark_symbol(const struct ptx_module *m, bool *taken, uint32_t sym)
{
    const struct ptx_sym *s = sym < m->nsyms ? ptx_sym_behind_alias(m, sym) : NULL;
    if (s && s->kind == PTX_SYM_FUNC)
        taken[s->func->sym] = true;
}

static void mark_stmt(const struct ptx_module *m, bool *taken, const struct ptx_stmt *s)
{
    for (uint32_t i = 0; s->kind == PTX_TARGETS && s->targets->calls && i < s->targets->ntargets; i++)
        mark_symbol(m, taken, s->targets->targets[i]);
    if (s->kind != PTX_INSN)
        return;
    const struct ptx_operand *callee = s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->operands[i].kind == PTX_SYM && &s->operands[i] != callee)
            mark_symbol(m, taken, s->operands[i].id);
}

static void mark_init(const struct ptx_module *m, bool *taken, struct str init)
{
    struct ptx_init item;
    while (ptx_init_next(&init, &item) == 1)
        if (item.kind == PTX_INIT_SYM) {
            uint32_t sym = map_get(&m->globals, item.text);
            if (sym != MAP_NONE)
                mark_symbol(m, taken, sym);
        }
}

void check_find_taken(const struct ptx_module *m, bool *taken)
{
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_item *item = &m->items[i];
        if (item->kind == PTX_ITEM_VAR)
            mark_init(m, taken, item->var->init);
        else if (item->kind == PTX_ITEM_FUNC)
            for (uint32_t k = 0; k < item->func->nstmts; k++)
                mark_stmt(m, taken, &item->func->stmts[k]);
    }
}

// Whether a function can be copied: statements kept verbatim may refer to anything, a variable in global or
// constant memory must exist once, and % can only be the first character of a name.
static bool can_copy(const struct ptx_module *m, const struct ptx_func *f)
{
    if (ptx_func_name(m, f).ptr[0] == '%')
        return false;
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind == PTX_VERBATIM)
            return false;
        if (s->kind == PTX_DECL && (s->var->space == PTX_SPACE_GLOBAL || s->var->space == PTX_SPACE_CONST))
            return false;
    }
    return true;
}

struct ptx_func *check_copy(struct checking *k, const struct ptx_func *f, struct str prefix)
{
    struct str name = ptx_func_name(k->c->m, f);
    char *text = arena_alloc(&k->c->m->arena, prefix.len + name.len + 1);
    if (!text)
        return NULL;
    memcpy(mempcpy(text, prefix.ptr, prefix.len), name.ptr, name.len);
    return edit_clone_func(k->c->edit, f, (struct str){text, prefix.len + name.len});
}

static int copy_functions(struct checking *k)
{
    struct pass_context *c = k->c;
    uint32_t n = c->result->nfuncs;
    bool *taken = ARENA_ARRAY(&c->m->arena, bool, c->m->nsyms + 1u);
    k->copies = ARENA_ARRAY(&c->m->arena, struct ptx_func *, n + 1u);
    if (!taken || !k->copies)
        return -ENOMEM;
    memset(taken, 0, c->m->nsyms + 1u);
    check_find_taken(c->m, taken);
    for (uint32_t i = 0; i < n; i++) {
        struct ptx_func *f = c->funcs[i];
        struct pass_func *about = &c->result->funcs[i];
        k->copies[i] = NULL;
        if (about->why == PASS_LAUNCHES && !k->shadow.shift)  // its children need nothing of the host's
            about->why = PASS_REWRITTEN;
        if (about->why == PASS_REWRITTEN && !can_copy(c->m, f))
            about->why = PASS_UNCOPIED;
        int err = about->why == PASS_REWRITTEN ? check_find_crowded(c, i) : 0;
        if (err)
            return err;
        if (about->why != PASS_REWRITTEN)
            continue;
        bool in_place = !f->is_entry && taken[f->sym];
        k->copies[i] = in_place ? f : check_copy(k, f, STR(KCHECK_PREFIX));
        if (!k->copies[i])
            return edit_error(c->edit) ? edit_error(c->edit) : -ENOMEM;
    }
    int err = check_child_copies(k);
    for (uint32_t i = 0; i < n && !err; i++) {
        if (k->copies[i] && k->copies[i] != c->funcs[i])
            check_child_redirect(k, k->copies[i]);
        if (k->children[i])
            check_child_redirect(k, k->children[i]);
    }
    return err;
}

// --- calls -------------------------------------------------------------------------------------------------

static void redirect_calls(struct checking *k, struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        uint32_t to = check_callee(k, s);
        if (to != PTX_NONE && k->copies[to])
            edit_set(k->c->edit, i, (unsigned)(ptx_operand(s, 1) - s->operands),
                     edit_sym(k->copies[to]->sym));
    }
}

// --- a function --------------------------------------------------------------------------------------------

static int arrays(struct check_func *k)
{
    uint32_t values = (uint32_t)k->reach->value.len + 1, defs = k->reach->ndefs + 1;
    k->bounds = ARENA_ARRAY(&k->arena, struct check_bounds, values);
    k->shadow = ARENA_ARRAY(&k->arena, struct check_bounds, k->reach->regs->n + 1u);
    k->feeds = ARENA_ARRAY(&k->arena, bool, values);
    k->asked = ARENA_ARRAY(&k->arena, struct check_asked, defs);
    k->renamed = ARENA_ARRAY(&k->arena, uint32_t, defs);
    k->renamed_in = ARENA_ARRAY(&k->arena, uint32_t, defs);
    k->levels = ARENA_ARRAY(&k->arena, uint8_t, defs);
    k->read_from = ARENA_ARRAY(&k->arena, uint32_t, k->reach->regs->n + 1u);
    k->joins_at = ARENA_ARRAY(&k->arena, uint32_t, k->cfg->nblocks + 1u);
    k->next_join = ARENA_ARRAY(&k->arena, uint32_t, values);
    if (!k->bounds || !k->shadow || !k->feeds || !k->asked || !k->renamed || !k->renamed_in || !k->levels ||
        !k->read_from || !k->joins_at || !k->next_join)
        return -ENOMEM;
    memset(k->bounds, 0, values * sizeof *k->bounds);
    memset(k->shadow, 0, (k->reach->regs->n + 1u) * sizeof *k->shadow);
    memset(k->feeds, 0, values);
    memset(k->asked, 0xFF, defs * sizeof *k->asked);
    memset(k->renamed_in, 0xFF, defs * sizeof *k->renamed_in);
    memset(k->levels, 0, defs);
    memset(k->read_from, 0xFF, (k->reach->regs->n + 1u) * sizeof *k->read_from);
    memset(k->joins_at, 0xFF, (k->cfg->nblocks + 1u) * sizeof *k->joins_at);
    for (uint32_t v = k->reach->ndefs; v < k->reach->value.len; v++) {
        const struct reach_value *value = &k->reach->value.items[v];
        if (value->kind != REACH_JOIN)
            continue;
        k->next_join[v - k->reach->ndefs] = k->joins_at[value->place];
        k->joins_at[value->place] = v;
    }
    return 0;
}

static uint32_t params_end(const struct ptx_func *f, struct pass_check_param *to)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < f->nparams; i++) {
        uint64_t at = 0, size = ptx_var_size(&f->params[i]);
        roots_param_offset(f, f->params[i].sym, &at);
        if (to)
            to[i] = (struct pass_check_param){(uint32_t)at, (uint32_t)size};
        end = at + size;
    }
    return (uint32_t)end;
}

static uint32_t hidden_at(const struct ptx_func *f)
{
    return (params_end(f, NULL) + 15) / 16 * 16;
}

static uint32_t most_pairs(const struct checking *k, const struct ptx_func *f)
{
    const struct ptx_module *m = k->c->m;
    bool large = m->version_major > 8 || (m->version_major == 8 && m->version_minor >= 1);
    uint32_t space = large ? PARAM_SPACE_8_1 : PARAM_SPACE, used = hidden_at(f) + KCHECK_HIDDEN;
    uint32_t room = f->is_entry && used < space ? (space - used) / 16 : 0;
    return room < KCHECK_MOST_PAIRS ? room : KCHECK_MOST_PAIRS;
}

// Adds the hidden parameter of a variant, and describes it.
static int add_variant(struct check_func *k, struct pass_check_variant *to)
{
    to->npairs = (uint32_t)k->pairs.len;
    to->hidden_bytes = KCHECK_HIDDEN + 16 * to->npairs;
    to->pairs = ARENA_ARRAY(&k->k->c->result->arena, struct pass_check_pair, to->npairs + 1u);
    if (!to->pairs)
        return -ENOMEM;
    if (to->npairs)
        memcpy(to->pairs, k->pairs.items, to->npairs * sizeof *to->pairs);
    k->hidden = edit_add_param(k->k->c->edit, k->f, PTX_B8, 16, to->hidden_bytes);
    return 0;
}

// A plain load is made once.
bool check_waits(const struct ptx_stmt *s)
{
    static const enum ptx_mod strong[] = {PTX_MOD_VOLATILE, PTX_MOD_RELAXED, PTX_MOD_ACQUIRE,
                                          PTX_MOD_MMIO,     PTX_MOD_CV,      PTX_MOD_CG};
    if (s->kind != PTX_INSN)
        return s->kind == PTX_VERBATIM;
    if (s->form->id == PTX_OP_CALL || s->form->id == PTX_OP_ATOM || s->form->id == PTX_OP_NANOSLEEP)
        return true;
    for (unsigned i = 0; i < sizeof strong / sizeof *strong; i++)
        if (ptx_form_has(s->form, strong[i]))
            return true;
    return false;
}

static bool may_wait(const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (check_waits(&f->stmts[i]))
            return true;
    return false;
}

static int add_kernel(struct check_func *k)
{
    struct pass_check_kernel kernel = {.name = k->name,
                                       .hidden = hidden_at(k->f),
                                       .nparams = k->f->nparams,
                                       .waits = may_wait(k->f),
                                       .proof = STR("")};
    kernel.params = ARENA_ARRAY(&k->k->c->result->arena, struct pass_check_param, kernel.nparams + 1u);
    if (!kernel.params)
        return -ENOMEM;
    params_end(k->f, kernel.params);
    int err = check_prove(k, &kernel);
    if (!err)
        err = add_variant(k, &kernel.full);
    return err ? err : vec_push(&k->k->kernels, kernel);
}

// The kernel's row is the last one when its rest is added.
static int add_entry(struct check_func *k)
{
    struct checking *all = k->k;
    return k->rest ? add_variant(k, &all->kernels.items[all->kernels.len - 1].rest) : add_kernel(k);
}

static int analyse(struct check_func *k)
{
    int err = flow_cfg(&k->flow, &k->cfg);
    if (!err)
        err = flow_roots(&k->flow, &k->roots);
    if (!err)
        err = flow_reaching(&k->flow, &k->reach);
    if (!err)
        err = multiples_build(k->roots, &k->arena, &k->multiples);
    if (!err)
        err = arrays(k);
    if (!err)
        err = check_plan(k);
    if (!err && !k->k->shadow.shift)
        err = check_find_passes(k);
    if (!err)
        err = check_find_calls_of_free(k);
    if (!err && !k->k->shadow.shift)
        err = check_need(k);
    return err ? err : check_find_memos(k);
}

// f: the copy that is rewritten. proof: NULL for functions that are no kernels. `rest`: the variant that
// leaves out what it may cover.
static int open_function(struct check_func *k, struct checking *all, uint32_t index, struct ptx_func *f,
                         struct check_proof *proof, bool rest)
{
    *k = (struct check_func){.k = all,
                             .f = f,
                             .name = all->c->result->funcs[index].name,
                             .proof = proof,
                             .rest = rest,
                             .child = f == all->children[index],
                             .in_place = f == all->c->funcs[index],
                             .flow = {.m = all->c->m, .f = f},
                             .slots = f == all->copies[index] ? all->slots[index] : NULL,
                             .hidden = PTX_NONE};
    arena_init(&k->arena, 0);
    k->left.name = k->name;
    k->most_pairs = (all->shadow.shift && !all->shadow.roots) || k->child ? 0 : most_pairs(all, f);
    int err = edit_error(all->c->edit);
    return err ? err : analyse(k);
}

static void close_function(struct check_func *k)
{
    vec_free(&k->accesses);
    vec_free(&k->ranges);
    vec_free(&k->segments);
    vec_free(&k->loops);
    vec_free(&k->pairs);
    vec_free(&k->params);
    vec_free(&k->param_bounds);
    vec_free(&k->passes);
    vec_free(&k->memos);
    vec_free(&k->frees);
    vec_free(&k->whole_accesses);
    vec_free(&k->wholes);
    vec_free(&k->declared);
    vec_free(&k->saved);
    flow_drop(&k->flow);
    arena_free(&k->arena);
}

static int check_function(struct checking *all, uint32_t index, struct ptx_func *f, struct check_proof *proof,
                          bool rest)
{
    struct check_func k;
    int err = open_function(&k, all, index, f, proof, rest);
    if (!err && f->is_entry && !k.child)
        err = add_entry(&k);
    if (!err)
        err = check_find_saved(&k);
    if (!err) {
        edit_func(all->c->edit, k.f);
        check_emit(&k);
        redirect_calls(all, k.f);
        err = rest || f != all->copies[index] ? 0 : vec_push(&all->funcs, k.left);
    }
    close_function(&k);
    return edit_error(all->c->edit) ? edit_error(all->c->edit) : err;
}

// Makes the checked variants of a kernel.
static int check_kernel(struct checking *k, uint32_t index)
{
    struct check_proof proof = {.ranges = NULL};
    arena_init(&proof.arena, 0);
    int err = check_function(k, index, k->copies[index], &proof, false);
    if (!err && pass_check_has_rest(k->kernels.items[k->kernels.len - 1].proved)) {
        struct ptx_func *rest = check_copy(k, k->c->funcs[index], STR(KCHECK_REST_PREFIX));
        if (rest)
            check_child_redirect(k, rest);
        err = rest ? check_function(k, index, rest, &proof, true) : -ENOMEM;
    }
    check_prove_free(&proof);
    return err || !k->children[index] ? err : check_function(k, index, k->children[index], NULL, false);
}

// --- what functions get from their callers -----------------------------------------------------------------

static bool has_pointers(const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].space == PTX_SPACE_PARAM && ptx_var_size(&f->params[i]) >= 8)
            return true;
    return false;
}

// Functions are analysed here and once more when they are rewritten, so that the analyses of one function
// are in memory at a time.
static int find_slots(struct checking *k)
{
    uint32_t n = k->c->result->nfuncs;
    uint32_t *order = ARENA_ARRAY(&k->c->m->arena, uint32_t, n + 1u);
    k->slots = ARENA_ARRAY(&k->c->m->arena, struct check_slots *, n + 1u);
    if (!order || !k->slots)
        return -ENOMEM;
    memset(k->slots, 0, (n + 1u) * sizeof *k->slots);
    if (k->shadow.shift)  // bounds are not passed
        return 0;
    int err = check_call_order(k, order);
    for (uint32_t i = 0; i < n && !err && order[i] != PTX_NONE; i++) {
        struct ptx_func *f = k->copies[order[i]];
        if (!f || f == k->c->funcs[order[i]] || f->is_entry || !has_pointers(f))
            continue;
        struct check_func about;
        struct check_slots *slots = NULL;
        size_t sites = k->sites.len;
        err = open_function(&about, k, order[i], f, NULL, false);
        if (!err)
            err = check_find_slots(&about, &slots);
        close_function(&about);
        k->sites.len = sites;
        k->slots[order[i]] = slots;
    }
    for (uint32_t i = 0; i < n && !err; i++)
        if (k->slots[i])
            check_add_slots(k, k->copies[i], k->slots[i]);
    return err ? err : edit_error(k->c->edit);
}

// --- the module --------------------------------------------------------------------------------------------

static bool calls_malloc(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC && pass_kheap_is(ptx_func_name(m, m->items[i].func)))
            return true;
    return false;
}

static int add_text(struct checking *k)
{
    const char *given = k->c->judge;
    struct out text;
    int err = out_to_memory(&text);
    if (err)
        return err;
    if (k->c->linked && !given)
        pass_apart_declare(kcheck_functions_ptx, &text);
    else
        out_cstr(&text, given ? given : kcheck_functions_ptx);
    out_cstr(&text, call_text);
    out_cstr(&text, enter_text);
    bool heap = calls_malloc(k->c->m) && !given;
    if (heap)
        out_cstr(&text, find_text);
    err = text.error;
    if (!err)
        edit_add(k->c->edit, (struct str){text.buf, text.len});
    out_close(&text);
    if (err)
        return err;
    if (k->c->linked && !given)
        k->c->result->apart = &pass_check_apart;
    k->variable = edit_find(k->c->edit, STR(KCHECK_VARIABLE));
    k->call = edit_find(k->c->edit, STR(CALL));
    k->made = PTX_NONE;
    k->find = heap ? edit_find(k->c->edit, STR(FIND)) : PTX_NONE;
    uint32_t frees = map_get(&k->c->m->globals, STR(PASS_KHEAP_GIVE));
    k->frees = frees == MAP_NONE ? PTX_NONE : frees;
    k->enter = edit_find(k->c->edit, STR(ENTER));
    return edit_error(k->c->edit);
}

static int find_by_name(struct checking *k)
{
    for (uint32_t i = 0; i < k->c->result->nfuncs; i++)
        if (map_put(&k->by_sym, ptx_func_name(k->c->m, k->c->funcs[i]), i))
            return -ENOMEM;
    return 0;
}

static int keep_result(struct checking *k)
{
    struct pass_result *r = k->c->result;
    struct pass_check *to = ARENA_NEW(&r->arena, struct pass_check);
    if (!to)
        return -ENOMEM;
    *to = (struct pass_check){.nkernels = (uint32_t)k->kernels.len,
                              .nsites = (uint32_t)k->sites.len,
                              .nfuncs = (uint32_t)k->funcs.len,
                              .tag = k->tag,
                              .foreign = k->foreign};
    to->kernels = ARENA_ARRAY(&r->arena, struct pass_check_kernel, to->nkernels + 1u);
    to->sites = ARENA_ARRAY(&r->arena, struct pass_check_site, to->nsites + 1u);
    to->funcs = ARENA_ARRAY(&r->arena, struct pass_check_func, to->nfuncs + 1u);
    if (!to->kernels || !to->sites || !to->funcs)
        return -ENOMEM;
    if (to->nkernels)
        memcpy(to->kernels, k->kernels.items, to->nkernels * sizeof *to->kernels);
    if (to->nsites)
        memcpy(to->sites, k->sites.items, to->nsites * sizeof *to->sites);
    if (to->nfuncs)
        memcpy(to->funcs, k->funcs.items, to->nfuncs * sizeof *to->funcs);
    r->check = to;
    return check_variables(k, to);
}

// Returns whether kernels may get pointers from the device's own functions, or from registers that its
// runtime uses: for malloc, launches of kernels, and what the blocks of a cooperative launch share.
static bool is_foreign(const struct ptx_module *m)
{
    static const struct str harmless[] = {STR("vprintf"), STR("__assertfail")};
    bool foreign = memmem(m->source.text.ptr, m->source.text.len, "%envreg", 7);
    for (uint32_t i = 0; i < m->nitems && !foreign; i++) {
        if (m->items[i].kind != PTX_ITEM_FUNC || m->items[i].func->has_body)
            continue;
        struct str name = ptx_func_name(m, m->items[i].func);
        foreign = true;
        for (unsigned h = 0; h < sizeof harmless / sizeof *harmless; h++)
            foreign &= !str_eq(name, harmless[h]);
        for (uint32_t f = 0; f < m->nitems; f++)  // only declared before it is defined
            foreign &= m->items[f].kind != PTX_ITEM_FUNC || !m->items[f].func->has_body ||
                       !str_eq(name, ptx_func_name(m, m->items[f].func));
    }
    return foreign;
}

// Whether other texts that are linked into the module may call the function by its name. They reach the
// function itself and know of no copy: it is changed in place, beside its copy.
static bool is_called_from_outside(const struct checking *k, uint32_t index)
{
    const struct ptx_func *f = k->c->funcs[index];
    return k->copies[index] && k->copies[index] != f && !f->is_entry &&
           (f->linkage == PTX_VISIBLE || f->linkage == PTX_WEAK);
}

static int rewrite(struct checking *k)
{
    struct pass_context *c = k->c;
    unsigned arch;
    int err = pass_raise_version(c, &arch);
    if (!err)
        err = add_text(k);
    if (!err)
        err = find_by_name(k);
    if (!err)
        err = copy_functions(k);
    if (!err)
        err = check_find_disturbing(k);
    if (!err)
        err = check_find_frees(k);
    if (!err)
        err = find_slots(k);
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++)
        if (k->copies[i])
            err =
                k->copies[i]->is_entry ? check_kernel(k, i) : check_function(k, i, k->copies[i], NULL, false);
    for (uint32_t i = 0; i < c->result->nfuncs && !err; i++)
        if (is_called_from_outside(k, i))
            err = check_function(k, i, c->funcs[i], NULL, false);
    if (!err)
        err = pass_add_symbol(c, STR(KCHECK_VARIABLE), sizeof(struct kcheck_module));
    return err ? err : keep_result(k);
}

int check_module(struct checking *k)
{
    struct str text = k->c->m->source.text;
    k->tag = XXH3_64bits(text.ptr, text.len) & ((1u << KCHECK_TAG_BITS) - 1);
    k->foreign = is_foreign(k->c->m);
    bool runtime = check_is_runtime(k);
    for (uint32_t i = 0; i < k->c->result->nfuncs && runtime; i++)
        k->c->result->funcs[i].why = PASS_UNWANTED;
    int err = k->c->result->nfuncs && !runtime ? rewrite(k) : 0;
    map_free(&k->by_sym);
    vec_free(&k->sites);
    vec_free(&k->kernels);
    vec_free(&k->funcs);
    return err;
}

int pass_check(struct pass_context *c)
{
    struct checking k = {.c = c};
    return check_module(&k);
}
