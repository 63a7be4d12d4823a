// SPDX-License-Identifier: MIT
// moat link-flags: prints settings with which nvcc, and CMake, which asks nvcc, link moat's CUDA runtime
// instead of NVIDIA's.
#include <limits.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/libdir.h"

// Prints the text as one word of a POSIX shell.
static void print_quoted(struct out *o, const char *text)
{
    out_char(o, '\'');
    for (; *text; text++)
        if (*text == '\'')
            out_cstr(o, "'\\''");
        else
            out_char(o, *text);
    out_char(o, '\'');
}

int cmd_link_flags(const struct options *options, int argc, char **argv)
{
    static const char *const shared[] = {LIBDIR_RUNTIME, NULL}, *const fixed[] = {LIBDIR_STATIC_RUNTIME,
                                                                                  NULL};
    if (argc)
        return cli_error("`moat link-flags` takes no operand, but \"%.60s\" was given", argv[0]);
    char folder[PATH_MAX], why[400];
    if (libdir_find(folder, sizeof folder, options->shared ? shared : fixed, why, sizeof why))
        return cli_error("moat's CUDA runtime was not found: %s", why);
    if (strpbrk(folder, " \t\n'\"\\"))
        return cli_error("nvcc cannot be given the folder \"%.200s\": a path with blanks or quotes", folder);
    struct out o;
    out_to_file(&o, stdout);
    out_cstr(&o, "export NVCC_APPEND_FLAGS=");
    print_quoted(&o, options->shared ? "-cudart shared -L" : "-L");
    print_quoted(&o, folder);
    out_cstr(&o, "\"${NVCC_APPEND_FLAGS:+ $NVCC_APPEND_FLAGS}\"\n");
    return cli_close(&o, CLI_OK);
}
