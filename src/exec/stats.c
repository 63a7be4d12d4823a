// SPDX-License-Identifier: MIT
#include "exec/stats.h"

#include "exec/control.h"
#include "exec/access.h"

enum { SECTOR = 32 };

// 32-byte sectors of global memory that the lanes touch. Lanes are compared with those before them only: that is
// exact for addresses in order and an upper bound otherwise.
static uint64_t sectors(const struct exec_warp *w, const struct exec_insn *i)
{
    uint64_t n = 0, last = UINT64_MAX;
    unsigned size = access_count(i) << access_log(i);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        uint64_t at = access_address(w, i, (unsigned)__builtin_ctz(left));
        for (uint64_t s = at / SECTOR; s <= (at + size - 1) / SECTOR; s++)
            if (s != last) {
                n++;
                last = s;
            }
    }
    return n;
}

static bool is_access(const struct exec_insn *i)
{
    return i->flags & ACCESS_ATOMIC || i->fn == access_fn(i->flags);
}

static void count(struct exec_stats *s, const struct exec_warp *w, const struct exec_insn *i)
{
    unsigned lanes = (unsigned)__builtin_popcount(w->mask);
    if (i->fn == control_join || i->fn == control_guard)
        return;
    __atomic_fetch_add(&s->warp_insns, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->thread_insns, lanes, __ATOMIC_RELAXED);
    if (i->fn == control_bra_if) {
        uint32_t p = *(const uint32_t *)(w->regs + i->a) & w->mask;
        __atomic_fetch_add(&s->branches, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&s->divergent, p && p != w->mask, __ATOMIC_RELAXED);
    } else if (is_access(i)) {
        enum access_space where = access_space(i);
        __atomic_fetch_add(i->flags & ACCESS_STORES ? &s->stores[where] : &s->loads[where], 1,
                           __ATOMIC_RELAXED);
        if (where == ACCESS_GLOBAL || where == ACCESS_GENERIC)
            __atomic_fetch_add(&s->transactions, sectors(w, i), __ATOMIC_RELAXED);
    }
}

void stats_run(struct exec_warp *w, const struct exec_insn *i)
{
    struct exec_stats *s = w->block->grid->stats;
    while (i) {
        count(s, w, i);
        // What a guard lets through is counted with the lanes that it lets.
        if (i->fn == control_guard) {
            uint32_t p = *(const uint32_t *)(w->regs + i->a), all = w->mask;
            w->mask = all & (i->flags & CONTROL_NEGATED ? ~p : p);
            if (w->mask)
                count(s, w, i + 1);
            w->mask = all;
        }
        i = i->fn(w, i);
    }
}
