// SPDX-License-Identifier: MIT
#include "cli/cli.h"

static void print_row(const struct option_set *set, const struct option_row *row, struct out *o)
{
    option_print_usage(row, o);
    out_fmt(o, "\n    %s\n", row->help);
    if (*row->commands)
        out_fmt(o, "    for: %s\n", row->commands);
    out_fmt(o, "    default: %s\n    now: ", row->initial ? row->initial : "not set");
    option_print_value(set, row, o);
    out_cstr(o, " (");
    option_print_source(set, row, o);
    out_cstr(o, ")\n");
}

int cmd_options(const struct options *options, int argc, char **argv)
{
    if (argc)
        return cli_error("`moat options` takes no operand, but \"%.60s\" was given", argv[0]);
    struct out o;
    out_to_file(&o, stdout);
    for (size_t i = 0; i < option_table.count; i++)
        print_row(options->set, &option_table.rows[i], &o);
    return cli_close(&o, CLI_OK);
}
