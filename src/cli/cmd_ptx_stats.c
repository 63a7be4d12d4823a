// SPDX-License-Identifier: MIT
// moat ptx stats: counts kernels, functions, instructions and memory accesses by space, and how far the
// addresses of kernels are understood (flow/ranges.h).
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/ptx_file.h"
#include "flow/ranges.h"

enum { MOST_OPERATORS = 64 };

// Instructions that stand between an address and a bound, by name.
struct operator_count {
    char name[48];
    uint64_t uses;
};

struct traffic {
    uint64_t loads, stores, atomics;
};

struct counts {
    uint64_t kernels, functions, declarations, instructions, calls, branches, barriers, unknown;
    struct traffic spaces[PTX_SPACE_COUNT];
    uint64_t forms[RANGES_FORMS];  // accesses of kernels, by form
    unsigned noperators;
    struct operator_count operators[MOST_OPERATORS];
};

struct stats {
    struct out *o;
    cJSON *modules;  // NULL for text
    struct counts total;
    unsigned nmodules;
};

// Counts memory accesses. What tensor cores read by descriptors does not count as a load.
static void count_memory(struct counts *c, const struct ptx_func *f, const struct ptx_stmt *s)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(f, s, mem);
    for (unsigned i = 0; i < n; i++) {
        struct traffic *t = &c->spaces[mem[i].space];
        if (mem[i].extent == PTX_EXTENT_DESCRIPTOR)
            continue;
        if (mem[i].atomic) {
            t->atomics++;
        } else {
            t->loads += mem[i].reads;
            t->stores += mem[i].writes;
        }
    }
}

static void count_operator(struct counts *c, const char *name, size_t len, uint64_t uses)
{
    struct operator_count new = {.uses = 0};
    unsigned i = 0;
    snprintf(new.name, sizeof new.name, "%.*s", (int)len, name);
    while (i < c->noperators && strcmp(c->operators[i].name, new.name) != 0)
        i++;
    if (i == MOST_OPERATORS)
        return;
    if (i == c->noperators)
        c->operators[c->noperators++] = new;
    c->operators[i].uses += uses;
}

// Counts how far the addresses of a kernel are understood. A kernel that cannot be analysed counts as not
// understood.
static void count_forms(struct counts *c, const struct ptx_module *m, const struct ptx_func *f)
{
    struct flow w = {.m = m, .f = f};
    struct ranges *r;
    if (!f->is_entry || !f->has_body)
        return;
    if (!ranges_build(&w, &r)) {
        for (unsigned i = 0; i < RANGES_FORMS; i++)
            c->forms[i] += r->form_count[i];
        for (uint32_t i = 0; i < r->nunknown; i++)
            count_operator(c, r->unknown[i]->name.ptr, r->unknown[i]->name.len, r->unknown_uses[i]);
        ranges_free(r);
    }
    flow_drop(&w);
}

static void count_func(struct counts *c, const struct ptx_func *f)
{
    if (!f->has_body) {
        c->declarations++;
        return;
    }
    c->kernels += f->is_entry;
    c->functions += !f->is_entry;
    c->unknown += f->nunknown;
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind != PTX_INSN)
            continue;
        c->instructions++;
        c->calls += s->form->op->control == PTX_CALL;
        c->branches += s->form->op->control == PTX_BRANCH || s->form->op->control == PTX_SWITCH;
        c->barriers += s->form->op->control == PTX_BARRIER;
        count_memory(c, f, s);
    }
}

static void add_counts(struct counts *sum, const struct counts *c)
{
    sum->kernels += c->kernels;
    sum->functions += c->functions;
    sum->declarations += c->declarations;
    sum->instructions += c->instructions;
    sum->calls += c->calls;
    sum->branches += c->branches;
    sum->barriers += c->barriers;
    sum->unknown += c->unknown;
    for (unsigned i = 0; i < PTX_SPACE_COUNT; i++) {
        sum->spaces[i].loads += c->spaces[i].loads;
        sum->spaces[i].stores += c->spaces[i].stores;
        sum->spaces[i].atomics += c->spaces[i].atomics;
    }
    for (unsigned i = 0; i < RANGES_FORMS; i++)
        sum->forms[i] += c->forms[i];
    for (unsigned i = 0; i < c->noperators; i++)
        count_operator(sum, c->operators[i].name, strlen(c->operators[i].name), c->operators[i].uses);
}

static bool touched(const struct traffic *t)
{
    return t->loads || t->stores || t->atomics;
}

static void print_text(struct out *o, const struct counts *c)
{
    out_fmt(o, "  kernels %llu, functions %llu, declarations %llu\n", (unsigned long long)c->kernels,
            (unsigned long long)c->functions, (unsigned long long)c->declarations);
    out_fmt(o, "  instructions %llu: branches %llu, calls %llu, barriers %llu, not known %llu\n",
            (unsigned long long)c->instructions, (unsigned long long)c->branches,
            (unsigned long long)c->calls, (unsigned long long)c->barriers, (unsigned long long)c->unknown);
    out_lit(o, "  space                loads      stores     atomics\n");
    for (unsigned i = 0; i < PTX_SPACE_COUNT; i++) {
        const struct traffic *t = &c->spaces[i];
        if (touched(t))
            out_fmt(o, "  %-16.*s%10llu  %10llu  %10llu\n", STR_ARG(ptx_space_name((enum ptx_space)i)),
                    (unsigned long long)t->loads, (unsigned long long)t->stores,
                    (unsigned long long)t->atomics);
    }
    uint64_t accesses = 0;
    for (unsigned i = 0; i < RANGES_FORMS; i++)
        accesses += c->forms[i];
    if (!accesses)
        return;
    out_lit(o, "  addresses of kernels\n");
    for (unsigned i = 0; i < RANGES_FORMS; i++)
        if (c->forms[i])
            out_fmt(o, "  %10llu  %s\n", (unsigned long long)c->forms[i],
                    ranges_form_text((enum ranges_form)i));
    for (unsigned i = 0; i < c->noperators; i++)
        out_fmt(o, "  %10llu  of these because of %s\n", (unsigned long long)c->operators[i].uses,
                c->operators[i].name);
}

static void add_json(cJSON *j, const struct counts *c)
{
    cJSON_AddNumberToObject(j, "kernels", (double)c->kernels);
    cJSON_AddNumberToObject(j, "functions", (double)c->functions);
    cJSON_AddNumberToObject(j, "declarations", (double)c->declarations);
    cJSON_AddNumberToObject(j, "instructions", (double)c->instructions);
    cJSON_AddNumberToObject(j, "branches", (double)c->branches);
    cJSON_AddNumberToObject(j, "calls", (double)c->calls);
    cJSON_AddNumberToObject(j, "barriers", (double)c->barriers);
    cJSON_AddNumberToObject(j, "not_known", (double)c->unknown);
    cJSON *spaces = cJSON_AddObjectToObject(j, "spaces");
    for (unsigned i = 0; i < PTX_SPACE_COUNT; i++) {
        const struct traffic *t = &c->spaces[i];
        if (!touched(t))
            continue;
        cJSON *space = cJSON_AddObjectToObject(spaces, ptx_space_name((enum ptx_space)i).ptr);
        cJSON_AddNumberToObject(space, "loads", (double)t->loads);
        cJSON_AddNumberToObject(space, "stores", (double)t->stores);
        cJSON_AddNumberToObject(space, "atomics", (double)t->atomics);
    }
    static const char *const names[] = {"affine",          "loop",          "mixed", "index_unknown",
                                        "pointer_unknown", "not_understood"};
    cJSON *addresses = cJSON_AddObjectToObject(j, "addresses");
    for (unsigned i = 0; i < RANGES_FORMS; i++)
        cJSON_AddNumberToObject(addresses, names[i], (double)c->forms[i]);
    cJSON *operators = cJSON_AddObjectToObject(j, "operators_not_understood");
    for (unsigned i = 0; i < c->noperators; i++)
        cJSON_AddNumberToObject(operators, c->operators[i].name, (double)c->operators[i].uses);
}

static int add_module(void *ctx, struct ptx_file *f, unsigned i, const struct ptx_module *m)
{
    struct stats *s = ctx;
    struct counts c = {0};
    for (uint32_t k = 0; k < m->nitems; k++)
        if (m->items[k].kind == PTX_ITEM_FUNC) {
            count_func(&c, m->items[k].func);
            count_forms(&c, m, m->items[k].func);
        }
    add_counts(&s->total, &c);
    s->nmodules++;
    if (s->modules) {
        cJSON *row = json_module(i, image_entry(f->image, i));
        add_json(row, &c);
        cJSON_AddItemToArray(s->modules, row);
    } else {
        char arch[16];
        ptx_file_arch(image_entry(f->image, i), arch);
        out_fmt(s->o, "module %u: %s, PTX %u.%u\n", i + 1, arch, m->version_major, m->version_minor);
        print_text(s->o, &c);
    }
    return s->o->error;
}

static void print_total(struct stats *s, struct ptx_file *f, cJSON *root)
{
    if (!root) {
        if (s->nmodules > 1) {
            out_fmt(s->o, "total of %u modules\n", s->nmodules);
            print_text(s->o, &s->total);
        }
        return;
    }
    add_json(cJSON_AddObjectToObject(root, "total"), &s->total);
    if (json_print(root, s->o))
        f->status = CLI_BAD;
}

int cmd_ptx_stats(const struct options *options, int argc, char **argv)
{
    struct ptx_file f;
    if (json_check_format(options) || ptx_file_open(&f, options, argc, argv))
        return CLI_BAD;
    struct out o;
    out_to_file(&o, stdout);
    struct stats s = {.o = &o};
    cJSON *root = NULL;
    if (options->format == OPTION_FORMAT_JSON) {
        root = cJSON_CreateObject();
        cJSON_AddItemToObject(root, "file", json_str(str_from(f.path)));
        s.modules = cJSON_AddArrayToObject(root, "modules");
    }
    ptx_file_each(&f, add_module, &s);
    print_total(&s, &f, root);
    return cli_close(&o, ptx_file_close(&f));
}
