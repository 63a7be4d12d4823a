// SPDX-License-Identifier: MIT
// What is checked, and where: accesses, segments of blocks, ranges, pairs.
#include <errno.h>

#include "flow/grid_words.h"
#include "pass/pass_check_state.h"

enum { MOST_ACCESSES = 64, MOST_STMTS = 512, MOST_DEPTH = 24 };

// --- accesses ----------------------------------------------------------------------------------------------

bool check_is_memory(enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_GENERIC:
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER:
    case PTX_SPACE_LOCAL:
    case PTX_SPACE_CONST:
    case PTX_SPACE_PARAM: return true;
    default: return false;
    }
}

enum pass_check_left check_why_unknown(enum ptx_space space)
{
    bool shared = space == PTX_SPACE_SHARED || space == PTX_SPACE_SHARED_CLUSTER;
    return shared ? PASS_CHECK_SHARED : space == PTX_SPACE_LOCAL ? PASS_CHECK_LOCAL : PASS_CHECK_ELSEWHERE;
}

// Returns whether the access is to be checked; if not, counts why.
static bool wants(struct check_func *k, const struct ptx_mem *mem)
{
    enum ptx_space space = ptx_space_is((enum ptx_space)mem->space);
    uint32_t *left = k->left.left;
    if ((!mem->reads && !mem->writes) || !check_is_memory(space))
        return false;
    // Parameters of calls are accessed by their names only.
    if (space == PTX_SPACE_PARAM && mem->addr->sub != PTX_BASE_REG && !check_is_anywhere(k, mem->addr->id))
        return false;
    bool plain = mem->extent == PTX_EXTENT_PLAIN && mem->bytes && mem->bytes <= UINT16_MAX && !mem->unless;
    if (!plain || mem->addr->kind != PTX_ADDR)
        left[PASS_CHECK_UNSIZED]++;
    return plain && mem->addr->kind == PTX_ADDR;
}

static bool is_plain_op(const struct ptx_stmt *s)
{
    switch ((enum ptx_op_id)s->form->id) {
    case PTX_OP_LD:
    case PTX_OP_LDU:
    case PTX_OP_ST:
    case PTX_OP_ATOM:
    case PTX_OP_RED: return !s->form->odd;
    default: return false;
    }
}

static uint32_t align_of(const struct ptx_mem *mem)
{
    return mem->bytes & (mem->bytes - 1) ? 1 : mem->bytes;
}

bool check_is_shadowed(const struct check_func *k, struct roots_of root, enum ptx_space space)
{
    struct roots_of mapped;
    bool elsewhere = (root.kind == ROOTS_OTHER || root.kind == ROOTS_GENERIC) && space == PTX_SPACE_GENERIC;
    elsewhere |= check_is_mapped(k, root, &mapped);
    bool variable = check_is_variable(root) && roots_space(k->roots->m, root) != PTX_SPACE_GLOBAL;
    return check_is_global(space) && !elsewhere && !variable;
}

bool check_by_shadow(const struct check_func *k, struct roots_of root)
{
    return k->k->shadow.shift && !check_is_variable(root);
}

// Whether the access is inside its variable and aligned whatever the program does.
static bool is_right(const struct check_func *k, const struct check_access *a)
{
    struct check_range range = {0};
    check_alignment(k, a, &range);
    return !range.align && check_is_inside(k, a);
}

// Finds the access of a statement. Returns whether there is one that is checked.
static bool find_access(struct check_func *k, uint32_t stmt, struct check_access *a)
{
    const struct ptx_stmt *s = &k->f->stmts[stmt];
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(k->f, s, mem);
    bool found = false;
    for (unsigned i = 0; i < n; i++) {
        if (!wants(k, &mem[i]))
            continue;
        if (found) {
            k->left.left[PASS_CHECK_UNSIZED]++;
            continue;
        }
        if (k->rest && check_prove_covers(k->proof, stmt, i))
            continue;
        if (grid_words_address(k->f, k->reach, stmt, mem[i].addr))
            continue;
        *a = (struct check_access){
            .stmt = stmt, .row = (uint8_t)i, .mem = mem[i], .align = align_of(&mem[i]), .map = PTX_NONE};
        a->root = roots_address(k->roots, stmt, mem[i].addr);
        enum ptx_space space = ptx_space_is((enum ptx_space)mem[i].space);
        if (check_is_buffer_of_launch(k, a->root))
            continue;
        if (k->k->shadow.shift && !check_is_shadowed(k, a->root, space))
            continue;
        if (check_by_shadow(k, a->root))
            found = true;
        else if (!check_reaches(k, a->root, space))
            k->left.left[check_why_unknown(space)]++;
        else
            found = roots_space(k->roots->m, a->root) == PTX_SPACE_GLOBAL || !is_right(k, a);
    }
    return found;
}

// --- what can be computed where a segment starts -----------------------------------------------------------

static bool is_position(const struct ptx_operand *o)
{
    static const struct str names[] = {{"%tid", 4}, {"%ntid", 5}, {"%ctaid", 6}, {"%nctaid", 7}};
    struct str name = ptx_sreg_name((enum ptx_sreg)o->id);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (str_starts(name, names[i]))
            return true;
    return false;
}

static bool has_local_symbol(const struct check_func *k, const struct ptx_stmt *s)
{
    for (uint32_t i = 0; i < s->nslots; i++) {
        const struct ptx_operand *o = &s->operands[i];
        if ((o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM)) &&
            !check_is_anywhere(k, o->id))
            return true;
    }
    return false;
}

static bool is_param_load(const struct check_func *k, const struct ptx_stmt *s)
{
    const struct ptx_operand *addr = s->form->id == PTX_OP_LD ? ptx_operand(s, 1) : NULL;
    uint64_t offset;
    return addr && addr->kind == PTX_ADDR && addr->sub == PTX_BASE_SYM &&
           roots_param_offset(k->f, addr->id, &offset);
}

// Whether an instruction may be executed once more, with the same result and no other effect.
bool check_is_pure(const struct check_func *k, const struct ptx_stmt *s)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    const struct ptx_form *form = s->form;
    if (s->kind != PTX_INSN || s->guard != PTX_NONE || form->flags || form->odd ||
        form->id == PTX_OP_UNKNOWN || form->op->control != PTX_FALLS || has_local_symbol(k, s))
        return false;
    if (ptx_stmt_mem(k->f, s, mem) && !is_param_load(k, s))
        return false;
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->operands[i].kind == PTX_SREG && !is_position(&s->operands[i]))
            return false;
    return true;
}

bool check_is_later(const struct check_func *k, uint32_t value, uint32_t first)
{
    const struct reach_value *v = &k->reach->value.items[value];
    return v->kind == REACH_DEF && v->place >= first && k->cfg->block_of[v->place] == k->cfg->block_of[first];
}

static bool is_available(struct check_func *k, uint32_t value, uint32_t first, unsigned depth);

static bool can_compute(struct check_func *k, uint32_t value, uint32_t first, unsigned depth)
{
    const struct reach_value *v = &k->reach->value.items[value];
    if (depth == MOST_DEPTH || v->partial || !check_is_pure(k, &k->f->stmts[v->place]))
        return false;
    struct regs_list list = regs_at(k->reach->regs, v->place);
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].reads &&
            !is_available(k, reach_read(k->reach, v->place, list.at[i].reg), first, depth + 1))
            return false;
    return true;
}

static bool is_available(struct check_func *k, uint32_t value, uint32_t first, unsigned depth)
{
    if (value == REACH_NONE)
        return false;
    if (!check_is_later(k, value, first))
        return true;
    if (k->asked[value].first != first) {
        bool can = can_compute(k, value, first, depth);
        k->asked[value] = (struct check_asked){first, can};
    }
    return k->asked[value].can;
}

bool check_is_available(struct check_func *k, uint32_t value, uint32_t first)
{
    return is_available(k, value, first, 0);
}

// Follows sums with constants back to a value that is there when the segment starts, or to one that is no
// such sum.
static void fold(const struct check_func *k, uint32_t first, struct check_range *range)
{
    while (check_is_later(k, range->value, first)) {
        const struct reach_value *v = &k->reach->value.items[range->value];
        const struct ptx_stmt *s = &k->f->stmts[v->place];
        const struct ptx_operand *from = ptx_operand(s, 1), *by = ptx_operand(s, 2);
        bool adds = s->form->id == PTX_OP_ADD && !v->partial && !s->form->flags && from->kind == PTX_REG &&
                    by->kind == PTX_IMM && by->sub == PTX_IMM_INT;
        int64_t low, high;
        if (!adds || __builtin_add_overflow(range->low, by->value, &low) ||
            __builtin_add_overflow(range->high, by->value, &high))
            return;
        range->value = reach_read(k->reach, v->place, regs_index(k->reach->regs, from->id));
        range->reg = from->id;
        range->low = low;
        range->high = high;
    }
}

// Describes the check of an access. Returns false if it cannot be made where the segment starts.
static bool make_range(struct check_func *k, const struct check_access *a, uint32_t first,
                       struct check_range *range)
{
    const struct ptx_stmt *s = &k->f->stmts[a->stmt];
    const struct ptx_operand *addr = a->mem.addr;
    const struct regs *regs = k->reach->regs;
    *range = (struct check_range){.at = first,
                                  .root = a->root,
                                  .value = REACH_NONE,
                                  .reg = PTX_NONE,
                                  .sym = PTX_NONE,
                                  .guard = s->guard,
                                  .guard_value = REACH_NONE,
                                  .guard_negated = s->guard_negated,
                                  .low = addr->value,
                                  .first_width = a->mem.bytes,
                                  .last_width = a->mem.bytes,
                                  .pair = PTX_NONE};
    if (__builtin_add_overflow(addr->value, (int64_t)a->mem.bytes, &range->high))
        range->high = INT64_MAX;
    if (s->guard != PTX_NONE) {
        range->guard_value = reach_read(k->reach, a->stmt, regs_index(regs, s->guard));
        if (!is_available(k, range->guard_value, first, 0))
            return false;
    }
    bool value = a->root.kind == ROOTS_VALUE || a->root.kind == ROOTS_WEB;
    if (value && check_is_later(k, a->root.id, first))
        return false;
    if (addr->sub == PTX_BASE_SYM)
        range->sym = addr->id;
    if (addr->sub != PTX_BASE_REG)
        return true;
    range->reg = addr->id;
    range->value = reach_read(k->reach, a->stmt, regs_index(regs, addr->id));
    if (range->value == REACH_NONE)
        return a->stmt == first;
    if (!k->cfg->uncertain)
        fold(k, first, range);
    return is_available(k, range->value, first, 0);
}

// The same, with what is known of its alignment.
static bool make_aligned_range(struct check_func *k, const struct check_access *a, uint32_t first,
                               struct check_range *range)
{
    bool can = make_range(k, a, first, range);
    // What the shadow says holds for aligned accesses; KCHECK_ACCESS is asked about others where it matters.
    if (!check_by_shadow(k, range->root))
        check_alignment(k, a, range);
    return can;
}

// --- segments ----------------------------------------------------------------------------------------------

static bool is_same_base(const struct check_range *a, const struct check_range *b)
{
    return a->root.kind == b->root.kind && a->root.id == b->root.id && a->value == b->value &&
           a->value != REACH_NONE && a->guard_value == b->guard_value && a->guard_negated == b->guard_negated;
}

// Lets r require the alignment of both. Returns false if one requirement does not contain the other.
static bool merge_alignment(struct check_range *r, const struct check_range *with)
{
    const struct check_range *more = with->align > r->align ? with : r, *less = more == r ? with : r;
    if (less->align && (less->by_host != more->by_host ||
                        (less->aligned_at - more->aligned_at) & (int64_t)(less->align - 1)))
        return false;
    r->aligned_at = more->aligned_at;
    r->by_host = more->by_host;
    r->align = more->align;
    return true;
}

// Returns how many bytes one test with the shadow may reach. With granules of 8 bytes it looks at both ends,
// and the narrowest redzone does not fit between them.
static int64_t shadow_span(const struct check_func *k)
{
    return k->k->shadow.shift == 7 ? 128 : KCHECK_SHADOW_GAP;
}

// Adds a range to the segment, or makes one of two that have the same base. Ranges of addresses without a
// root stay apart, because their buffers may be different ones; the shadow tells them apart by the distance.
// *level: of the range that has it.
static int add_range(struct check_func *k, struct check_segment *g, struct check_range range, uint8_t *level)
{
    bool shadow = check_by_shadow(k, range.root), may = shadow || range.root.kind != ROOTS_OWN;
    for (uint32_t i = g->first_range; may && i < k->ranges.len; i++) {
        struct check_range *r = &k->ranges.items[i];
        int64_t low = range.low < r->low ? range.low : r->low,
                high = range.high > r->high ? range.high : r->high;
        if (!is_same_base(r, &range) || high - low > (shadow ? shadow_span(k) : INT32_MAX) ||
            !merge_alignment(r, &range))
            continue;
        if (range.low < r->low)
            r->first_width = range.first_width;
        if (range.high > r->high)
            r->last_width = range.last_width;
        r->low = low;
        r->high = high;
        *level = r->level;
        return 0;
    }
    *level = range.level;
    return vec_push(&k->ranges, range);
}

bool check_may_copy(const struct check_func *k, const struct ptx_stmt *s)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    if (s->kind == PTX_LOC || s->kind == PTX_LABEL)
        return true;
    if (s->kind != PTX_INSN || s->form->id == PTX_OP_UNKNOWN || s->form->odd || has_local_symbol(k, s) ||
        s->form->op->control != PTX_FALLS || (s->form->flags & (PTX_WARP | PTX_ASYNC)))
        return false;
    if (ptx_stmt_mem(k->f, s, mem))
        return is_plain_op(s);
    return !(s->form->flags & PTX_EFFECT);
}

// Ends the open segment, if there is one; without checks it is dropped.
static int close_segment(struct check_func *k, struct check_segment *g)
{
    g->nranges = (uint32_t)k->ranges.len - g->first_range;
    g->naccesses = (uint32_t)k->accesses.len - g->first_access;
    if (!g->late)
        g->branch = g->first;
    else if (g->branch > g->last)
        g->branch = g->last + 1;
    int err = g->first != PTX_NONE && g->nranges ? vec_push(&k->segments, *g) : 0;
    *g = (struct check_segment){.first = PTX_NONE, .loop = PTX_NONE, .known = PTX_NONE};
    return err;
}

// Returns the least level of a check at the statement, by what its operands are computed from.
static unsigned level_at(const struct check_func *k, const struct check_segment *g, uint32_t stmt)
{
    struct regs_list list = regs_at(k->reach->regs, stmt);
    unsigned level = 0;
    for (uint32_t i = 0; i < list.n; i++) {
        uint32_t v = list.at[i].reads ? reach_read(k->reach, stmt, list.at[i].reg) : REACH_NONE;
        if (v != REACH_NONE && check_is_later(k, v, g->first) && k->levels[v] > level)
            level = k->levels[v];
    }
    return level;
}

// Describes a check of an access that cannot be made where the segment starts. Returns false if it cannot be
// made in the segment.
static bool make_late_range(struct check_func *k, const struct check_segment *g, const struct check_access *a,
                            struct check_range *range)
{
    unsigned level = level_at(k, g, a->stmt);
    bool shadow = k->k->shadow.shift && !(k->k->shadow.roots && a->root.kind == ROOTS_PARAM);
    if (shadow || level >= CHECK_LEVELS)
        return false;
    bool can = false;
    for (uint32_t i = g->first_range; i < k->ranges.len && !can; i++)
        can = k->ranges.items[i].at > g->first && make_aligned_range(k, a, k->ranges.items[i].at, range);
    if (!can)
        can = make_aligned_range(k, a, g->branch == PTX_NONE ? a->stmt : g->branch, range);
    range->level = (uint8_t)(level ? level : 1);
    return can;
}

// Adds an access to the open segment, or opens one with it.
static int add_access(struct check_func *k, struct check_segment *g, struct check_access *a)
{
    struct check_range range;
    int err = k->rest ? 0 : check_site(k, a, &a->site);
    if (k->rest)
        a->site = k->proof->site_at[a->stmt];
    bool room = g->first != PTX_NONE && !k->cfg->uncertain &&
                k->accesses.len - g->first_access < MOST_ACCESSES && a->stmt - g->first < MOST_STMTS;
    bool joins = room && make_aligned_range(k, a, g->first, &range);
    if (room && !joins && !err) {
        joins = make_late_range(k, g, a, &range);
        g->late |= joins;
    }
    if (!err && !joins) {
        err = close_segment(k, g);
        *g = (struct check_segment){.first = a->stmt,
                                    .branch = PTX_NONE,
                                    .loop = PTX_NONE,
                                    .known = PTX_NONE,
                                    .first_range = (uint32_t)k->ranges.len,
                                    .first_access = (uint32_t)k->accesses.len};
        if (!make_aligned_range(k, a, g->first, &range) && check_is_global((enum ptx_space)a->mem.space))
            range.root = (struct roots_of){ROOTS_OWN, 0};
    }
    g->last = a->stmt;
    a->level = CHECK_UNCHECKED;
    if (!err && (!check_is_inside(k, a) || range.align))
        err = add_range(k, g, range, &a->level);
    return err ? err : vec_push(&k->accesses, *a);
}

// Whether a statement of a segment may be executed before the branch to the slow copy, which executes it
// again. level: of its operands.
static bool may_precede(const struct check_func *k, const struct ptx_stmt *s, bool access, unsigned level)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    if (!ptx_stmt_mem(k->f, s, mem))
        return true;
    bool loads = (s->form->id == PTX_OP_LD || s->form->id == PTX_OP_LDU) && !check_waits(s);
    // What is not checked is right for all values that memory may have, but not for what is left in a
    // register in place of one.
    return loads && (access ? s->guard == PTX_NONE : !level);
}

// Notes what a statement does to the open segment; access: the segment's last access is the statement's.
static void note(struct check_func *k, struct check_segment *g, uint32_t stmt, bool access)
{
    const struct ptx_stmt *s = &k->f->stmts[stmt];
    struct regs_list list = regs_at(k->reach->regs, stmt);
    unsigned level = level_at(k, g, stmt);
    bool may = may_precede(k, s, access, level);
    if (access && k->accesses.items[k->accesses.len - 1].level != CHECK_UNCHECKED)
        level = k->accesses.items[k->accesses.len - 1].level + 1u;
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].reads) {
            uint32_t v = reach_read(k->reach, stmt, list.at[i].reg);
            if (v == REACH_NONE || !check_is_later(k, v, g->first))
                k->read_from[list.at[i].reg] = g->first;
        }
    for (uint32_t a = k->reach->regs->access_at[stmt]; a < k->reach->regs->access_at[stmt + 1]; a++)
        if (k->reach->written[a] != REACH_NONE) {
            k->levels[k->reach->written[a]] = (uint8_t)level;
            may &= k->read_from[k->reach->regs->access[a].reg] != g->first;
        }
    if (!may && g->branch == PTX_NONE)
        g->branch = stmt;
}

static int plan_block(struct check_func *k, uint32_t block)
{
    struct check_segment g = {.first = PTX_NONE, .loop = PTX_NONE, .known = PTX_NONE};
    int err = 0;
    for (uint32_t i = k->cfg->blocks[block].first; i < k->cfg->blocks[block].last && !err; i++) {
        struct check_access a;
        const struct ptx_stmt *s = &k->f->stmts[i];
        bool plain = s->kind == PTX_INSN && is_plain_op(s), access = plain && find_access(k, i, &a);
        if (g.first != PTX_NONE && !check_may_copy(k, s))
            err = close_segment(k, &g);
        if (s->kind == PTX_INSN && !plain && !err)
            err = check_plan_whole(k, i);
        if (access && !err)
            err = add_access(k, &g, &a);
        if (g.first != PTX_NONE && s->kind == PTX_INSN && !err)
            note(k, &g, i, access);
    }
    return err ? err : close_segment(k, &g);
}

// --- pairs -------------------------------------------------------------------------------------------------

uint32_t check_map_pairs(struct check_func *k, uint32_t offset)
{
    for (uint32_t i = 0; i < k->pairs.len; i++)
        if (k->pairs.items[i].offset == offset && k->pairs.items[i].span == PASS_CHECK_MAP)
            return i;
    uint32_t first = (uint32_t)k->pairs.len;
    if (k->pairs.len + KCHECK_MAP_PAIRS > k->most_pairs)
        return PTX_NONE;
    for (uint32_t i = 0; i < KCHECK_MAP_PAIRS; i++)
        if (vec_push(&k->pairs,
                     (struct pass_check_pair){.offset = offset, .span = PASS_CHECK_MAP, .align = 1})) {
            k->pairs.len = first;
            return PTX_NONE;
        }
    return first;
}

uint32_t check_pair(struct check_func *k, uint32_t offset, uint32_t span)
{
    for (uint32_t i = 0; i < k->pairs.len; i++)
        if (k->pairs.items[i].offset == offset && k->pairs.items[i].span == span &&
            !k->pairs.items[i].scale && !k->pairs.items[i].at)
            return i;
    struct pass_check_pair pair = {.offset = offset, .span = span, .align = 1};
    if (k->pairs.len == k->most_pairs || vec_push(&k->pairs, pair))
        return PTX_NONE;
    return (uint32_t)k->pairs.len - 1;
}

// Finds the end of the scope that each segment is in. Segments are in the order of statements.
static int find_ends(struct check_func *k)
{
    VEC(size_t) open = {0};  // for each open scope, the number of segments before it
    size_t next = 0;
    int err = 0;
    for (uint32_t i = 0; i < k->f->nstmts && !err; i++) {
        if (next < k->segments.len && k->segments.items[next].first == i)
            k->segments.items[next++].end = PTX_NONE;
        if (k->f->stmts[i].kind == PTX_OPEN)
            err = vec_push(&open, next);
        if (k->f->stmts[i].kind != PTX_CLOSE || !open.len)
            continue;
        for (size_t s = open.items[--open.len]; s < next; s++)
            if (k->segments.items[s].end == PTX_NONE)
                k->segments.items[s].end = i;
    }
    for (size_t s = 0; s < k->segments.len; s++)
        if (k->segments.items[s].end == PTX_NONE)
            k->segments.items[s].end = k->f->nstmts;
    vec_free(&open);
    return err;
}

int check_plan(struct check_func *k)
{
    int err = check_find_declared(k);
    for (uint32_t b = 0; b < k->cfg->nblocks && !err; b++)
        if (k->cfg->graph->rank[b] != GRAPH_NONE)
            err = plan_block(k, b);
    for (uint32_t i = 0; i < k->ranges.len && !err && (!k->k->shadow.shift || k->k->shadow.roots); i++) {
        struct check_range *r = &k->ranges.items[i];
        check_choose_pair(k, r);
        if (r->by_host && r->pair == PTX_NONE)
            r->by_host = false;
        else if (r->by_host && k->pairs.items[r->pair].align < r->align)
            k->pairs.items[r->pair].align = r->align;
    }
    if (!err)
        err = find_ends(k);
    if (!err)
        err = check_find_loops(k);
    return err ? err : check_find_known(k);
}
