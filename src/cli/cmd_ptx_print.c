// SPDX-License-Identifier: MIT
// moat ptx print: prints the PTX in a file of any kind, as stored, as we parse it, or with the results of an
// analysis.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/ptx_file.h"
#include "flow/dump.h"

static void print_heading(struct ptx_file *f, unsigned i, struct out *o)
{
    if (image_count(f->image) == 1 || f->options->module)
        return;
    char arch[16];
    ptx_file_arch(image_entry(f->image, i), arch);
    out_fmt(o, "// module %u: %s %s\n", i + 1, ptx_file_kind(image_entry(f->image, i)), arch);
}

static void print_raw(struct ptx_file *f, struct out *o)
{
    unsigned printed = 0;
    for (unsigned i = 0; i < image_count(f->image); i++) {
        const struct image_entry *e = image_entry(f->image, i);
        // Machine code is printed only if --module selects it.
        if (!ptx_file_wants(f, i) || (e->kind != IMAGE_PTX && !f->options->module))
            continue;
        struct str data;
        if (ptx_file_read(f, i, &data))
            continue;
        print_heading(f, i, o);
        out_str(o, data);
        if (e->kind == IMAGE_PTX && data.len && data.ptr[data.len - 1] != '\n')
            out_char(o, '\n');
        printed++;
    }
    if (!printed && f->status == CLI_OK)
        f->status = ptx_file_no_ptx(f);
}

static int print_module(void *ctx, struct ptx_file *f, unsigned i, const struct ptx_module *m)
{
    struct out *o = ctx;
    print_heading(f, i, o);
    const char *analysis = f->options->dump_after;
    if (!analysis) {
        ptx_print(m, o);
        return o->error;
    }
    int err = flow_dump_module(analysis, m, o);
    if (err == -ENOMEM || err == -E2BIG)
        f->status = cli_error("%s: module %u is too large for analysis %s", f->path, i + 1, analysis);
    else if (err == -EBADMSG)
        f->status = cli_error("%s: module %u: an instruction lacks operands; `moat ptx verify` says which",
                              f->path, i + 1);
    return o->error;
}

int cmd_ptx_print(const struct options *options, int argc, char **argv)
{
    if (options->dump_after && !flow_analysis_known(options->dump_after))
        return cli_error("--dump-after: there is no analysis \"%.60s\"; there are: %s", options->dump_after,
                         flow_analysis_names);
    if (options->dump_after && options->raw)
        return cli_error("--raw and --dump-after exclude each other");
    struct ptx_file f;
    if (ptx_file_open(&f, options, argc, argv))
        return CLI_BAD;
    struct out o;
    out_to_file(&o, stdout);
    if (options->raw)
        print_raw(&f, &o);
    else
        ptx_file_each(&f, print_module, &o);
    return cli_close(&o, ptx_file_close(&f));
}
