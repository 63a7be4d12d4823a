// SPDX-License-Identifier: MIT
// Classifies the addresses of a program without a launch: enum ranges_form.
#include "flow/ranges_build.h"

// What an instruction is: its form if it is an index, its root if it is an address.
struct shape {
    uint8_t form, reason;
    uint32_t root, opaque;  // opaque: the instruction to blame
    bool mixed;             // made from several roots
};

const char *ranges_form_text(enum ranges_form form)
{
    static const char *const text[] = {
        "affine",          "affine with loop counters", "with quotients, masks, selections",
        "index not known", "pointer not known",         "not understood"};
    return form < RANGES_FORMS ? text[form] : "";
}

static struct shape worse(struct shape a, struct shape b)
{
    return a.form >= b.form ? a : b;
}

static struct shape leaf(const struct proof_insn *i, uint32_t at)
{
    struct shape s = {.root = PROOF_NONE, .opaque = PROOF_NONE};
    if (i->op == PROOF_OPAQUE && i->bits > 16) {
        s.form = i->reason == PROOF_WHY_OPERATOR ? RANGES_UNKNOWN : RANGES_INDEX;
        s.reason = i->reason;
        s.opaque = at;
    } else if (i->op == PROOF_OPAQUE || i->op == PROOF_BETWEEN) {
        s.form = RANGES_MIXED;
    } else if (i->op == PROOF_PARAM || i->op == PROOF_BASE) {
        s.root = i->a;
    }
    return s;
}

// A loop is as understood as the best of its tests.
static struct shape loop_shape(const struct proof *p, const struct proof_insn *i, const struct shape *of)
{
    struct shape best = {
        .form = RANGES_INDEX, .reason = PROOF_WHY_COUNTER, .root = PROOF_NONE, .opaque = PROOF_NONE};
    for (uint32_t k = i->a; k < i->a + i->b; k++) {
        const struct proof_test *t = &p->tests[k];
        struct shape s = worse(of[t->start], worse(of[t->step], of[t->limit]));
        s.root = PROOF_NONE;
        if (s.form < best.form)
            best = s;
    }
    if (best.form < RANGES_LOOP)
        best.form = RANGES_LOOP;
    if (best.form >= RANGES_INDEX)
        best.reason = PROOF_WHY_COUNTER;
    return best;
}

static bool is_strong(const struct proof_root *r)
{
    return r->strong || (r->kind != PROOF_ROOT_PARAM && r->kind != PROOF_ROOT_CHOICE);
}

static struct shape roots(const struct proof *p, struct shape s, const struct shape *a, const struct shape *b)
{
    s.root = a->root == PROOF_NONE ? b->root : a->root;
    s.mixed = a->mixed || b->mixed;
    if (a->root != PROOF_NONE && b->root != PROOF_NONE && a->root != b->root) {
        bool sa = is_strong(&p->roots[a->root]), sb = is_strong(&p->roots[b->root]);
        s.root = sa == sb ? PROOF_NONE : sa ? a->root : b->root;
        s.mixed |= sa == sb;
    }
    return s;
}

static struct shape mixed(struct shape s)
{
    if (s.form < RANGES_MIXED)
        s.form = RANGES_MIXED;
    s.root = PROOF_NONE;
    return s;
}

static bool small_mask(const struct proof *p, uint32_t at)
{
    return p->insns[at].op == PROOF_CONST && p->insns[at].imm >= 0 && p->insns[at].imm < 1 << 24;
}

static struct shape merge_shape(const struct proof *p, const struct proof_insn *i,
                                const struct proof_insn *block, const struct shape *of)
{
    struct shape s = {.form = RANGES_MIXED, .root = PROOF_NONE, .opaque = PROOF_NONE};
    uint32_t root = PROOF_NONE;
    bool differ = false;
    for (uint32_t k = 0; k < block->b; k++) {
        const struct shape *in = &of[p->inputs[i->a + k]];
        s = worse(s, *in);
        differ |= k && in->root != root;
        root = in->root;
    }
    s.root = differ ? PROOF_NONE : root;
    s.mixed |= differ;
    return s;
}

static struct shape shape_of(const struct proof *p, uint32_t at, const struct proof_insn *block,
                             const struct shape *of)
{
    const struct proof_insn *i = &p->insns[at];
    struct shape s;
    switch (i->op) {
    case PROOF_ADD:
    case PROOF_SUB: return roots(p, worse(of[i->a], of[i->b]), &of[i->a], &of[i->b]);
    case PROOF_MUL:
        s = worse(of[i->a], of[i->b]);
        s.root = PROOF_NONE;
        return s;
    case PROOF_SHL:
        s = p->insns[i->b].op == PROOF_EXTEND ? worse(of[i->a], of[i->b]) : mixed(worse(of[i->a], of[i->b]));
        s.root = PROOF_NONE;
        return s;
    case PROOF_EXTEND:
        s = of[i->a];
        if (i->bits <= 16 && s.form >= RANGES_INDEX)
            s = mixed((struct shape){.opaque = PROOF_NONE});
        return s;
    case PROOF_MAPPED:
    case PROOF_CAST: return of[i->a];
    case PROOF_CHOICE:
        if (of[i->a].root != PROOF_NONE)
            return of[i->a];
        return (struct shape){.form = RANGES_MIXED, .root = i->b, .opaque = PROOF_NONE};
    case PROOF_FIELD:
        s = mixed(of[i->a]);
        if (i->b <= 24 && s.form > RANGES_MIXED)
            s = mixed((struct shape){.opaque = PROOF_NONE});
        return s;
    case PROOF_AND:
        if (small_mask(p, i->a) || small_mask(p, i->b))
            return mixed((struct shape){.opaque = PROOF_NONE});
        s = mixed(worse(of[i->a], of[i->b]));
        s.root = of[i->a].root;
        return s;
    case PROOF_DIV:
    case PROOF_REM:
    case PROOF_SHR:
    case PROOF_OR:
    case PROOF_XOR:
    case PROOF_GROWS:
    case PROOF_MIN:
    case PROOF_MAX: return mixed(worse(of[i->a], of[i->b]));
    case PROOF_SHRINKS:
    case PROOF_STAYS:
    case PROOF_ABS: return mixed(of[i->a]);
    case PROOF_SELECT:
        s = mixed(worse(of[i->a], of[i->b]));
        s.root = of[i->a].root == of[i->b].root ? of[i->a].root : PROOF_NONE;
        s.mixed |= of[i->a].root != of[i->b].root;
        return s;
    case PROOF_MERGE: return merge_shape(p, i, block, of);
    case PROOF_LOOP: return loop_shape(p, i, of);
    case PROOF_STEPS:
        s = worse(of[i->a], worse(of[i->b], of[i->c]));
        s.root = of[i->a].root;
        s.mixed = of[i->a].mixed;
        return s;
    default: return leaf(i, at);
    }
}

static struct ranges_access access_of(const struct ranges_build *b, const struct proof *p, uint32_t at,
                                      const struct shape *s)
{
    const struct proof_insn *i = &p->insns[at];
    struct ranges_access a = {.form = s->form, .reason = s->reason, .root = s->root, .insn = at};
    if (p->accesses[i->c].reason) {
        a.form = RANGES_UNKNOWN;
        a.reason = p->accesses[i->c].reason;
        return a;
    }
    if (s->root == PROOF_NONE && s->form < RANGES_INDEX) {
        a.form = RANGES_UNKNOWN;
        a.reason = s->mixed ? PROOF_WHY_ROOTS : PROOF_WHY_NO_ROOT;
    } else if (s->root == PROOF_NONE && s->form == RANGES_INDEX) {
        a.form = RANGES_BASE;
        if (a.reason == PROOF_WHY_LOADED_INDEX)
            a.reason = PROOF_WHY_LOADED_BASE;
    }
    if (a.reason == PROOF_WHY_OPERATOR && s->opaque < b->forms.len)
        a.op = b->forms.items[s->opaque];
    return a;
}

static void count_unknown(struct ranges *r, const struct ptx_form **forms, uint32_t *uses,
                          const struct ptx_form *op)
{
    uint32_t i = 0;
    while (i < r->nunknown && forms[i] != op)
        i++;
    forms[i] = op;
    uses[i]++;
    r->nunknown += i == r->nunknown;
}

void ranges_classify(const struct ranges_build *b, struct ranges *r, struct arena *keep,
                     struct arena *scratch)
{
    const struct proof *p = &r->proof;
    struct shape *of = ARENA_ARRAY(scratch, struct shape, p->head->ninsns + 1);
    struct ranges_access *accesses = ARENA_ARRAY(keep, struct ranges_access, p->head->naccesses + 1);
    const struct ptx_form **forms = ARENA_ARRAY(keep, const struct ptx_form *, p->head->naccesses + 1);
    uint32_t *uses = ARENA_ARRAY(keep, uint32_t, p->head->naccesses + 1);
    const struct proof_insn *block = p->insns;
    for (uint32_t at = 0; at < p->head->ninsns; at++) {
        const struct proof_insn *i = &p->insns[at];
        if (i->op == PROOF_BLOCK)
            block = i;
        of[at] = shape_of(p, at, block, of);
        if (i->op != PROOF_ACCESS)
            continue;
        accesses[i->c] = access_of(b, p, at, &of[i->a]);
        if (at + 1 < p->head->ninsns && i[1].op == PROOF_EXTENT && accesses[i->c].form <= of[i[1].a].form) {
            accesses[i->c].form = of[i[1].a].form;
            accesses[i->c].reason = of[i[1].a].reason;
        }
        r->form_count[accesses[i->c].form]++;
        if (accesses[i->c].op)
            count_unknown(r, forms, uses, accesses[i->c].op);
    }
    r->accesses = accesses;
    r->unknown = forms;
    r->unknown_uses = uses;
}
