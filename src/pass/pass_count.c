// SPDX-License-Identifier: MIT
// The counting pass: see pass_count.h for what it counts and where.
//
// A run is a sequence of statements that are executed together: it ends at labels and wherever control may
// leave. A run's accesses are known when it is read, so it costs one addition per counter that it needs.
// Counters are registers of 64 bits; only those that a function needs exist, and where all accesses of a kind
// have the same width, their bytes are computed from their number at the end.
//
// At the end, lanes that leave together add up by redux, which has 32 bits: a counter is split in two parts
// of 27 bits. No thread lives long enough to count to 2^54. Older targets have no redux: there each lane adds
// to the table itself. A launch is counted by its first thread where that enters the kernel, so that each run
// of a graph counts, and launches by a kernel, which the host does not see, and a kernel that never ends.
//
// Each exit stays where it was. At a common exit lanes would wait for one another, and a thread that returns
// early must not wait for those that wait at a barrier.
#include "pass/pass_count.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pass/pass.h"

const char *const pass_count_spaces[PASS_COUNT_SPACES] = {
    [PASS_COUNT_GENERIC] = "generic",
    [PASS_COUNT_GLOBAL] = "global",
    [PASS_COUNT_SHARED] = "shared",
    [PASS_COUNT_LOCAL] = "local",
};

// Counters of a line: threads, then for each space loads, stores, bytes loaded, bytes stored, then launches.
// A kind is the loads or the stores of a space.
enum { THREADS, FIRST, KINDS = 2 * PASS_COUNT_SPACES, LAUNCHES = FIRST + 2 * KINDS };
_Static_assert(LAUNCHES + 1 <= PASS_COUNT_LINE, "a line has room for all");

static unsigned number_counter(unsigned kind)
{
    return FIRST + kind / 2 * 4 + kind % 2;
}

static unsigned bytes_counter(unsigned kind)
{
    return number_counter(kind) + 2;
}

void pass_count_add(const uint64_t *table, uint32_t func, struct pass_count_sums *sums)
{
    const uint64_t *line = table + (size_t)func * PASS_COUNT_ROW;
    for (unsigned i = 0; i < PASS_COUNT_SLOTS; i++, line += PASS_COUNT_LINE) {
        sums->launches += line[LAUNCHES];
        sums->threads += line[THREADS];
        for (unsigned s = 0; s < PASS_COUNT_SPACES; s++) {
            sums->space[s].loads += line[number_counter(2 * s)];
            sums->space[s].stores += line[number_counter(2 * s + 1)];
            sums->space[s].loaded += line[bytes_counter(2 * s)];
            sums->space[s].stored += line[bytes_counter(2 * s + 1)];
        }
    }
}

// --- what is counted ---------------------------------------------------------------------------------------

struct amount {
    uint64_t number, bytes;
    const struct ptx_operand *more;  // a register that holds additional bytes; NULL if none
};

struct counting {
    struct pass_context *c;
    struct ptx_func *f;
    struct pass_func *about;
    uint32_t table, index;
    bool redux;
    struct {
        bool used, varies;  // varies: not all are `width` bytes wide
        uint32_t width;
        uint32_t number, bytes;  // registers
        struct amount run;       // of the current run, not added yet
    } kinds[KINDS];
    // Registers for the exit code.
    uint32_t mask, part, high, leader, line, sum;
};

static int counted_space(uint8_t space)
{
    switch (ptx_space_is((enum ptx_space)space)) {
    case PTX_SPACE_GENERIC: return PASS_COUNT_GENERIC;
    case PTX_SPACE_GLOBAL: return PASS_COUNT_GLOBAL;
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER: return PASS_COUNT_SHARED;
    case PTX_SPACE_LOCAL: return PASS_COUNT_LOCAL;
    default: return -1;
    }
}

static void add_access(const struct ptx_mem *mem, struct amount *to)
{
    to->number++;
    to->bytes += mem->share;
    if (!mem->share)
        to->more = mem->extent == PTX_EXTENT_COUNTED ? mem->size : NULL;
}

// Computes what one execution of s adds to each kind. Returns false if s makes no counted access.
static bool amounts_of(const struct ptx_func *f, const struct ptx_stmt *s, struct amount amounts[KINDS])
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(f, s, mem);
    bool any = false;
    memset(amounts, 0, KINDS * sizeof *amounts);
    for (unsigned i = 0; i < n; i++) {
        int space = counted_space(mem[i].space);
        if (space < 0 || mem[i].extent == PTX_EXTENT_DESCRIPTOR)
            continue;
        any = true;
        if (mem[i].reads)
            add_access(&mem[i], &amounts[2 * space]);
        if (mem[i].writes)
            add_access(&mem[i], &amounts[2 * space + 1]);
    }
    return any;
}

static void scan_stmt(struct counting *k, const struct ptx_stmt *s)
{
    struct amount amounts[KINDS];
    if (!amounts_of(k->f, s, amounts))
        return;
    for (unsigned i = 0; i < KINDS; i++) {
        struct amount a = amounts[i];
        if (!a.number)
            continue;
        uint32_t width = (uint32_t)(a.bytes / a.number);
        if (k->kinds[i].used && k->kinds[i].width != width)
            k->kinds[i].varies = true;
        if (width * a.number != a.bytes || a.more)
            k->kinds[i].varies = true;
        k->kinds[i].used = true;
        k->kinds[i].width = width;
        k->about->unsized += !a.bytes && !a.more;
    }
}

// --- adding ------------------------------------------------------------------------------------------------

static void add_run(struct counting *k, uint32_t before)
{
    static const char text[] = "add.u64 %0, %0, %1;";
    for (unsigned i = 0; i < KINDS; i++) {
        struct amount a = k->kinds[i].run;
        if (!a.number)
            continue;
        edit_before(k->c->edit, before, text, edit_reg(k->kinds[i].number), edit_imm((int64_t)a.number));
        if (k->kinds[i].varies && a.bytes)
            edit_before(k->c->edit, before, text, edit_reg(k->kinds[i].bytes), edit_imm((int64_t)a.bytes));
        k->kinds[i].run = (struct amount){0};
    }
}

// Adds the amounts under the access's guard, before the access, because it may write its guard.
static void add_guarded(struct counting *k, uint32_t at, const struct amount amounts[KINDS])
{
    static const char text[] = "@%0 add.u64 %1, %1, %2;";
    struct ptx_operand guard = edit_guard(&k->f->stmts[at]);
    for (unsigned i = 0; i < KINDS; i++) {
        struct amount a = amounts[i];
        if (!a.number)
            continue;
        edit_before(k->c->edit, at, text, guard, edit_reg(k->kinds[i].number), edit_imm((int64_t)a.number));
        if (k->kinds[i].varies && a.bytes)
            edit_before(k->c->edit, at, text, guard, edit_reg(k->kinds[i].bytes), edit_imm((int64_t)a.bytes));
    }
}

// Adds bytes that a register holds, at the access: by the end of the run the register may have another value.
static void add_register_bytes(struct counting *k, uint32_t at, const struct amount amounts[KINDS])
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    for (unsigned i = 0; i < KINDS; i++) {
        if (!amounts[i].more)
            continue;
        struct ptx_operand more = *amounts[i].more, sum = edit_reg(k->sum),
                           bytes = edit_reg(k->kinds[i].bytes);
        bool wide = ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, more.id)->type) == 64;
        edit_before(k->c->edit, at, wide ? "mov.b64 %0, %1;" : "cvt.u64.u32 %0, %1;", sum, more);
        if (s->guard == PTX_NONE)
            edit_before(k->c->edit, at, "add.u64 %0, %0, %1;", bytes, sum);
        else
            edit_before(k->c->edit, at, "@%0 add.u64 %1, %1, %2;", edit_guard(s), bytes, sum);
    }
}

static bool ends_run(const struct ptx_stmt *s)
{
    if (s->kind == PTX_INSN)
        return s->form->id == PTX_OP_UNKNOWN ||
               (s->form->op->control != PTX_FALLS && s->form->op->control != PTX_BARRIER);
    return s->kind == PTX_LABEL || s->kind == PTX_VERBATIM;
}

// --- launches ----------------------------------------------------------------------------------------------

// Entry code: the first thread of the first block adds to the counter [%3]. Launches are few: one slot is
// enough.
static const char enter[] = "mov.u32 %0, %tid.x;\n"
                            "mov.u32 %1, %tid.y;\n"
                            "or.b32 %0, %0, %1;\n"
                            "mov.u32 %1, %tid.z;\n"
                            "or.b32 %0, %0, %1;\n"
                            "mov.u32 %1, %ctaid.x;\n"
                            "or.b32 %0, %0, %1;\n"
                            "mov.u32 %1, %ctaid.y;\n"
                            "or.b32 %0, %0, %1;\n"
                            "mov.u32 %1, %ctaid.z;\n"
                            "or.b32 %0, %0, %1;\n"
                            "setp.eq.u32 %2, %0, 0;\n"
                            "@%2 red.global.add.u64 [%3], 1;\n";

static void add_launch(struct counting *k)
{
    int64_t at = 8 * ((int64_t)k->index * PASS_COUNT_ROW + LAUNCHES);
    edit_entry(k->c->edit, enter, edit_reg(k->part), edit_reg(k->high), edit_reg(k->leader),
               edit_sym_at(k->table, at));
}

// --- leaving -----------------------------------------------------------------------------------------------

// Exit code: adds to one counter of a line, [%0]. Of the lanes that leave together, %1 is the mask and %2
// whether this is the first. %3 is the line of the function and multiprocessor; %4 %5 %6 are scratch.
static const char begin_redux[] = "activemask.b32 %1;\n"
                                  "neg.s32 %4, %1;\n"
                                  "and.b32 %4, %4, %1;\n"
                                  "mov.u32 %5, %lanemask_eq;\n"
                                  "setp.eq.u32 %2, %4, %5;\n"
                                  "mov.u32 %4, %smid;\n"
                                  "and.b32 %4, %4, %7;\n"
                                  "mov.u64 %3, %8;\n"
                                  "mad.wide.u32 %3, %4, %9, %3;\n"
                                  "popc.b32 %4, %1;\n"
                                  "cvt.u64.u32 %6, %4;\n"
                                  "@%2 red.global.add.u64 [%0], %6;\n";
static const char number_redux[] = "cvt.u32.u64 %4, %7;\n"
                                   "and.b32 %4, %4, 0x7FFFFFF;\n"
                                   "redux.sync.add.u32 %4, %4, %1;\n"
                                   "shr.u64 %6, %7, 27;\n"
                                   "cvt.u32.u64 %5, %6;\n"
                                   "redux.sync.add.u32 %5, %5, %1;\n"
                                   "cvt.u64.u32 %6, %4;\n"
                                   "mad.wide.u32 %6, %5, 0x8000000, %6;\n"
                                   "@%2 red.global.add.u64 [%0], %6;\n";
// Adds the bytes right after their number, which is in %6.
static const char times_redux[] = "mul.lo.u64 %6, %6, %7;\n"
                                  "@%2 red.global.add.u64 [%0], %6;\n";
// Without redux, each lane adds for itself.
static const char begin_plain[] = "mov.u32 %4, %smid;\n"
                                  "and.b32 %4, %4, %7;\n"
                                  "mov.u64 %3, %8;\n"
                                  "mad.wide.u32 %3, %4, %9, %3;\n"
                                  "red.global.add.u64 [%0], 1;\n";
static const char number_plain[] = "red.global.add.u64 [%0], %7;\n";
static const char times_plain[] = "mul.lo.u64 %6, %8, %7;\n"
                                  "red.global.add.u64 [%0], %6;\n";

static void leave(struct counting *k, uint32_t at, const char *text, unsigned counter, struct ptx_operand a,
                  struct ptx_operand b, struct ptx_operand c)
{
    edit_before(k->c->edit, at, text, edit_addr(k->line, 8 * (int64_t)counter), edit_reg(k->mask),
                edit_reg(k->leader), edit_reg(k->line), edit_reg(k->part), edit_reg(k->high),
                edit_reg(k->sum), a, b, c);
}

static void add_to_table(struct counting *k, uint32_t at)
{
    struct ptx_operand none = edit_imm(0);
    int64_t row = (int64_t)k->index * PASS_COUNT_ROW * 8;
    leave(k, at, k->redux ? begin_redux : begin_plain, THREADS, edit_imm(PASS_COUNT_SLOTS - 1),
          edit_sym_at(k->table, row), edit_imm(8 * PASS_COUNT_LINE));
    for (unsigned i = 0; i < KINDS; i++) {
        if (!k->kinds[i].used)
            continue;
        const char *text = k->redux ? number_redux : number_plain;
        leave(k, at, text, number_counter(i), edit_reg(k->kinds[i].number), none, none);
        if (k->kinds[i].varies)
            leave(k, at, text, bytes_counter(i), edit_reg(k->kinds[i].bytes), none, none);
        else if (k->kinds[i].width)
            leave(k, at, k->redux ? times_redux : times_plain, bytes_counter(i), edit_imm(k->kinds[i].width),
                  edit_reg(k->kinds[i].number), none);
    }
}

static void add_at_exit(struct counting *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    if (s->guard == PTX_NONE) {
        add_to_table(k, at);
        return;
    }
    uint32_t stays = edit_new_label(k->c->edit);
    edit_before(k->c->edit, at, "@!%0 bra %1;", edit_guard(s), edit_sym(stays));
    add_to_table(k, at);
    edit_place_label(k->c->edit, at, stays);
}

// --- a function --------------------------------------------------------------------------------------------

static void new_registers(struct counting *k)
{
    struct edit *e = k->c->edit;
    if (k->redux)
        k->mask = edit_new_reg(e, PTX_B32);
    if (k->redux || k->about->is_entry) {
        k->high = edit_new_reg(e, PTX_U32);
        k->leader = edit_new_reg(e, PTX_PRED);
    }
    k->part = edit_new_reg(e, PTX_U32);
    k->line = edit_new_reg(e, PTX_U64);
    k->sum = edit_new_reg(e, PTX_U64);
    for (unsigned i = 0; i < KINDS; i++) {
        if (!k->kinds[i].used)
            continue;
        k->kinds[i].number = edit_new_reg(e, PTX_U64);
        edit_entry(e, "mov.u64 %0, 0;", edit_reg(k->kinds[i].number));
        if (!k->kinds[i].varies)
            continue;
        k->kinds[i].bytes = edit_new_reg(e, PTX_U64);
        edit_entry(e, "mov.u64 %0, 0;", edit_reg(k->kinds[i].bytes));
    }
}

static void count_stmt(struct counting *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    struct amount amounts[KINDS];
    if (ends_run(s))
        add_run(k, at);
    if (edit_is_exit(s)) {
        add_at_exit(k, at);
    } else if (s->kind == PTX_INSN && amounts_of(k->f, s, amounts)) {
        add_register_bytes(k, at, amounts);
        if (s->guard != PTX_NONE)
            add_guarded(k, at, amounts);
        else
            for (unsigned i = 0; i < KINDS; i++) {
                k->kinds[i].run.number += amounts[i].number;
                k->kinds[i].run.bytes += amounts[i].bytes;
            }
    }
}

static void count_func(struct counting *k)
{
    const struct ptx_func *f = k->f;
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_INSN)
            scan_stmt(k, &f->stmts[i]);
    edit_func(k->c->edit, k->f);
    new_registers(k);
    if (k->about->is_entry)
        add_launch(k);
    for (uint32_t i = 0; i < f->nstmts && !edit_error(k->c->edit); i++)
        count_stmt(k, i);
    add_run(k, f->nstmts);
    if (edit_falls_off(f))
        add_to_table(k, f->nstmts);
}

// --- the module --------------------------------------------------------------------------------------------

static bool has(const struct ptx_func *f, enum ptx_control control)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_INSN && f->stmts[i].form->op->control == control)
            return true;
    return false;
}

static void mark_approximate(struct pass_context *c)
{
    bool exits = false;
    for (uint32_t i = 0; i < c->result->nfuncs; i++)
        exits |= !c->funcs[i]->is_entry && has(c->funcs[i], PTX_EXIT);
    for (uint32_t i = 0; exits && i < c->result->nfuncs; i++)
        c->result->funcs[i].approximate |= has(c->funcs[i], PTX_CALL);
}

static bool can_redux(const struct ptx_module *m)
{
    unsigned arch;
    char suffix;
    return m->version_major >= 7 && edit_target_parse(m->target, &arch, &suffix) && arch >= 80;
}

// Adds the table. Its name is a hash of the module's text, because several modules may be linked into one; it
// is weak, because equal modules may be linked too.
static int add_table(struct pass_context *c, uint32_t *sym)
{
    struct str text = c->m->source.text;
    uint64_t counters = (uint64_t)c->result->nfuncs * PASS_COUNT_ROW;
    char name[48], item[128];
    int len = snprintf(name, sizeof name, EDIT_PREFIX "count_%016llx",
                       (unsigned long long)XXH3_64bits(text.ptr, text.len));
    int item_len = snprintf(item, sizeof item, ".weak .global .align 128 .u64 %s[%llu];\n", name,
                            (unsigned long long)counters);
    edit_add(c->edit, (struct str){item, (size_t)item_len});
    *sym = edit_find(c->edit, (struct str){name, (size_t)len});
    return pass_add_symbol(c, (struct str){name, (size_t)len}, counters * 8);
}

int pass_count(struct pass_context *c)
{
    uint32_t table;
    if (!c->result->nfuncs)
        return 0;
    int err = add_table(c, &table);
    mark_approximate(c);
    for (uint32_t i = 0; !err && i < c->result->nfuncs; i++) {
        struct counting k = {
            .c = c, .f = c->funcs[i], .about = &c->result->funcs[i], .table = table, .index = i};
        k.redux = can_redux(c->m);
        if (k.about->why == PASS_REWRITTEN)
            count_func(&k);
        err = edit_error(c->edit);
    }
    return err;
}
