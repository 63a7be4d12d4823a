// SPDX-License-Identifier: MIT
#include "cli/explain_kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "flow/access_words.h"
#include "report/report.h"

// --- words
// -------------------------------------------------------------------------------------------------

static struct str keep(struct explain_kernel *k, struct out *o)
{
    struct str s = o->error ? (struct str){"", 0} : arena_str(&k->arena, (struct str){o->buf, o->len});
    out_close(o);
    return s;
}

static void write_words(struct explain_kernel *k, uint32_t i, struct explain_access *a)
{
    struct access_words w;
    struct out address, guard, loops;
    if (!access_words_start(&w, k->ranges, i))
        return;
    out_to_memory(&address);
    out_to_memory(&guard);
    out_to_memory(&loops);
    access_words_address(&w, &address);
    access_words_guards(&w, &guard);
    access_words_loops(&w, &loops);
    a->words = keep(k, &address);
    a->guard = keep(k, &guard);
    a->loops = keep(k, &loops);
}

// --- accesses
// ----------------------------------------------------------------------------------------------

static void place_access(struct explain_kernel *k, struct explain_access *a)
{
    struct place_frame frames[PLACE_FRAMES];
    a->nframes = place_frames(k->m, k->f, a->access->stmt, frames);
    a->frames = ARENA_ARRAY(&k->arena, struct place_frame, a->nframes);
    memcpy(a->frames, frames, a->nframes * sizeof *frames);
    a->ptx_line = place_ptx_line(k->m, k->f, a->access->stmt);
}

static struct judge_buffer buffer_of(const struct explain_kernel *k, uint32_t root)
{
    if (root == PROOF_NONE)
        return (struct judge_buffer){.known = false};
    const struct proof_root *r = &k->ranges->proof.roots[root];
    if (r->kind != PROOF_ROOT_PARAM)
        return judge_variable(r, k->launch->launch.dynamic_shared);
    const struct launch_bind_buffer *b = launch_bind_buffer_at(k->launch, r->at);
    return (struct judge_buffer){.known = b && b->sized, .size = b ? b->size : 0, .into = b ? b->into : 0};
}

// Takes the root of several for which the bound is worst.
static void judge_choice(struct explain_kernel *k, struct explain_access *a, const struct proof_bound *bound)
{
    bool first = true;
    for (uint32_t i = 0; i < k->ranges->proof.head->nroots; i++) {
        if (!proof_root_may_be(&k->ranges->proof, bound->root, i))
            continue;
        struct judge_buffer buffer = buffer_of(k, i);
        struct judge_answer answer = judge_bound(bound, &buffer);
        if (!first && (answer.verdict > a->answer.verdict ||
                       (answer.verdict == a->answer.verdict && answer.needs <= a->answer.needs)))
            continue;
        a->buffer = buffer;
        a->answer = answer;
        first = false;
    }
}

static void judge_access(struct explain_kernel *k, struct explain_access *a, const struct proof_bound *bound)
{
    a->bound = *bound;
    a->root = bound->root;
    a->reason = (enum proof_reason)bound->reason;
    a->buffer = buffer_of(k, bound->root);
    a->answer = judge_bound(bound, &a->buffer);
    if (bound->root != PROOF_NONE && k->ranges->proof.roots[bound->root].kind == PROOF_ROOT_CHOICE)
        judge_choice(k, a, bound);
    a->verdict = a->answer.verdict;
}

static void add_access(struct explain_kernel *k, uint32_t i, const struct proof_bound *bounds)
{
    struct explain_access *a = &k->accesses[i];
    const struct ranges_access *known = &k->ranges->accesses[i];
    *a = (struct explain_access){
        .access = &k->ranges->proof.accesses[i],
        .verdict = known->form <= RANGES_MIXED ? JUDGE_BOUNDED : JUDGE_UNKNOWN,
        .reason = (enum proof_reason)known->reason,
        .op = known->op,
        .root = known->root,
        .shown = true,
    };
    if (bounds)
        judge_access(k, a, &bounds[i]);
    place_access(k, a);
    write_words(k, i, a);
    k->counts[a->verdict]++;
}

// --- order and groups
// --------------------------------------------------------------------------------------

const struct place_frame *explain_kernel_place(const struct explain_access *a)
{
    char file[4096];
    for (unsigned i = 0; i < a->nframes; i++) {
        snprintf(file, sizeof file, STR_FMT, STR_ARG(a->frames[i].file));
        if (a->frames[i].line && !report_is_toolkit_header(file))
            return &a->frames[i];
    }
    return &a->frames[a->nframes - 1];
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int by_importance(const void *x, const void *y)
{
    const struct explain_access *a = x, *b = y;
    int order = compare_u32(a->verdict, b->verdict);
    order = order ? order : compare_u32(explain_kernel_place(a)->line, explain_kernel_place(b)->line);
    return order ? order : compare_u32(a->access->stmt, b->access->stmt);
}

static bool same_place(const struct explain_access *a, const struct explain_access *b)
{
    bool same = a->nframes == b->nframes && (a->frames[0].line || a->ptx_line == b->ptx_line);
    for (unsigned i = 0; same && i < a->nframes; i++)
        same = a->frames[i].line == b->frames[i].line && str_eq(a->frames[i].file, b->frames[i].file);
    return same;
}

static bool alike(const struct explain_access *a, const struct explain_access *b)
{
    return a->verdict == b->verdict && a->root == b->root && a->access->does == b->access->does &&
           a->access->space == b->access->space && same_place(a, b) &&
           (a->verdict == JUDGE_UNKNOWN ? a->reason == b->reason && a->op == b->op
                                        : str_eq(a->guard, b->guard));
}

// Widens the bound of a group by that of another access. Of wrong ones the one that leaves farthest is
// kept.
static void widen(struct explain_access *a, const struct explain_access *b)
{
    if (a->verdict == JUDGE_OUTSIDE || a->verdict == JUDGE_MAYBE) {
        if (b->answer.needs > a->answer.needs || b->answer.before > a->answer.before)
            a->answer = b->answer;
        return;
    }
    if (b->bound.lowest < a->bound.lowest) {
        a->bound.lowest = b->bound.lowest;
        a->answer.first = b->answer.first;
    }
    if (b->bound.highest > a->bound.highest) {
        a->bound.highest = b->bound.highest;
        a->answer.last = b->answer.last;
    }
}

// Accesses that are alike follow each other closely, so that a few steps back find them.
static void group(struct explain_kernel *k)
{
    enum { STEPS = 64 };
    for (uint32_t i = 1; i < k->naccesses; i++) {
        struct explain_access *a = &k->accesses[i];
        for (uint32_t j = i; j-- > 0 && i - j <= STEPS && k->accesses[j].verdict == a->verdict;) {
            struct explain_access *first = &k->accesses[j];
            if (!first->shown || !alike(first, a))
                continue;
            first->alike++;
            a->shown = false;
            widen(first, a);
            break;
        }
    }
}

// --- the kernel
// --------------------------------------------------------------------------------------------

static int evaluate(struct explain_kernel *k, struct proof_bound **bounds)
{
    const struct proof *p = &k->ranges->proof;
    *bounds = ARENA_ARRAY(&k->arena, struct proof_bound, p->head->naccesses + 1);
    void *work = mem_alloc(proof_work_size(p) + 8);
    if (!work || !*bounds) {
        mem_free(work);
        return -ENOMEM;
    }
    int err = proof_eval(p, &k->launch->launch, work, *bounds, NULL);
    mem_free(work);
    return err;
}

static int make(struct explain_kernel *k)
{
    jmp_buf failed;
    k->arena.on_fail = &failed;
    int err = setjmp(failed);
    if (err)
        return err;
    struct proof_bound *bounds = NULL;
    err = k->launch ? evaluate(k, &bounds) : 0;
    if (err)
        return err;
    k->naccesses = k->ranges->proof.head->naccesses;
    k->accesses = ARENA_ARRAY(&k->arena, struct explain_access, k->naccesses + 1);
    for (uint32_t i = 0; i < k->naccesses; i++)
        add_access(k, i, bounds);
    qsort(k->accesses, k->naccesses, sizeof *k->accesses, by_importance);
    group(k);
    return 0;
}

int explain_kernel_make(struct explain_kernel *k, const struct ptx_module *m, const struct ptx_func *f,
                        const struct launch_bind *launch)
{
    *k = (struct explain_kernel){.m = m, .f = f, .launch = launch};
    struct flow flow = {.m = m, .f = f};
    arena_init(&k->arena, 0);
    int err = ranges_build(&flow, &k->ranges);
    flow_drop(&flow);
    return err ? err : make(k);
}

void explain_kernel_free(struct explain_kernel *k)
{
    ranges_free(k->ranges);
    arena_free(&k->arena);
}
