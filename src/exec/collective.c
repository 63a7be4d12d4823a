// SPDX-License-Identifier: MIT
#include "exec/collective.h"

#include <string.h>

#include "exec/sched.h"

#define FOR_LANES(mask)                                                                       \
    for (uint32_t left_ = (mask), l = 0; left_ && (l = (uint32_t)__builtin_ctz(left_), true); \
         left_ &= left_ - 1)

static uint32_t *lanes32(const struct exec_warp *w, uint32_t slot)
{
    return (uint32_t *)(w->regs + slot);
}

static uint32_t first32(const struct exec_warp *w, uint32_t slot)
{
    return lanes32(w, slot)[__builtin_ctz(w->mask)];
}

static void set_predicate(const struct exec_warp *w, uint32_t slot, uint32_t lanes, uint32_t value)
{
    uint32_t *p = (uint32_t *)(w->regs + slot);
    *p = (*p & ~lanes) | (value & lanes);
}

static uint32_t same_members(const struct exec_warp *w, const struct exec_insn *i, uint32_t members)
{
    const uint32_t *named = lanes32(w, i->e);
    uint32_t same = 0;
    for (uint32_t l = 0; l < EXEC_LANES; l++)
        same |= (uint32_t)(named[l] == members) << l;
    return same & w->mask;
}

static uint32_t all_members(const struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t all = 0;
    FOR_LANES(w->mask) all |= lanes32(w, i->e)[l];
    return all;
}

// Returns true when all members are here. PTX requires a lane to name a set that it belongs to; this is not
// checked. Lanes may name different sets: if not all members of all sets are here, lanes that name another
// set than the first execute separately, later. If it returns false, *next is what to execute instead.
static bool converge(struct exec_warp *w, const struct exec_insn *i, const struct exec_insn **next)
{
    if (!(i->flags & COLLECTIVE_SYNC))
        return true;
    uint32_t members = first32(w, i->e);
    if (!w->released && !(members & w->alive & ~w->mask) &&
        (i->flags & COLLECTIVE_CONSTANT || !(all_members(w, i) & w->alive & ~w->mask)))
        return true;
    uint32_t others = w->mask & ~same_members(w, i, members);
    if (others) {
        sched_push(w, i, others);
        w->mask &= ~others;
    }
    return sched_converge(w, i, members, next);
}

// Runs fn for each set of members that lanes name: `lanes` name `members`, reduced to those in w->mask.
typedef void set_fn(struct exec_warp *w, const struct exec_insn *i, uint32_t members, uint32_t lanes);

static inline const struct exec_insn *for_sets(struct exec_warp *w, const struct exec_insn *i, set_fn *fn)
{
    const struct exec_insn *next;
    if (!converge(w, i, &next))
        return next;
    if (!(i->flags & COLLECTIVE_SYNC)) {
        fn(w, i, w->mask, w->mask);
        return i + 1;
    }
    for (uint32_t left = w->mask; left;) {
        uint32_t members = lanes32(w, i->e)[__builtin_ctz(left)];
        uint32_t lanes = i->flags & COLLECTIVE_CONSTANT ? w->mask : same_members(w, i, members);
        fn(w, i, members & w->mask, lanes);
        left &= ~lanes;
    }
    return i + 1;
}

// Computes the lane that each lane reads from, and a mask of those that are in range; the others keep their
// own value. The loops have no branches and run over all lanes, so that they vectorise.
#define SOURCES(expression, in_range)                                          \
    for (uint32_t l = 0; l < EXEC_LANES; l++) {                                \
        uint32_t arg = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31; \
        uint32_t least = l & segment, most = least | (clamp & ~segment);       \
        int32_t j = (int32_t)(expression), bound = (int32_t)most;              \
        uint32_t in = in_range;                                                \
        from[l] = in ? (uint32_t)j & 31 : l;                                   \
        valid |= in << l;                                                      \
        (void)least;                                                           \
        (void)arg;                                                             \
    }

static uint32_t sources(enum collective_shuffle kind, const uint32_t *b, const uint32_t *c, uint32_t *from)
{
    uint32_t valid = 0;
    switch (kind) {
    case COLLECTIVE_UP: SOURCES(l - arg, j >= bound) break;
    case COLLECTIVE_DOWN: SOURCES(l + arg, j <= bound) break;
    case COLLECTIVE_BFLY: SOURCES(l ^ arg, j <= bound) break;
    default: SOURCES(least | (arg & ~segment), j <= bound)
    }
    return valid;
}

const struct exec_insn *collective_shfl(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    if (!converge(w, i, &next))
        return next;
    uint32_t *d = lanes32(w, i->d), from[EXEC_LANES], result[EXEC_LANES], mask = w->mask;
    const uint32_t *a = lanes32(w, i->a);
    uint32_t valid = sources((enum collective_shuffle)(i->flags & COLLECTIVE_KIND), lanes32(w, i->b),
                             lanes32(w, i->c), from);
    for (uint32_t l = 0; l < EXEC_LANES; l++)
        result[l] = a[from[l]];
    if (mask == EXEC_ALL)
        memcpy(d, result, sizeof result);
    else
        // A lane that takes no part gives 0, as measured on an H200, whether it waits elsewhere or has ended.
        FOR_LANES(mask) d[l] = mask >> from[l] & 1 ? result[l] : 0;
    set_predicate(w, i->lo, mask, valid);
    return i + 1;
}

static void vote(struct exec_warp *w, const struct exec_insn *i, uint32_t members, uint32_t lanes)
{
    uint32_t p = *(const uint32_t *)(w->regs + i->a) & members;
    switch (i->flags & COLLECTIVE_KIND) {
    case COLLECTIVE_BALLOT: FOR_LANES(lanes) lanes32(w, i->d)[l] = p; break;
    case COLLECTIVE_ALL: set_predicate(w, i->d, lanes, p == members ? EXEC_ALL : 0); break;
    case COLLECTIVE_ANY: set_predicate(w, i->d, lanes, p ? EXEC_ALL : 0); break;
    default: set_predicate(w, i->d, lanes, p == members || !p ? EXEC_ALL : 0);
    }
}

const struct exec_insn *collective_vote(struct exec_warp *w, const struct exec_insn *i)
{
    return for_sets(w, i, vote);
}

static uint64_t value(const struct exec_warp *w, const struct exec_insn *i, uint32_t lane)
{
    return i->flags & COLLECTIVE_WIDE ? ((const uint64_t *)(w->regs + i->a))[lane] : lanes32(w, i->a)[lane];
}

static uint32_t equal(const struct exec_warp *w, const struct exec_insn *i, uint64_t to, uint32_t members)
{
    uint32_t same = 0;
    FOR_LANES(members) same |= (uint32_t)(value(w, i, l) == to) << l;
    return same;
}

static void match_any(struct exec_warp *w, const struct exec_insn *i, uint32_t members, uint32_t lanes)
{
    uint32_t result[EXEC_LANES];
    // One iteration per distinct value.
    for (uint32_t left = lanes; left;) {
        uint64_t to = value(w, i, (uint32_t)__builtin_ctz(left));
        uint32_t same = equal(w, i, to, lanes | members);
        FOR_LANES(same & left) result[l] = same & members;
        left &= ~same;
    }
    FOR_LANES(lanes) lanes32(w, i->d)[l] = result[l];
}

const struct exec_insn *collective_match_any(struct exec_warp *w, const struct exec_insn *i)
{
    return for_sets(w, i, match_any);
}

static void match_all(struct exec_warp *w, const struct exec_insn *i, uint32_t members, uint32_t lanes)
{
    bool all = members && equal(w, i, value(w, i, (uint32_t)__builtin_ctz(members)), members) == members;
    FOR_LANES(lanes) lanes32(w, i->d)[l] = all ? members : 0;
    set_predicate(w, i->lo, lanes, all ? EXEC_ALL : 0);
}

const struct exec_insn *collective_match_all(struct exec_warp *w, const struct exec_insn *i)
{
    return for_sets(w, i, match_all);
}

static uint32_t reduce(enum collective_reduction kind, bool is_signed, uint32_t x, uint32_t y)
{
    bool less = is_signed ? (int32_t)x < (int32_t)y : x < y;
    switch (kind) {
    case COLLECTIVE_ADD: return x + y;
    case COLLECTIVE_MIN: return less ? x : y;
    case COLLECTIVE_MAX: return less ? y : x;
    case COLLECTIVE_AND: return x & y;
    case COLLECTIVE_OR: return x | y;
    default: return x ^ y;
    }
}

static void redux(struct exec_warp *w, const struct exec_insn *i, uint32_t members, uint32_t lanes)
{
    uint32_t sum = 0;
    bool first = true;
    FOR_LANES(members)
    {
        uint32_t x = lanes32(w, i->a)[l];
        sum = first ? x
                    : reduce((enum collective_reduction)(i->flags & COLLECTIVE_KIND),
                             i->flags & COLLECTIVE_SIGNED, sum, x);
        first = false;
    }
    FOR_LANES(lanes) lanes32(w, i->d)[l] = sum;
}

const struct exec_insn *collective_redux(struct exec_warp *w, const struct exec_insn *i)
{
    return for_sets(w, i, redux);
}

static void elect(struct exec_warp *w, const struct exec_insn *i, uint32_t members, uint32_t lanes)
{
    uint32_t chosen = members ? (uint32_t)__builtin_ctz(members) : 0;
    FOR_LANES(lanes) lanes32(w, i->d)[l] = chosen;
    set_predicate(w, i->lo, lanes, (uint32_t)1 << chosen);
}

const struct exec_insn *collective_elect(struct exec_warp *w, const struct exec_insn *i)
{
    return for_sets(w, i, elect);
}

const struct exec_insn *collective_activemask(struct exec_warp *w, const struct exec_insn *i)
{
    FOR_LANES(w->mask) lanes32(w, i->d)[l] = w->mask;
    return i + 1;
}

const struct exec_insn *collective_barrier(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_insn *next;
    return converge(w, i, &next) ? i + 1 : next;
}
