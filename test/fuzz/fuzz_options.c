// SPDX-License-Identifier: MIT
// The first byte selects the source of the rest: the environment, a configuration file, or the command line.
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/option.h"

enum { MOST_ARGUMENTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_nowhere(struct diag_sink *sink, const struct diag *d)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "we");
    diag_print(nowhere, d);
}

// Arguments are separated by newlines.
static int parse_lines(struct option_set *set, char *text, bool mixed)
{
    char *argv[MOST_ARGUMENTS], *rest = text;
    int argc = 0, left;
    while (rest && argc < MOST_ARGUMENTS)
        argv[argc++] = strsep(&rest, "\n");
    int err = option_parse_args(set, argc, argv, mixed, &left);
    assert(left >= 0 && left <= argc);
    return err;
}

static int parse(struct option_set *set, int source, char *text, size_t size)
{
    switch (source % 4) {
    case 0: return option_parse_environment(set, "MOAT_OPTIONS", text);
    case 1: return option_parse_file(set, "moat.conf", (struct str){text, size});
    default: return parse_lines(set, text, source % 2);
    }
}

static void print_all(const struct option_set *set)
{
    struct out o;
    out_to_memory(&o);
    for (size_t i = 0; i < option_table.count; i++) {
        option_print_value(set, &option_table.rows[i], &o);
        option_print_source(set, &option_table.rows[i], &o);
    }
    out_close(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct diag_sink sink = {.emit = print_nowhere};
    struct options options;
    struct option_set set;
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    int err = option_init(&set, &option_table, &options, &sink);
    assert(!err);
    err = parse(&set, data[0], text, size - 1);
    assert(err == -ENOMEM || !err == !sink.errors);
    assert(options.format == OPTION_FORMAT_TEXT || options.format == OPTION_FORMAT_JSON ||
           options.format == OPTION_FORMAT_SARIF || options.format == OPTION_FORMAT_XML);
    assert(options.module >= 0 && options.module <= INT32_MAX);
    print_all(&set);
    option_check_command(&set, "ptx list", "run");
    option_free(&set);
    free(text);
    return 0;
}
