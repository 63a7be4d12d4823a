// SPDX-License-Identifier: MIT
// Any bytes as a proof program, and any launch of it: proof_read accepts only what proof_eval can walk
// inside its memory. The first bytes are the launch; the rest is a program, or, if it begins with '.', PTX
// to make one from.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "flow/proof_memo.h"
#include "flow/ranges.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void emit_nothing(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    (void)d;
}

static void check_answers(const struct proof *p, const struct proof_bound *out)
{
    for (uint32_t i = 0; i < p->head->naccesses; i++) {
        require(out[i].verdict <= PROOF_UNREACHABLE && out[i].reason < PROOF_WHY_COUNT);
        require(out[i].root == PROOF_NONE || out[i].root < p->head->nroots);
        require(out[i].verdict != PROOF_BOUNDED || out[i].root != PROOF_NONE);
    }
}

static void evaluate(const struct proof *p, const struct proof_launch *l)
{
    struct proof_bound *out = malloc((p->head->naccesses + 1) * sizeof *out);
    struct proof_touched *roots = malloc((p->head->nroots + 1) * sizeof *roots);
    void *work = malloc(proof_work_size(p) + 8);
    if (out && roots && work && !proof_eval(p, l, work, out, roots))
        check_answers(p, out);
    free(out);
    free(roots);
    free(work);
}

// Answers for launches in turn, whose numbers differ, so that closed forms are made and used.
static void remember(const struct proof *p, const struct proof_launch *l)
{
    void *work = malloc(proof_work_size(p)), *memory = malloc(proof_memo_size(p));
    struct proof_launch other = *l;
    uint32_t params[64];
    memcpy(params, l->params, sizeof params);
    other.params = params;
    if (work && memory) {
        struct proof_memo *memo = proof_memo_init(p, memory, work);
        for (uint32_t i = 0; i < 6; i++) {
            const struct proof_bound *out;
            other.grid[0] = (l->grid[0] + i % 3) & 0x7FFFFFFF;
            params[i] += i;
            if (!proof_memo_eval(memo, &other, work, &out, NULL))
                check_answers(p, out);
        }
    }
    free(memory);
    free(work);
}

static void make_and_evaluate(struct str text, const struct proof_launch *l)
{
    struct diag_sink sink = {.emit = emit_nothing};
    struct ptx_module *m;
    if (ptx_parse("input", text, &sink, &(struct ptx_limits){32 << 20}, &m))
        return;
    for (uint32_t i = 0; i < m->nitems; i++) {
        if (m->items[i].kind != PTX_ITEM_FUNC || !m->items[i].func->has_body)
            continue;
        struct flow w = {.m = m, .f = m->items[i].func};
        struct ranges *r;
        if (!ranges_build(&w, &r)) {
            evaluate(&r->proof, l);
            remember(&r->proof, l);
            ranges_free(r);
        }
        flow_drop(&w);
    }
    ptx_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct proof_launch l = {.block = {1, 1, 1}};
    char params[256] = {0};
    if (len < 64)
        return 0;
    for (unsigned i = 0; i < 3; i++) {
        memcpy(&l.grid[i], bytes + 4 * i, 4);
        l.grid[i] &= 0x7FFFFFFF;
    }
    l.block[0] = 1 + bytes[12] * 4;
    memcpy(params, bytes + 16, 48);
    l.params = params;
    l.params_size = sizeof params;
    bytes += 64;
    len -= 64;
    if (len && bytes[0] == '.') {
        make_and_evaluate((struct str){(const char *)bytes, len}, &l);
        return 0;
    }
    uint64_t *aligned = malloc(len + 8);
    struct proof p;
    if (aligned) {
        memcpy(aligned, bytes, len);
        if (len >= 8)  // a seed must not be refused for its age
            memcpy((char *)aligned + 4, &(uint32_t){PROOF_VERSION}, 4);
        if (!proof_read(aligned, len, &p)) {
            evaluate(&p, &l);
            remember(&p, &l);
        }
    }
    free(aligned);
    return 0;
}
