// SPDX-License-Identifier: MIT
// Checks that have been made before: of the same address, as of an element that is read, compared and
// written. A range that lies inside one of an earlier segment, which every path to it has executed since
// their address was computed, is not compared again: what is left of the check is whether the earlier one
// failed. In a loop that is copied nothing is left, since control is in the copy then.
#include "pass/pass_check_state.h"

enum {
    MOST_STEPS = 4,      // up the tree of dominators: what was found stays in a predicate as long
    MOST_SEGMENTS = 64,  // of a block, so that the time for a block grows no faster than the block
};

// Whether what has passed the check of a range passes that of r too.
static bool contains(const struct check_range *before, const struct check_range *r)
{
    bool same = before->root.kind == r->root.kind && before->root.id == r->root.id &&
                r->root.kind != ROOTS_OWN && before->value == r->value && r->value != REACH_NONE;
    bool aligned = !r->align || (before->align >= r->align && before->by_host == r->by_host &&
                                 !((before->aligned_at - r->aligned_at) & (int64_t)(r->align - 1)));
    return same && aligned && before->guard == PTX_NONE && before->low <= r->low && before->high >= r->high;
}

static bool contains_any(const struct check_func *k, const struct check_segment *before,
                         const struct check_range *r)
{
    for (uint32_t i = 0; i < before->nranges; i++)
        if (contains(&k->ranges.items[before->first_range + i], r))
            return true;
    return false;
}

// Returns how many ranges of g another segment knows.
static uint32_t count_known(const struct check_func *k, const struct check_segment *before,
                            const struct check_segment *g)
{
    uint32_t n = 0;
    // A copied loop may be left from its slow copy, in which the earlier segment checks nothing.
    if (before->loop != PTX_NONE && before->loop != g->loop)
        return 0;
    for (uint32_t i = 0; i < g->nranges; i++)
        n += contains_any(k, before, &k->ranges.items[g->first_range + i]);
    return n;
}

struct finding {
    uint32_t segment, n;  // which knows so many ranges, the most that were found
};

// Looks at the segments before index `end` in a block, the last one first.
static void find_in(const struct check_func *k, uint32_t block, uint32_t end, const struct check_segment *g,
                    struct finding *best)
{
    uint32_t last = end > MOST_SEGMENTS ? end - MOST_SEGMENTS : 0;
    for (uint32_t i = end; i-- > last && k->segments.items[i].first >= k->cfg->blocks[block].first;) {
        uint32_t n = count_known(k, &k->segments.items[i], g);
        if (n > best->n)
            *best = (struct finding){i, n};
    }
}

static struct finding find(const struct check_func *k, const struct dom *dom, uint32_t segment)
{
    const struct check_segment *g = &k->segments.items[segment];
    struct finding best = {PTX_NONE, 0};
    uint32_t block = k->cfg->block_of[g->first];
    find_in(k, block, segment, g, &best);
    for (unsigned i = 0; i < MOST_STEPS && best.n < g->nranges; i++) {
        block = dom->idom[block];
        if (block == GRAPH_NONE)
            break;
        find_in(k, block, check_first_segment(k, k->cfg->blocks[block].last), g, &best);
    }
    return best;
}

int check_find_known(struct check_func *k)
{
    const struct dom *dom;
    if (k->cfg->uncertain || k->k->shadow.shift || k->k->find != PTX_NONE)
        return 0;
    int err = flow_dominators(&k->flow, &dom);
    for (uint32_t i = 0; i < k->segments.len && !err; i++) {
        struct check_segment *g = &k->segments.items[i];
        struct finding found = g->late ? (struct finding){PTX_NONE, 0} : find(k, dom, i);
        if (!found.n)
            continue;
        const struct check_segment *from = &k->segments.items[found.segment];
        for (uint32_t r = 0; r < g->nranges; r++) {
            struct check_range *range = &k->ranges.items[g->first_range + r];
            range->known = contains_any(k, from, range);
        }
        g->all_known = found.n == g->nranges;
        if (from->loop != PTX_NONE)  // of which this is left in the loop itself: it has not failed
            continue;
        g->known = from->all_known ? from->known : found.segment;
        k->segments.items[g->known].asked = true;
    }
    return err;
}
