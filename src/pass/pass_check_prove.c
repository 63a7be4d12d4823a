// SPDX-License-Identifier: MIT
// Which checks of a kernel a proof at the launch may spare.
//
// The proof program of a kernel (flow/proof.h) is kept with it, and the host evaluates it at each launch.
// All variants of a kernel are in one module and are compiled with it, so what the rest variant leaves out
// is chosen here, once, and not for the bounds of each launch: the accesses that the proof bounds for a
// launch of a usual shape. The choice decides about speed alone. A launch whose proof says that all accesses
// are right runs the program's own kernel; one of which it does not even say so of those that the rest
// variant leaves out runs the variant that checks everything.
#include <errno.h>

#include "flow/judge.h"
#include "flow/ranges.h"
#include "pass/pass_check_state.h"

// --- a usual launch ----------------------------------------------------------------------------------------

enum { SMALL_SCALAR = 8, USUAL_SHARED = 16 << 10 };
#define USUAL_POINTER 0x500000000000ull  // of the first parameter ...
#define USUAL_DISTANCE (1ull << 36)      // ... and how far the next one is from it

// The numbers among the parameters of a launch that is tried. The number of elements is often the first one
// or the last one, and another one is where the launch begins.
struct usual {
    uint32_t first, last, others;
};
static const struct usual small = {SMALL_SCALAR, SMALL_SCALAR, SMALL_SCALAR};
static const struct usual launches[] = {{1024, 1024, 1024}, {1 << 20, 1 << 20, 1 << 20},
                                        {0, 1 << 20, 0},    {1 << 20, 0, 0},
                                        {0, 1000, 0},       {1000, 0, 0}};
enum { LAUNCHES = sizeof launches / sizeof *launches };

static bool is_scalar(const struct proof *p, const struct proof_insn *insn)
{
    return insn->op == PROOF_PARAM && (insn->a == PROOF_NONE || !p->roots[insn->a].strong);
}

// Fills the parameters that the proof reads: pointers to buffers far from each other, and numbers.
static void usual_params(const struct proof *p, const struct usual *usual, char *params)
{
    int64_t first = INT64_MAX, last = -1;
    for (uint32_t i = 0; i < p->head->ninsns; i++) {
        const struct proof_insn *insn = &p->insns[i];
        first = is_scalar(p, insn) && insn->imm < first ? insn->imm : first;
        last = is_scalar(p, insn) && insn->imm > last ? insn->imm : last;
    }
    for (uint32_t i = 0; i < p->head->ninsns; i++) {
        const struct proof_insn *insn = &p->insns[i];
        uint64_t value = insn->imm == last ? usual->last : insn->imm == first ? usual->first : usual->others;
        if (insn->op != PROOF_PARAM)
            continue;
        if (!is_scalar(p, insn))
            value = USUAL_POINTER + insn->a * USUAL_DISTANCE;
        memcpy(params + insn->imm, &value, insn->bits / 8);
    }
}

// Returns whether an access that is not bounded for this reason may be bounded for other launches.
static bool may_depend(enum proof_reason reason)
{
    return reason == PROOF_WHY_WRAPS || reason == PROOF_WHY_COUNTER || reason == PROOF_WHY_CARRIED ||
           reason == PROOF_WHY_PRODUCT || reason == PROOF_WHY_BITS;
}

// Evaluates the proof for a usual launch. vague: of proof_eval_vague. Returns 0 or a negative code.
static int try_usual(struct check_proof *p, const struct usual *usual, struct proof_bound *bounds,
                     bool *vague)
{
    const struct proof *proof = &p->ranges->proof;
    struct proof_launch launch = {.grid = {8, 8, 4},
                                  .block = {8, 8, 4},
                                  .dynamic_shared = USUAL_SHARED,
                                  .params_size = proof->head->params};
    char *params = ARENA_ARRAY(&p->arena, char, proof->head->params + 8u);
    void *work = arena_alloc(&p->arena, proof_work_size(proof));
    if (!params || !work)
        return -ENOMEM;
    memset(params, 0, proof->head->params + 8u);
    usual_params(proof, usual, params);
    launch.params = params;
    return proof_eval_vague(proof, &launch, work, bounds, vague);
}

static bool has_variable(const struct proof *p, const struct proof_bound *bound)
{
    const struct proof_root *root = bound->root == PROOF_NONE ? NULL : &p->roots[bound->root];
    return bound->verdict == PROOF_BOUNDED && root && root->kind != PROOF_ROOT_PARAM &&
           root->kind != PROOF_ROOT_CHOICE && root->size;
}

static bool is_in_variable(const struct proof *p, const struct proof_bound *bound)
{
    if (!has_variable(p, bound))
        return false;
    struct judge_buffer variable = judge_variable(&p->roots[bound->root], USUAL_SHARED);
    return judge_bound(bound, &variable).verdict == JUDGE_INSIDE;
}

// Returns whether other launches may bound the access too, inside its variable if that is its root: a bound
// that exceeds a variable of known size will do so in most launches.
static bool is_promising(const struct proof *p, const struct proof_bound *bound)
{
    return has_variable(p, bound) ? is_in_variable(p, bound) : bound->verdict != PROOF_UNKNOWN;
}

// --- what is covered ---------------------------------------------------------------------------------------

uint32_t check_prove_find(const struct check_proof *p, uint32_t stmt, unsigned row)
{
    const struct proof *proof = &p->ranges->proof;
    for (uint32_t i = p->access_at[stmt]; i < proof->head->naccesses; i++) {
        if (proof->accesses[i].stmt != stmt)
            break;
        if (proof->accesses[i].row == row)
            return i;
    }
    return PROOF_NONE;
}

bool check_prove_covers(const struct check_proof *p, uint32_t stmt, unsigned row)
{
    uint32_t access = check_prove_find(p, stmt, row);
    return access != PROOF_NONE && p->may_cover[access];
}

static const struct pass_check_asked unasked = {
    .site = PASS_CHECK_UNASKED, .root = PASS_CHECK_ANY_ROOT, .align = 1};

// Asks the proof for an access. Returns false if the proof cannot say that it is right.
static bool ask(struct check_func *k, struct pass_check_kernel *row, const struct check_access *a)
{
    uint32_t access = check_prove_find(k->proof, a->stmt, a->row);
    struct check_range aligned = {0};
    if (access == PROOF_NONE)
        return false;
    if (k->proof->ranges->proof.accesses[access].reason) {
        k->proof->may_cover[access] = false;
        return false;
    }
    check_alignment(k, a, &aligned);
    if (aligned.align && !aligned.by_host && (1u << k->proof->powers[access]) < aligned.align)
        k->proof->may_cover[access] = false;
    row->asked[access] =
        (struct pass_check_asked){.site = a->site,
                                  .root = a->root.kind == ROOTS_PARAM ? a->root.id : PASS_CHECK_ANY_ROOT,
                                  .align = aligned.align ? aligned.align : 1,
                                  .follows = !aligned.align || aligned.by_host,
                                  .rest = k->proof->may_cover[access]};
    return true;
}

// Asks the proof for some accesses. Those of one instruction that is performed or left out as a whole are
// left out of the rest variant together, or not. Returns false if the proof cannot say that all are right.
static bool ask_all(struct check_func *k, struct pass_check_kernel *row, const struct check_access *list,
                    uint32_t n, bool whole)
{
    bool asked = true, rest = true;
    for (uint32_t i = 0; i < n; i++) {
        bool can = ask(k, row, &list[i]);
        asked &= can;
        rest &= can && k->proof->may_cover[check_prove_find(k->proof, list[i].stmt, list[i].row)];
    }
    for (uint32_t i = 0; i < n && whole && !rest; i++) {
        uint32_t access = check_prove_find(k->proof, list[i].stmt, list[i].row);
        if (access == PROOF_NONE)
            continue;
        k->proof->may_cover[access] = false;
        row->asked[access].rest = 0;
    }
    return asked;
}

// Chooses what is launched if the proof holds. bare: the proof may cover all that is checked.
static enum pass_check_proved choose(struct check_func *k, struct pass_check_kernel *row, bool bare)
{
    uint32_t all = 0, rest = 0;
    for (uint32_t i = 0; i < row->naccesses; i++) {
        all += row->asked[i].site != PASS_CHECK_UNASKED;
        rest += row->asked[i].rest;
    }
    // Some kernels access nothing that is checked.
    if (bare && (rest == all || (!rest && k->proof->depends)))
        return PASS_CHECK_BARE;
    // The driver's compiler copies the heap of malloc into each kernel: a third one is not worth its time.
    if (rest && k->k->find != PTX_NONE)
        return bare ? PASS_CHECK_BARE : PASS_CHECK_FULL;
    return !rest ? PASS_CHECK_FULL : bare ? PASS_CHECK_EITHER : PASS_CHECK_REST;
}

static int keep_proof(struct check_func *k, struct pass_check_kernel *row)
{
    struct arena *arena = &k->k->c->result->arena;
    const struct proof *p = &k->proof->ranges->proof;
    bool bare = !check_calls_checked(k) && !k->frees.len && !check_launches(k);
    char *bytes = arena_alloc(arena, p->head->size);
    row->naccesses = p->head->naccesses;
    row->asked = ARENA_ARRAY(arena, struct pass_check_asked, row->naccesses + 1u);
    if (!bytes || !row->asked)
        return -ENOMEM;
    memcpy(bytes, p->head, p->head->size);
    row->proof = (struct str){bytes, p->head->size};
    for (uint32_t i = 0; i < row->naccesses; i++)
        row->asked[i] = unasked;
    for (uint32_t i = 0; i < k->accesses.len; i++) {
        k->proof->site_at[k->accesses.items[i].stmt] = k->accesses.items[i].site;
        bare &= ask_all(k, row, &k->accesses.items[i], 1, false);
    }
    for (uint32_t i = 0; i < k->wholes.len; i++) {
        const struct check_whole *w = &k->wholes.items[i];
        k->proof->site_at[w->stmt] = k->whole_accesses.items[w->first].site;
        bare &= ask_all(k, row, &k->whole_accesses.items[w->first], w->n, true);
    }
    row->proved = (uint8_t)choose(k, row, bare);
    for (uint32_t i = 0; i < row->naccesses && row->proved == PASS_CHECK_REST; i++)
        if (!row->asked[i].rest)
            row->asked[i] = unasked;
    return 0;
}

// What the launches that were tried say of an access.
enum { UNREACHED, PROMISING, DOUBTFUL };

// Tries a launch, for the accesses that no launch before has reached or found doubtful. Returns 0 or a
// negative code.
static int try_launch(struct check_proof *p, const struct usual *usual, struct proof_bound *bounds,
                      bool *vague, uint8_t *seen)
{
    int err = try_usual(p, usual, bounds, vague);
    for (uint32_t i = 0; i < p->ranges->proof.head->naccesses && !err; i++) {
        bool promising = is_promising(&p->ranges->proof, &bounds[i]) && !vague[i];
        if (seen[i] != UNREACHED || bounds[i].verdict == PROOF_UNREACHABLE)
            continue;
        seen[i] = promising ? PROMISING : DOUBTFUL;
        p->powers[i] = bounds[i].power;
    }
    return err;
}

static bool any_is(const struct check_proof *p, const uint8_t *seen, uint8_t what)
{
    return memchr(seen, what, p->ranges->proof.head->naccesses);
}

// Chooses what a proof may cover. What no launch has reached is covered if all else is: then there need not
// be a rest variant.
static int try_launches(struct check_proof *p, struct proof_bound *bounds)
{
    uint32_t n = p->ranges->proof.head->naccesses;
    bool *vague = ARENA_ARRAY(&p->arena, bool, n + 1u);
    uint8_t *seen = ARENA_ARRAY(&p->arena, uint8_t, n + 1u);
    if (!vague || !seen)
        return -ENOMEM;
    memset(seen, UNREACHED, n + 1u);
    memset(p->powers, 0, n + 1u);
    int err = try_launch(p, &launches[0], bounds, vague, seen);
    p->depends = !err;
    for (uint32_t i = 0; i < n; i++)
        p->depends &= bounds[i].verdict != PROOF_UNKNOWN || may_depend((enum proof_reason)bounds[i].reason);
    for (unsigned i = 1; i < LAUNCHES && !err && any_is(p, seen, UNREACHED); i++)
        err = try_launch(p, &launches[i], bounds, vague, seen);
    uint8_t least = any_is(p, seen, DOUBTFUL) ? PROMISING : UNREACHED;
    for (uint32_t i = 0; i < n; i++)
        p->may_cover[i] = !err && seen[i] != DOUBTFUL && seen[i] >= least;
    // A number may be the length of what is in a variable, as of a pattern in constant memory.
    if (!err && !try_usual(p, &small, bounds, vague))
        for (uint32_t i = 0; i < n; i++)
            p->may_cover[i] |= is_in_variable(&p->ranges->proof, &bounds[i]);
    return err == -ENOMEM ? err : 0;
}

int check_prove_look(struct flow *flow, struct check_proof *p)
{
    uint32_t nstmts = flow->f->nstmts;
    int err = ranges_build(flow, &p->ranges);
    if (err)
        return err;
    uint32_t n = p->ranges->proof.head->naccesses;
    struct proof_bound *bounds = ARENA_ARRAY(&p->arena, struct proof_bound, n + 1u);
    p->may_cover = ARENA_ARRAY(&p->arena, bool, n + 1u);
    p->powers = ARENA_ARRAY(&p->arena, uint8_t, n + 1u);
    p->site_at = ARENA_ARRAY(&p->arena, uint32_t, nstmts + 1u);
    p->access_at = ARENA_ARRAY(&p->arena, uint32_t, nstmts + 1u);
    if (!bounds || !p->may_cover || !p->powers || !p->site_at || !p->access_at)
        return -ENOMEM;
    memset(p->site_at, 0xFF, (nstmts + 1u) * sizeof *p->site_at);
    memset(p->access_at, 0xFF, (nstmts + 1u) * sizeof *p->access_at);
    for (uint32_t i = n; i > 0; i--)
        p->access_at[p->ranges->proof.accesses[i - 1].stmt] = i - 1;
    return try_launches(p, bounds);
}

int check_prove(struct check_func *k, struct pass_check_kernel *row)
{
    int err = check_prove_look(&k->flow, k->proof);
    return err == -E2BIG ? 0 : err ? err : keep_proof(k, row);
}

void check_prove_free(struct check_proof *p)
{
    ranges_free(p->ranges);
    arena_free(&p->arena);
}
