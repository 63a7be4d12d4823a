// SPDX-License-Identifier: MIT
// What a GPU computes, instruction by instruction, and whether another device computes the same.
//   golden list             the combinations, one a line
//   golden emit FOLDER      the kernels, as PTX modules
//   golden record FILE      runs all on libcuda and writes the results to FILE, refused ones to FILE.txt
//   golden check FILE       runs all on libcuda and compares the results with FILE
// --libcuda=PATH      instead of libcuda.so.1
// --forms=FOLDER      instead of test/ptx/forms
// --only=TEXT         combinations with it
// --only-missing=OLD  record: copies what OLD has and runs the rest only
// --lanes=NAME        check: the instruction set that our CPU device is to use
// --verbose, --quiet  check: all tuples that differ; neither the rows of ops.def nor what is not covered
#include <dirent.h>

#include "check.h"
#include "patterns.h"
#include "record.h"

struct options {
    const char *command, *path, *libcuda, *forms, *only, *missing, *lanes;
    bool verbose, quiet;
};

// --- combinations -----------------------------------------------------------------------------------------

static int is_ptx(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 4 && !strcmp(entry->d_name + len - 4, ".ptx");
}

static int collect_forms(struct combos *all, const char *folder)
{
    struct dirent **names;
    char path[4096];
    size_t size;
    int err = 0, n = scandir(folder, &names, is_ptx, alphasort);
    if (n < 0)
        fprintf(stderr, "golden: %s: %s\n", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        char *text = err ? NULL : read_file(path, &size);
        unsigned target = text ? text_target(text) : 0;
        if (target >= 70 && target <= 90 && !strstr(text, "sm_90a"))
            err = combos_add_text(all, path, text);
        else
            free(text);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return n < 0 ? -ENOENT : err;
}

static int collect_patterns(struct combos *all)
{
    struct out text;
    if (out_to_memory(&text))
        return -ENOMEM;
    patterns_print(&text);
    out_char(&text, '\0');
    char *copy = strdup(text.buf);
    out_close(&text);
    return copy ? combos_add_text(all, "patterns.def", copy) : -ENOMEM;
}

static int collect(struct combos *all, const struct options *o)
{
    int err = collect_patterns(all);
    if (!err)
        err = collect_forms(all, o->forms);
    if (!err)
        err = snippets_add(all);
    size_t kept = 0;
    for (size_t i = 0; i < all->list.len; i++) {
        if (!o->only || strstr(all->list.items[i].label, o->only))
            all->list.items[kept++] = all->list.items[i];
        else
            combo_free(&all->list.items[i]);
    }
    all->list.len = kept;
    return err;
}

// --- commands that need no device -------------------------------------------------------------------------

static int emit(const struct combos *all, const char *folder)
{
    for (size_t i = 0; i < all->list.len; i += PER_MODULE) {
        char path[4096];
        struct out text;
        snprintf(path, sizeof path, "%s/%04zu.ptx", folder, i);
        if (out_to_memory(&text))
            return -ENOMEM;
        print_module(all, i, i + PER_MODULE < all->list.len ? i + PER_MODULE : all->list.len, &text);
        int err = write_file(path, text.buf, text.len - 1);
        out_close(&text);
        if (err)
            return err;
    }
    return 0;
}

static void list(const struct combos *all)
{
    static const char *const groups[] = {"none", "lane", "warp", "memory", "block"};
    for (size_t i = 0; i < all->list.len; i++)
        printf("g%zu\t%s\t%s\n", i, groups[all->list.items[i].group], all->list.items[i].label);
    for (unsigned i = 0; i < PTX_OP_COUNT; i++)
        if (all->left_out[i])
            printf("# not tried: %u of " STR_FMT "\n", all->left_out[i], STR_ARG(ptx_ops[i].name));
}

// --- options ----------------------------------------------------------------------------------------------

static bool take_option(struct options *o, const char *arg)
{
    const struct {
        const char *name;
        const char **value;
    } options[] = {{"--libcuda=", &o->libcuda},
                   {"--forms=", &o->forms},
                   {"--only=", &o->only},
                   {"--only-missing=", &o->missing},
                   {"--lanes=", &o->lanes}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        size_t len = strlen(options[i].name);
        if (!strncmp(arg, options[i].name, len)) {
            *options[i].value = arg + len;
            return true;
        }
    }
    o->verbose |= !strcmp(arg, "--verbose");
    o->quiet |= !strcmp(arg, "--quiet");
    return !strcmp(arg, "--verbose") || !strcmp(arg, "--quiet");
}

static int parse_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){.forms = "test/ptx/forms"};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            if (!take_option(o, argv[i]))
                return -EINVAL;
        } else if (!o->command) {
            o->command = argv[i];
        } else if (!o->path) {
            o->path = argv[i];
        } else {
            return -EINVAL;
        }
    }
    return o->command && (o->path || !strcmp(o->command, "list")) ? 0 : -EINVAL;
}

static int choose_lanes(const char *name)
{
    char value[100];
    snprintf(value, sizeof value, "cpu-lanes=%s", name);
    return setenv("MOAT_OPTIONS", value, 1);
}

static int run_command(struct combos *all, const struct options *o)
{
    if (o->lanes && choose_lanes(o->lanes))
        return -ENOMEM;
    if (!strcmp(o->command, "list"))
        list(all);
    else if (!strcmp(o->command, "emit"))
        return emit(all, o->path);
    else if (!strcmp(o->command, "record"))
        return record(all, o->path, o->libcuda, o->missing);
    else if (!strcmp(o->command, "check"))
        return check(all, o->path, o->libcuda, o->lanes, o->verbose, o->quiet);
    else
        return -EINVAL;
    return 0;
}

int main(int argc, char **argv)
{
    struct options o;
    struct combos all = {0};
    if (parse_options(argc, argv, &o)) {
        fprintf(stderr,
                "usage: golden list|emit FOLDER|record FILE|check FILE [--libcuda=PATH] [--forms=FOLDER]\n"
                "       [--only=TEXT] [--only-missing=FILE] [--lanes=NAME] [--verbose] [--quiet]\n");
        return 2;
    }
    int err = collect(&all, &o);
    if (!err)
        err = run_command(&all, &o);
    combos_free(&all);
    return err < 0 ? 1 : err;
}
