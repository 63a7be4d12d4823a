// SPDX-License-Identifier: MIT
#include "flow/judge.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text, *key;
} rows[JUDGE_VERDICTS] = {
    [JUDGE_OUTSIDE] = {"outside", "outside"},
    [JUDGE_MAYBE] = {"maybe outside", "maybe_outside"},
    [JUDGE_UNKNOWN] = {"not bounded", "not_bounded"},
    [JUDGE_BOUNDED] = {"bounded", "bounded"},
    [JUDGE_INSIDE] = {"inside", "inside"},
    [JUDGE_UNREACHABLE] = {"unreachable", "unreachable"},
};

const char *judge_text(enum judge_verdict verdict)
{
    return rows[verdict].text;
}

const char *judge_key(enum judge_verdict verdict)
{
    return rows[verdict].key;
}

static void write_choice(const struct proof *p, uint32_t root, char *text, size_t size)
{
    size_t at = 0;
    *text = 0;
    for (uint32_t i = 0; i < p->head->nroots && at + 5 < size; i++) {
        if (!proof_root_may_be(p, root, i))
            continue;
        at += (size_t)snprintf(text + at, size - at, "%s", at ? " or " : "");
        judge_root(p, i, text + at, size - at);
        at += strlen(text + at);
    }
}

void judge_root(const struct proof *p, uint32_t root, char *text, size_t size)
{
    const struct proof_root *r = &p->roots[root];
    if (r->kind == PROOF_ROOT_CHOICE) {
        write_choice(p, root, text, size);
        return;
    }
    if (r->kind != PROOF_ROOT_PARAM)
        snprintf(text, size, STR_FMT, STR_ARG(proof_root_name(p, r)));
    else if (r->inside)
        snprintf(text, size, "p%u.%u", r->param, r->inside);
    else
        snprintf(text, size, "p%u", r->param);
}

struct judge_buffer judge_variable(const struct proof_root *root, uint32_t dynamic)
{
    bool is_dynamic = root->kind == PROOF_ROOT_SHARED && !root->size;
    return (struct judge_buffer){
        .known =
            root->kind != PROOF_ROOT_PARAM && root->kind != PROOF_ROOT_CHOICE && (root->size || is_dynamic),
        .size = is_dynamic ? dynamic : root->size,
    };
}

struct judge_answer judge_bound(const struct proof_bound *bound, const struct judge_buffer *buffer)
{
    struct judge_answer a = {.verdict = JUDGE_UNKNOWN};
    if (bound->verdict == PROOF_UNREACHABLE)
        a.verdict = JUDGE_UNREACHABLE;
    if (bound->verdict != PROOF_BOUNDED)
        return a;
    a.verdict = JUDGE_BOUNDED;
    a.first = bound->lowest;
    a.last = bound->highest;
    if (!buffer->known || buffer->size > INT64_MAX || buffer->into > INT64_MAX)
        return a;
    if (__builtin_add_overflow(bound->lowest, (int64_t)buffer->into, &a.first) ||
        __builtin_add_overflow(bound->highest, (int64_t)buffer->into, &a.last))
        return a;
    bool low = a.first < 0, high = a.last >= (int64_t)buffer->size;
    if (!low && !high) {
        a.verdict = JUDGE_INSIDE;
        return a;
    }
    a.before = low ? -(uint64_t)a.first : 0;
    a.needs = high ? (uint64_t)a.last + 1 : 0;
    a.verdict = bound->exact && !buffer->soft ? JUDGE_OUTSIDE : JUDGE_MAYBE;
    return a;
}
