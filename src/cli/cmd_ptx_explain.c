// SPDX-License-Identifier: MIT
// moat ptx explain: says which accesses of a file's kernels are bounded by values of their launch, and
// by what; with --launch, whether they stay inside their buffers.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/explain_match.h"
#include "cli/explain_print.h"
#include "cli/json.h"
#include "cli/ptx_file.h"

struct explain {
    struct explain_print print;
    struct diag_printer printer;       // for the launch
    const struct launch_text *launch;  // NULL: none
    struct launch_bind *bound;
    cJSON *modules, *kernels;  // NULL for text
    struct explain_sums sums;
    bool found, bad;
    char names[200];  // of kernels, if the one that is launched is not among them
};

static const char *why_not(int err)
{
    return err == -ENOMEM    ? "out of memory"
           : err == -EINVAL  ? "no device can launch it in this shape"
           : err == -EBADMSG ? "an instruction lacks operands; `moat ptx verify` says which"
                             : "it is too large";
}

static void explain_func(struct explain *e, struct ptx_file *file, const struct ptx_module *m,
                         const struct ptx_func *f)
{
    struct explain_kernel k;
    int err = explain_kernel_make(&k, m, f, e->launch ? e->bound : NULL);
    if (err) {
        file->status = cli_error("%s: %.*s: %s", file->path, STR_ARG(ptx_func_name(m, f)), why_not(err));
    } else {
        explain_sums_add(&e->sums, &k);
        if (e->kernels)
            cJSON_AddItemToArray(e->kernels, explain_json_kernel(&e->print.names, &k));
        else
            explain_print_kernel(&e->print, &k);
    }
    explain_kernel_free(&k);
}

// Explains the one kernel that is launched, if it is in the module.
static void explain_launch(struct explain *e, struct ptx_file *file, const struct ptx_module *m)
{
    const struct ptx_func *f;
    struct diag_sink *sink = &e->printer.sink;
    int err = explain_match(m, e->launch, &e->print.names, sink, &f);
    if (err == -ENOENT) {
        explain_match_list(m, &e->print.names, e->names, sizeof e->names);
        return;
    }
    e->found = true;
    if (!err)
        err = launch_bind(e->launch, m, f, sink, e->bound);
    e->bad |= err != 0;
    if (!err)
        explain_func(e, file, m, f);
}

static int explain_module(void *ctx, struct ptx_file *file, unsigned i, const struct ptx_module *m)
{
    struct explain *e = ctx;
    const struct image_entry *entry = image_entry(file->image, i);
    if (e->modules) {
        cJSON *row = json_module(i, entry);
        e->kernels = cJSON_AddArrayToObject(row, "kernels");
        cJSON_AddItemToArray(e->modules, row);
    } else if (image_count(file->image) > 1) {
        char arch[16];
        ptx_file_arch(entry, arch);
        out_fmt(e->print.o, "module %u: %s, PTX %u.%u\n", i + 1, arch, m->version_major, m->version_minor);
    }
    if (e->launch)
        explain_launch(e, file, m);
    for (uint32_t k = 0; !e->launch && k < m->nitems; k++)
        if (m->items[k].kind == PTX_ITEM_FUNC && m->items[k].func->has_body)
            explain_func(e, file, m, m->items[k].func);
    return e->print.o->error || e->bad;
}

static void explain_file(struct explain *e, struct ptx_file *f, const struct options *options)
{
    cJSON *root = NULL;
    if (options->format == OPTION_FORMAT_JSON) {
        root = cJSON_CreateObject();
        cJSON_AddItemToObject(root, "file", json_str(str_from(f->path)));
        if (options->launch)
            cJSON_AddItemToObject(root, "launch", json_str(str_from(options->launch)));
        e->modules = cJSON_AddArrayToObject(root, "modules");
    }
    ptx_file_each(f, explain_module, e);
    if (e->launch && !e->found && !e->bad && f->status == CLI_OK) {
        diag_report(&e->printer.sink, DIAG_ERROR, &e->launch->source, e->launch->kernel_pos,
                    e->launch->kernel.len, "no such kernel; the file has: %s", e->names);
        e->bad = true;
    }
    if (e->bad)
        f->status = CLI_BAD;
    else if (e->sums.counts[JUDGE_OUTSIDE] && !f->status)
        f->status = CLI_FOUND;
    if (root && e->bad) {
        cJSON_Delete(root);
    } else if (root) {
        explain_json_sums(root, &e->sums);
        if (json_print(root, e->print.o))
            f->status = CLI_BAD;
    } else if (!e->bad && !e->launch) {
        explain_print_sums(&e->print, &e->sums);
    }
}

// Returns CLI_OK, or CLI_BAD after a message.
static int read_launch(struct explain *e, const struct options *options, struct launch_text *text)
{
    if (!options->launch)
        return CLI_OK;
    if (launch_text_read(str_from(options->launch), &e->printer.sink, text))
        return CLI_BAD;
    e->launch = text;
    return CLI_OK;
}

static int explain(struct explain *e, const struct options *options, struct launch_text *text, int argc,
                   char **argv)
{
    struct ptx_file f;
    struct out o;
    int status = read_launch(e, options, text);
    if (status || ptx_file_open(&f, options, argc, argv))
        return CLI_BAD;
    out_to_file(&o, stdout);
    e->print.o = &o;
    explain_file(e, &f, options);
    return cli_close(&o, ptx_file_close(&f));
}

int cmd_ptx_explain(const struct options *options, int argc, char **argv)
{
    if (json_check_format(options))
        return CLI_BAD;
    struct explain *e = mem_zalloc(1, sizeof *e);
    struct launch_text *text = mem_zalloc(1, sizeof *text);
    struct launch_bind *bound = mem_zalloc(1, sizeof *bound);
    struct demangler *demangler = demangle_new();
    int status = e && text && bound ? CLI_OK : cli_error("out of memory");
    if (!status) {
        e->bound = bound;
        e->print.names = demangle_brief_with(demangler);
        if (!getcwd(e->print.root, sizeof e->print.root))
            e->print.root[0] = 0;
        diag_printer_init(&e->printer, 20);
        status = explain(e, options, text, argc, argv);
        diag_printer_finish(&e->printer);
    }
    demangle_free(demangler);
    mem_free(bound);
    mem_free(text);
    mem_free(e);
    return status;
}
