// SPDX-License-Identifier: MIT
// moat ptx list: lists every GPU module inside a file.
#include <stdio.h>

#include "cli/json.h"
#include "cli/ptx_file.h"

struct listing {
    struct out *o;   // text
    cJSON *modules;  // JSON: the array; NULL for text
    cJSON *kernels;  // of the module being listed
    unsigned nkernels;
};

static int add_kernel(void *ctx, struct str kernel)
{
    struct listing *l = ctx;
    l->nkernels++;
    if (l->modules) {
        cJSON_AddItemToArray(l->kernels, json_str(kernel));
    } else {
        out_lit(l->o, "\t");
        out_clean(l->o, kernel);
        out_lit(l->o, "\n");
    }
    return 0;
}

static void text_row(struct listing *l, unsigned i, const struct image_entry *e)
{
    char arch[16], version[16];
    ptx_file_arch(e, arch);
    ptx_file_version(e, version);
    out_fmt(l->o, "%6u  %-5s  %-8s  %-5s  %-4s  %10zu  %10zu", i + 1, ptx_file_kind(e), arch, version,
            ptx_file_compression(e), e->payload.len, e->full_size);
    if (e->name.len) {
        out_lit(l->o, "  ");
        out_clean(l->o, e->name);
    }
    if (e->member.len) {
        out_lit(l->o, "  (");
        out_clean(l->o, e->member);
        out_lit(l->o, ")");
    }
    out_cstr(l->o, e->damaged ? "  damaged\n" : "\n");
}

static cJSON *json_row(unsigned i, const struct image_entry *e)
{
    cJSON *row = json_module(i, e);
    cJSON_AddStringToObject(row, "compression", ptx_file_compression(e));
    cJSON_AddNumberToObject(row, "stored_bytes", (double)e->payload.len);
    cJSON_AddNumberToObject(row, "bytes", (double)e->full_size);
    cJSON_AddNumberToObject(row, "offset", (double)e->offset);
    cJSON_AddItemToObject(row, "source", e->name.len ? json_str(e->name) : cJSON_CreateNull());
    cJSON_AddItemToObject(row, "member", e->member.len ? json_str(e->member) : cJSON_CreateNull());
    cJSON_AddBoolToObject(row, "damaged", e->damaged);
    return row;
}

static void list_module(struct ptx_file *f, struct listing *l, unsigned i)
{
    const struct image_entry *e = image_entry(f->image, i);
    if (l->modules) {
        cJSON *row = json_row(i, e);
        l->kernels = cJSON_AddArrayToObject(row, "kernels");
        cJSON_AddItemToArray(l->modules, row);
    } else {
        text_row(l, i, e);
    }
    struct str data;
    if (e->damaged || e->kind == IMAGE_OTHER || ptx_file_read(f, i, &data))
        return;
    if (image_kernels(f->image, i, data, &f->printer.sink, add_kernel, l))
        f->status = CLI_BAD;
}

int cmd_ptx_list(const struct options *options, int argc, char **argv)
{
    struct ptx_file f;
    if (json_check_format(options) || ptx_file_open(&f, options, argc, argv))
        return CLI_BAD;
    struct out o;
    out_to_file(&o, stdout);
    struct listing l = {.o = &o};
    cJSON *root = NULL;
    if (options->format == OPTION_FORMAT_JSON) {
        root = cJSON_CreateObject();
        cJSON_AddItemToObject(root, "file", json_str(str_from(f.path)));
        l.modules = cJSON_AddArrayToObject(root, "modules");
    } else {
        out_lit(&o, "module  kind   arch      isa    comp      stored        full\n");
    }
    unsigned count = 0;
    for (unsigned i = 0; i < image_count(f.image); i++) {
        if (!ptx_file_wants(&f, i))
            continue;
        list_module(&f, &l, i);
        count++;
    }
    if (root && json_print(root, &o))
        f.status = CLI_BAD;
    if (!root)
        out_fmt(&o, "%u module%s, %u kernel%s\n", count, count == 1 ? "" : "s", l.nkernels,
                l.nkernels == 1 ? "" : "s");
    return cli_close(&o, ptx_file_close(&f));
}
