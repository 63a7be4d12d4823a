// SPDX-License-Identifier: MIT
// moat version: prints the version, as --version does.
#include <stdio.h>

#include "cli/cli.h"

int cmd_version(const struct options *options, int argc, char **argv)
{
    struct out o;
    out_to_file(&o, stdout);
    out_cstr(&o, "moat " MOAT_VERSION "\n");
    return cli_close(&o, CLI_OK);
}
