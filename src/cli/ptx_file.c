// SPDX-License-Identifier: MIT
#include "cli/ptx_file.h"

#include <stdio.h>
#include <string.h>

#include "base/vec.h"

// Reads all of standard input, which cannot be mapped if it is a pipe.
static int read_input(struct ptx_file *f, size_t *len)
{
    VEC(char) all = {0};
    size_t got = 1;
    while (got > 0 && !vec_reserve(&all, 1 << 16)) {
        got = fread(all.items + all.len, 1, 1 << 16, stdin);
        all.len += got;
    }
    f->input = all.items;
    *len = all.len;
    if (got > 0)
        return cli_error("out of memory");
    return ferror(stdin) ? cli_error("cannot read the standard input") : 0;
}

static int open_image(struct ptx_file *f)
{
    size_t len;
    if (strcmp(f->path, "-") != 0)
        return image_open(f->path, &f->printer.sink, &f->image);
    f->path = "(standard input)";
    if (read_input(f, &len))
        return CLI_BAD;
    return image_open_memory(f->path, f->input, len, &f->printer.sink, &f->image);
}

int ptx_file_open(struct ptx_file *f, const struct options *options, int argc, char **argv)
{
    *f = (struct ptx_file){.options = options};
    if (argc != 2)
        return cli_error("`moat ptx %s` takes one file, but %d were given", argv[0], argc - 1);
    f->path = argv[1];
    diag_printer_init(&f->printer, 20);
    if (open_image(f)) {
        diag_printer_finish(&f->printer);
        mem_free(f->input);
        return CLI_BAD;
    }
    if (image_damage(f->image))
        f->status = CLI_BAD;
    unsigned count = image_count(f->image);
    if (options->module > (int64_t)count) {
        ptx_file_close(f);
        return cli_error("%s has %u module%s, there is no module %lld", f->path, count, count == 1 ? "" : "s",
                         (long long)options->module);
    }
    return CLI_OK;
}

int ptx_file_close(struct ptx_file *f)
{
    diag_printer_finish(&f->printer);
    image_buffer_free(&f->buffer);
    image_free(f->image);
    mem_free(f->input);
    return f->status;
}

bool ptx_file_wants(const struct ptx_file *f, unsigned i)
{
    return !f->options->module || f->options->module == (int64_t)i + 1;
}

int ptx_file_read(struct ptx_file *f, unsigned i, struct str *data)
{
    int err = image_read(f->image, i, &f->printer.sink, &f->buffer, data);
    if (err)
        f->status = CLI_BAD;
    return err;
}

// A PTX file is named by its path, so that editors find the line; a module inside another file by its number.
void ptx_file_module_name(const struct ptx_file *f, unsigned i, char *name, size_t size)
{
    if (image_entry(f->image, i)->fatbin == IMAGE_NO_FATBIN && image_count(f->image) == 1)
        snprintf(name, size, "%s", f->path);
    else
        snprintf(name, size, "%s: module %u", f->path, i + 1);
}

static int visit_module(struct ptx_file *f, unsigned i, ptx_file_visit *visit, void *ctx)
{
    struct str text;
    char name[4200];
    struct ptx_module *m;
    if (ptx_file_read(f, i, &text))
        return 0;
    ptx_file_module_name(f, i, name, sizeof name);
    if (ptx_parse(name, text, &f->printer.sink, NULL, &m)) {
        f->status = CLI_BAD;
        return 0;
    }
    int stop = visit(ctx, f, i, m);
    ptx_free(m);
    return stop;
}

int ptx_file_no_ptx(const struct ptx_file *f)
{
    unsigned count = image_count(f->image), only = (unsigned)f->options->module;
    if (only)
        return cli_error("%s: module %u is no PTX (kind: %s)", f->path, only,
                         ptx_file_kind(image_entry(f->image, only - 1)));
    return cli_error("%s: no PTX among %u module%s", f->path, count, count == 1 ? "" : "s");
}

void ptx_file_each(struct ptx_file *f, ptx_file_visit *visit, void *ctx)
{
    unsigned met = 0;
    for (unsigned i = 0; i < image_count(f->image); i++) {
        if (!ptx_file_wants(f, i))
            continue;
        if (image_entry(f->image, i)->kind != IMAGE_PTX)
            continue;
        met++;
        if (visit_module(f, i, visit, ctx))
            break;
    }
    if (!met)
        f->status = ptx_file_no_ptx(f);
}

const char *ptx_file_kind(const struct image_entry *e)
{
    enum { LINK_TIME_CODE = 8 };
    if (e->kind == IMAGE_OTHER)
        return e->number == LINK_TIME_CODE ? "ltoir" : "other";
    return e->kind == IMAGE_PTX ? "ptx" : "cubin";
}

const char *ptx_file_compression(const struct image_entry *e)
{
    return e->compression == IMAGE_ZSTD ? "zstd" : e->compression == IMAGE_LZ4 ? "lz4" : "none";
}

void ptx_file_version(const struct image_entry *e, char text[16])
{
    if (e->kind == IMAGE_PTX)
        snprintf(text, 16, "%u.%u", e->version_major, e->version_minor);
    else
        snprintf(text, 16, "-");
}

void ptx_file_arch(const struct image_entry *e, char text[16])
{
    char suffix[2] = {e->suffix, 0};
    if (e->arch)
        snprintf(text, 16, "sm_%u%s", e->arch, suffix);
    else
        snprintf(text, 16, "-");
}
