// SPDX-License-Identifier: MIT
#include "exec/meet.h"

#include "exec/sched.h"

#define FOR_LANES(mask) \
    for (uint32_t left_ = (mask), l = 0; left_ && (l = (uint32_t)__builtin_ctz(left_), true); left_ &= left_ - 1)

static uint32_t *lanes32(const struct exec_warp *w, uint32_t slot)
{
    return (uint32_t *)(w->regs + slot);
}

static uint32_t first32(const struct exec_warp *w, uint32_t slot)
{
    return lanes32(w, slot)[__builtin_ctz(w->mask)];
}

static void set_predicate(const struct exec_warp *w, uint32_t slot, uint32_t value)
{
    uint32_t *p = (uint32_t *)(w->regs + slot);
    *p = (*p & ~w->mask) | (value & w->mask);
}

// True when all members are here. A lane may only name a set that it is in; we do not insist.
static bool meet(struct exec_warp *w, const struct exec_insn *i, const struct exec_insn **next)
{
    if (!(i->flags & MEET_SYNC))
        return true;
    uint32_t members = first32(w, i->e);
    if (!w->released && !(members & w->alive & ~w->mask))
        return true;
    return sched_meet(w, i, members, next);
}

// The lane that `lane` reads from; -1: none in range, it keeps its own value.
static int source(enum meet_shuffle kind, int lane, uint32_t b, uint32_t c)
{
    int arg = (int)(b & 31), clamp = (int)(c & 31), segment = (int)(c >> 8 & 31);
    int most = (lane & segment) | (clamp & ~segment), least = lane & segment, j;
    switch (kind) {
    case MEET_UP:
        j = lane - arg;
        return j >= most ? j : -1;
    case MEET_DOWN:
        j = lane + arg;
        break;
    case MEET_BFLY:
        j = lane ^ arg;
        break;
    default:
        j = least | (arg & ~segment);
    }
    return j <= most ? j : -1;
}

const struct exec_insn *meet_shfl(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!meet(w, i, &next))
        return next;
    uint32_t *d = lanes32(w, i->d), result[EXEC_LANES], valid = 0;
    const uint32_t *a = lanes32(w, i->a), *b = lanes32(w, i->b), *c = lanes32(w, i->c);
    FOR_LANES(w->mask) {
        int from = source((enum meet_shuffle)(i->flags & MEET_KIND), (int)l, b[l], c[l]);
        valid |= (uint32_t)(from >= 0) << l;
        result[l] = a[from >= 0 ? (uint32_t)from : l];
    }
    FOR_LANES(w->mask) d[l] = result[l];
    set_predicate(w, i->lo, valid);
    return i + 1;
}

const struct exec_insn *meet_vote(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!meet(w, i, &next))
        return next;
    uint32_t members = i->flags & MEET_SYNC ? first32(w, i->e) & w->mask : w->mask;
    uint32_t p = *(const uint32_t *)(w->regs + i->a) & members;
    switch (i->flags & MEET_KIND) {
    case MEET_BALLOT:
        FOR_LANES(w->mask) lanes32(w, i->d)[l] = p;
        break;
    case MEET_ALL:
        set_predicate(w, i->d, p == members ? EXEC_ALL : 0);
        break;
    case MEET_ANY:
        set_predicate(w, i->d, p ? EXEC_ALL : 0);
        break;
    default:
        set_predicate(w, i->d, p == members || !p ? EXEC_ALL : 0);
    }
    return i + 1;
}

static uint64_t value(const struct exec_warp *w, const struct exec_insn *i, uint32_t lane)
{
    return i->flags & MEET_WIDE ? ((const uint64_t *)(w->regs + i->a))[lane] : lanes32(w, i->a)[lane];
}

static uint32_t equal(const struct exec_warp *w, const struct exec_insn *i, uint64_t to, uint32_t members)
{
    uint32_t same = 0;
    FOR_LANES(members) same |= (uint32_t)(value(w, i, l) == to) << l;
    return same;
}

const struct exec_insn *meet_match_any(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!meet(w, i, &next))
        return next;
    uint32_t members = first32(w, i->e) & w->mask, result[EXEC_LANES];
    FOR_LANES(w->mask) result[l] = equal(w, i, value(w, i, l), members);
    FOR_LANES(w->mask) lanes32(w, i->d)[l] = result[l];
    return i + 1;
}

const struct exec_insn *meet_match_all(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!meet(w, i, &next))
        return next;
    uint32_t members = first32(w, i->e) & w->mask;
    bool all = members && equal(w, i, value(w, i, (uint32_t)__builtin_ctz(members)), members) == members;
    FOR_LANES(w->mask) lanes32(w, i->d)[l] = all ? members : 0;
    set_predicate(w, i->lo, all ? EXEC_ALL : 0);
    return i + 1;
}

static uint32_t reduce(enum meet_reduction kind, bool is_signed, uint32_t x, uint32_t y)
{
    bool less = is_signed ? (int32_t)x < (int32_t)y : x < y;
    switch (kind) {
    case MEET_ADD:
        return x + y;
    case MEET_MIN:
        return less ? x : y;
    case MEET_MAX:
        return less ? y : x;
    case MEET_AND:
        return x & y;
    case MEET_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

const struct exec_insn *meet_redux(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!meet(w, i, &next))
        return next;
    uint32_t members = first32(w, i->e) & w->mask, sum = 0;
    bool first = true;
    FOR_LANES(members) {
        uint32_t x = lanes32(w, i->a)[l];
        sum = first ? x : reduce((enum meet_reduction)(i->flags & MEET_KIND), i->flags & MEET_SIGNED, sum, x);
        first = false;
    }
    FOR_LANES(w->mask) lanes32(w, i->d)[l] = sum;
    return i + 1;
}

const struct exec_insn *meet_elect(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!meet(w, i, &next))
        return next;
    uint32_t members = first32(w, i->e) & w->mask, chosen = members ? (uint32_t)__builtin_ctz(members) : 0;
    FOR_LANES(w->mask) lanes32(w, i->d)[l] = chosen;
    set_predicate(w, i->lo, (uint32_t)1 << chosen);
    return i + 1;
}

const struct exec_insn *meet_activemask(struct exec_warp *w, const struct exec_insn *i)
{
    FOR_LANES(w->mask) lanes32(w, i->d)[l] = w->mask;
    return i + 1;
}

const struct exec_insn *meet_barrier(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    return meet(w, i, &next) ? i + 1 : next;
}
