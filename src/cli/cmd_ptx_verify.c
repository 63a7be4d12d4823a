// SPDX-License-Identifier: MIT
// moat ptx verify: checks that PTX is well formed and that accesses to its variables are within bounds.
#include "cli/ptx_file.h"

struct verdict {
    struct out *o;
    unsigned modules, functions, instructions, wrong_accesses;
};

static void count(struct verdict *v, const struct ptx_module *m)
{
    v->modules++;
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_item *item = &m->items[i];
        if (item->kind != PTX_ITEM_FUNC || !item->func->has_body)
            continue;
        v->functions++;
        for (uint32_t k = 0; k < item->func->nstmts; k++)
            v->instructions += item->func->stmts[k].kind == PTX_INSN;
    }
}

static int verify_module(void *ctx, struct ptx_file *f, unsigned i, const struct ptx_module *m)
{
    struct verdict *v = ctx;
    (void)i;
    unsigned wrong = 0;
    count(v, m);
    if (ptx_verify(m, &f->printer.sink, &wrong))
        f->status = CLI_BAD;
    v->wrong_accesses += wrong;
    return 0;
}

int cmd_ptx_verify(const struct options *options, int argc, char **argv)
{
    struct ptx_file f;
    if (ptx_file_open(&f, options, argc, argv))
        return CLI_BAD;
    struct out o;
    out_to_file(&o, stdout);
    struct verdict v = {.o = &o};
    ptx_file_each(&f, verify_module, &v);
    if (v.modules)
        out_fmt(&o, "errors: %u, wrong accesses: %u, in modules: %u, functions: %u, instructions: %u\n",
                f.printer.sink.errors, v.wrong_accesses, v.modules, v.functions, v.instructions);
    int status = ptx_file_close(&f);
    return cli_close(&o, status == CLI_OK && v.wrong_accesses ? CLI_FOUND : status);
}
