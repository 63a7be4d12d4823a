// SPDX-License-Identifier: MIT
// flow_check FILE.ptx...: compares every analysis of src/flow with its definition, on every function.
// Exit status: 0 if all agree, 1 if not, 2 if a file cannot be read or parsed.
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "flow/brute_func.h"

// Steps per function and comparison: a second or so. Larger functions are compared in samples.
static const uint64_t BUDGET = 200000000;

struct totals {
    unsigned functions, sampled, uncertain;
    unsigned long long statements;
};

static char *read_file(const char *name, size_t *size)
{
    FILE *f = fopen(name, "rb");
    char *text = NULL;
    size_t len = 0, cap = 0, got = 0;
    if (!f)
        return NULL;
    do {
        if (len + 1 >= cap)
            text = realloc(text, cap = cap ? cap * 2 : 1 << 16);
        if (!text)
            abort();
        got = fread(text + len, 1, cap - len - 1, f);
        len += got;
    } while (got);
    fclose(f);
    *size = len;
    return text;
}

static int check_func(const char *name, const struct ptx_module *m, const struct ptx_func *f,
                      struct totals *t)
{
    struct brute_func b;
    int status = 0;
    if (!brute_compare(&b, m, f, BUDGET)) {
        printf("%s: " STR_FMT ": %s\n", name, STR_ARG(ptx_func_name(m, f)), b.why);
        status = 1;
    }
    if (b.sampled)
        printf("%s: " STR_FMT ": %u statements: compared in samples\n", name, STR_ARG(ptx_func_name(m, f)),
               f->nstmts);
    t->functions++;
    t->sampled += b.sampled;
    t->uncertain += f->nunknown > 0;
    t->statements += f->nstmts;
    brute_func_free(&b);
    return status;
}

static int check_file(const char *name, struct totals *t)
{
    size_t size;
    struct diag_printer sink;
    struct ptx_module *m;
    int status = 0;
    char *text = read_file(name, &size);
    if (!text) {
        fprintf(stderr, "flow_check: cannot read %s\n", name);
        return 2;
    }
    diag_printer_init(&sink, 20);
    if (ptx_parse(name, (struct str){text, size}, &sink.sink, NULL, &m)) {
        free(text);
        return 2;
    }
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->has_body)
            status |= check_func(name, m, m->items[i].func, t);
    ptx_free(m);
    free(text);
    return status;
}

int main(int argc, char **argv)
{
    struct totals t = {0};
    int status = 0;
    for (int i = 1; i < argc; i++) {
        int one = check_file(argv[i], &t);
        status = one > status ? one : status;
    }
    printf("%u functions compared, %llu statements", t.functions, t.statements);
    if (t.sampled)
        printf(", %u functions in samples", t.sampled);
    if (t.uncertain)
        printf(", %u with instructions that are not known", t.uncertain);
    printf("\n");
    return status;
}
