// SPDX-License-Identifier: MIT
#include "exec/slots.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

const uint32_t slots_size[SLOTS_CLASSES] = {4, 64, 128, 256, 512};

struct range {
    uint32_t first, last;  // 2 * position in the order, + 1 after the statement
    uint32_t reg;
    uint8_t class;
    bool is_vector;
};

static void extend(struct range *r, uint32_t at)
{
    if (at < r->first)
        r->first = at;
    if (at > r->last)
        r->last = at;
}

// Computes the live ranges. A result may share the slot of an operand that is read for the last time, because
// lanes are computed one by one, and instructions that read other lanes write only after they have read
// everything. A statement gets slots of its own if it is decoded into several instructions (atom.v2), has
// many operands, or accesses elements of a vector, whose lanes lie elsewhere than those of a whole slot.
static void find_ranges(const struct cfg *c, const struct regs *r, const struct live *l,
                        const uint32_t *order, uint32_t norder, struct range *ranges)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < norder; k++) {
        const struct cfg_block *b = &c->blocks[order[k]];
        struct live_list in = live_in(l, order[k]), out = live_out(l, order[k]);
        for (uint32_t n = 0; n < in.n; n++)
            extend(&ranges[in.at[n]], at);
        for (uint32_t s = b->first; s < b->last; s++, at += 2) {
            struct regs_list list = regs_at(r, s);
            const struct ptx_stmt *stmt = &c->func->stmts[s];
            bool alone = list.n <= 4 && (stmt->kind != PTX_INSN || stmt->form->vec == 1);
            for (uint32_t n = 0; n < list.n && alone; n++)
                alone = !ranges[list.at[n].reg].is_vector;
            for (uint32_t n = 0; n < list.n; n++) {
                const struct regs_access *a = &list.at[n];
                if (a->reads)
                    extend(&ranges[a->reg], alone ? at : at + 1);
                if (a->writes)
                    extend(&ranges[a->reg], at + 1);
                if (a->writes && (a->partial || !alone))
                    extend(&ranges[a->reg], at);
            }
        }
        for (uint32_t n = 0; n < out.n; n++)
            extend(&ranges[out.at[n]], at);
    }
}

static int by_first(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

struct held {
    uint32_t last, number;
};
struct pool {
    VEC(struct held) held;  // a min-heap by last
    VEC(uint32_t) unused;
    uint32_t count;
};

static void sift_down(struct held *h, size_t n, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (h[child].last < h[least].last)
                least = child;
        if (least == at)
            return;
        struct held other = h[at];
        h[at] = h[least];
        h[least] = other;
        at = least;
    }
}

static int take(struct pool *p, const struct range *r, uint32_t *number)
{
    while (p->held.len && p->held.items[0].last < r->first) {
        if (vec_push(&p->unused, p->held.items[0].number))
            return -ENOMEM;
        p->held.items[0] = p->held.items[--p->held.len];
        sift_down(p->held.items, p->held.len, 0);
    }
    *number = p->unused.len ? p->unused.items[--p->unused.len] : p->count++;
    if (vec_push(&p->held, (struct held){r->last, *number}))
        return -ENOMEM;
    for (size_t at = p->held.len - 1; at && p->held.items[(at - 1) / 2].last > p->held.items[at].last;) {
        struct held other = p->held.items[at];
        p->held.items[at] = p->held.items[(at - 1) / 2];
        p->held.items[(at - 1) / 2] = other;
        at = (at - 1) / 2;
    }
    return 0;
}

static struct range range_of(const struct cfg *c, const struct regs *r, uint32_t index)
{
    const struct ptx_var *v = ptx_reg_var(c->func, r->reg[index]);
    unsigned bits = ptx_type_bits((enum ptx_type)v->type);
    // Bytes take 16 bits each in vectors too.
    if (v->vec > 1 && bits < 16)
        bits = 16;
    return (struct range){UINT32_MAX, 0, index, (uint8_t)slots_class(bits * v->vec), v->vec > 1};
}

static int assign(struct range *ranges, uint32_t n, uint32_t *slot, uint32_t *size, uint32_t *words)
{
    struct pool pools[SLOTS_CLASSES] = {0};
    int err = 0;
    for (uint32_t k = 0; k < n && !err; k++)
        err = take(&pools[ranges[k].class], &ranges[k], &slot[ranges[k].reg]);
    uint64_t base[SLOTS_CLASSES], at = 64;  // slot 0 means none
    *words = 0;
    for (unsigned k = SLOTS_CLASSES; k-- > 0;) {
        base[k] = at;
        at += (uint64_t)pools[k].count * slots_size[k];
        *words += pools[k].count * (k == SLOTS_PRED ? 0 : k <= SLOTS_32 ? 1 : 1u << (k - SLOTS_32));
    }
    if (!err && at > SLOTS_MOST)
        err = -E2BIG;
    for (uint32_t k = 0; k < n && !err; k++)
        slot[ranges[k].reg] =
            (uint32_t)base[ranges[k].class] + slot[ranges[k].reg] * slots_size[ranges[k].class];
    *size = (uint32_t)(at + 63) & ~63u;
    for (unsigned k = 0; k < SLOTS_CLASSES; k++) {
        vec_free(&pools[k].held);
        vec_free(&pools[k].unused);
    }
    return err;
}

int slots_assign(const struct cfg *c, const struct regs *r, const struct live *l, const uint32_t *order,
                 uint32_t norder, uint32_t *slot, uint32_t *size, uint32_t *words)
{
    struct range *ranges = mem_zalloc(r->n ? r->n : 1, sizeof *ranges);
    if (!ranges)
        return -ENOMEM;
    for (uint32_t k = 0; k < r->n; k++)
        ranges[k] = range_of(c, r, k);
    find_ranges(c, r, l, order, norder, ranges);
    qsort(ranges, r->n, sizeof *ranges, by_first);
    int err = assign(ranges, r->n, slot, size, words);
    mem_free(ranges);
    return err;
}
