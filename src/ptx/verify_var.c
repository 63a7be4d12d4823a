// SPDX-License-Identifier: MIT
// Checks declarations: sizes, initialisers, functions declared more than once.
#include "ptx/quote.h"
#include "ptx/verify.h"

enum { MOST_LEVELS = 20 };

static void error_at_var(struct verifier *v, const struct ptx_var *var, const char *why)
{
    verify_report(v, DIAG_ERROR, var->pos, 1, "%s", why);
}

// --- initialisers ------------------------------------------------------------------------------------------

// A walk through nested braces. Level 0 is outside all of them and holds one element: the value or the
// braces.
struct walk {
    struct verifier *v;
    const struct ptx_var *var;
    unsigned depth, levels;         // levels: the depth of the values
    uint64_t extents[MOST_LEVELS];  // elements that a level has room for; 0: as many as there are
    uint64_t counts[MOST_LEVELS];
};

static bool type_takes(enum ptx_type_class class, const struct ptx_init *e)
{
    switch (class) {
    case PTX_CLASS_BITS: return e->kind == PTX_INIT_INT || e->kind == PTX_INIT_F32 || e->kind == PTX_INIT_F64;
    case PTX_CLASS_UINT: return e->kind == PTX_INIT_INT || e->kind == PTX_INIT_SYM;
    case PTX_CLASS_SINT: return e->kind == PTX_INIT_INT;
    case PTX_CLASS_FLOAT: return e->kind == PTX_INIT_F32 || e->kind == PTX_INIT_F64;
    default: return false;
    }
}

static const char *check_value(struct walk *w, const struct ptx_init *e)
{
    if (w->depth != w->levels)
        return "a value stands where braces are expected";
    if (!type_takes(ptx_type_class((enum ptx_type)w->var->type), e))
        return "this value does not fit the variable's type";
    if (e->kind == PTX_INIT_SYM && !ptx_find(w->v->m, e->text))
        return "this name is not declared";
    return NULL;
}

// Returns what is wrong with an element, NULL if nothing is.
static const char *check_element(struct walk *w, const struct ptx_init *e)
{
    if (e->kind == PTX_INIT_CLOSE) {
        if (!w->depth)
            return "this brace closes nothing";
        w->depth--;
        return NULL;
    }
    if (w->extents[w->depth] && w->counts[w->depth] == w->extents[w->depth])
        return "there are more values than the variable has room for";
    w->counts[w->depth]++;
    if (e->kind != PTX_INIT_OPEN)
        return check_value(w, e);
    if (w->depth == w->levels)
        return "braces stand where a value is expected";
    w->counts[++w->depth] = 0;
    return NULL;
}

static void check_init(struct verifier *v, const struct ptx_var *var)
{
    struct walk w = {.v = v, .var = var, .extents = {1}};
    for (; w.levels < var->ndims && w.levels + 2 < MOST_LEVELS; w.levels++)
        w.extents[w.levels + 1] = var->dims[w.levels];
    if (var->vec > 1)
        w.extents[++w.levels] = var->vec;
    struct str rest = var->init;
    for (int got = 1; got > 0;) {
        struct ptx_init element;
        const char *at = rest.ptr, *why;
        got = ptx_init_next(&rest, &element);
        if (got > 0)
            why = check_element(&w, &element);
        else
            why = got < 0 ? "the initialiser is malformed here" : w.depth ? "a brace is not closed" : NULL;
        if (why) {
            verify_report(v, DIAG_ERROR, verify_place(v, got < 0 ? rest.ptr : at), 1, "%s", why);
            return;
        }
    }
}

// --- variables ---------------------------------------------------------------------------------------------

static bool needs_size(const struct ptx_var *var)
{
    return var->ndims && !var->dims[0] && var->linkage != PTX_EXTERN && !var->init.len;
}

void verify_var(struct verifier *v, const struct ptx_var *var)
{
    if (needs_size(var))
        error_at_var(v, var, "the size of this array is missing");
    if (!var->init.len)
        return;
    if (var->space != PTX_SPACE_GLOBAL && var->space != PTX_SPACE_CONST)
        error_at_var(v, var, "only .global and .const variables can be initialised");
    else if (ptx_type_class((enum ptx_type)var->type) != PTX_CLASS_OPAQUE)
        check_init(v, var);
}

// --- functions ---------------------------------------------------------------------------------------------

static bool same_params(const struct ptx_var *a, const struct ptx_var *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].space != b[i].space || ptx_var_size(&a[i]) != ptx_var_size(&b[i]))
            return false;
    return true;
}

// Checks that f agrees with the other declarations of its name.
void verify_var_signature(struct verifier *v, const struct ptx_func *f)
{
    const struct ptx_sym *sym = ptx_sym(v->m, f->sym);
    const struct ptx_func *g = sym->kind == PTX_SYM_FUNC ? sym->func : NULL;
    if (!g || g == f)
        return;
    if (f->nrets != g->nrets || f->nparams != g->nparams)
        verify_report(v, DIAG_ERROR, f->pos, 1,
                      QUOTE_FMT " is declared with another number of parameters elsewhere",
                      QUOTE_ARG(sym->name));
    else if (!same_params(f->rets, g->rets, f->nrets) || !same_params(f->params, g->params, f->nparams))
        verify_report(v, DIAG_ERROR, f->pos, 1, QUOTE_FMT " is declared with other parameters elsewhere",
                      QUOTE_ARG(sym->name));
}
