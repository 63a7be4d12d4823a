// SPDX-License-Identifier: MIT
// Any bytes as a proof program, and any launch of it: proof_read accepts only what proof_eval can walk
// inside its memory. The first bytes are the launch; the rest is a program, or, if it begins with '.', PTX
// to make one from.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

static void evaluate(const struct proof *p, const struct proof_launch *l)
{
    struct proof_bound *out = malloc((p->head->naccesses + 1) * sizeof *out);
    struct proof_touched *roots = malloc((p->head->nroots + 1) * sizeof *roots);
    void *work = malloc(proof_work_size(p) + 8);
    if (out && roots && work && !proof_eval(p, l, work, out, roots)) {
        for (uint32_t i = 0; i < p->head->naccesses; i++) {
            require(out[i].verdict <= PROOF_UNREACHABLE && out[i].reason < PROOF_WHY_COUNT);
            require(out[i].root == PROOF_NONE || out[i].root < p->head->nroots);
            require(out[i].verdict != PROOF_BOUNDED || out[i].root != PROOF_NONE);
        }
    }
    free(out);
    free(roots);
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
        if (!proof_read(aligned, len, &p))
            evaluate(&p, &l);
    }
    free(aligned);
    return 0;
}
