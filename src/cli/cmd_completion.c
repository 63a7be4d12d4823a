// SPDX-License-Identifier: MIT
// Words for a shell to complete: all commands and options, from their tables.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

// Prints " --key=" or " --key=word" for each word of an option.
static void print_option(struct out *o, const struct option_row *row)
{
    if (row->type == OPTION_FLAG) {
        out_fmt(o, " --%s", row->key);
    } else if (row->limits.words) {
        for (size_t i = 0; row->limits.words[i]; i++)
            out_fmt(o, " --%s=%s", row->key, row->limits.words[i]);
    } else {
        out_fmt(o, " --%s=", row->key);
    }
}

static void print_words(struct out *o)
{
    out_lit(o, "-h -V");
    for (int i = 0; i < cli_command_count; i++) {
        const char *blank = strchr(cli_commands[i].name, ' ');
        int n = blank ? (int)(blank - cli_commands[i].name) : (int)strlen(cli_commands[i].name);
        if (!i || strncmp(cli_commands[i - 1].name, cli_commands[i].name, (size_t)n + 1))
            out_fmt(o, " %.*s", n, cli_commands[i].name);
    }
    for (size_t i = 0; i < option_table.count; i++)
        print_option(o, &option_table.rows[i]);
}

int cmd_completion(const struct options *options, int argc, char **argv)
{
    bool zsh = argc == 1 && strcmp(argv[0], "zsh") == 0;
    if (argc != 1 || (!zsh && strcmp(argv[0], "bash")))
        return cli_error("`moat completion` needs the name of a shell: bash or zsh");
    struct out o;
    out_to_file(&o, stdout);
    out_cstr(&o, zsh ? "#compdef moat\n" : "# bash completion for moat\n");
    out_lit(&o, "_moat_words='");
    print_words(&o);
    out_lit(&o, "'\n");
    out_cstr(&o, zsh ? "_moat() {\n"
                       "    compadd -S '' -- ${=_moat_words}\n"
                       "    _files\n"
                       "}\n"
                       "compdef _moat moat\n"
                     : "_moat() {\n"
                       "    local word=${COMP_LINE:0:COMP_POINT} cut\n"
                       "    word=${word##* } cut=${COMP_WORDS[COMP_CWORD]}\n"
                       "    [ \"$cut\" != = ] || cut=\n"
                       "    COMPREPLY=($(compgen -W \"$_moat_words\" -- \"$word\"))\n"
                       "    COMPREPLY=(\"${COMPREPLY[@]#\"${word%\"$cut\"}\"}\")\n"
                       "    [ ${#COMPREPLY[@]} -gt 0 ] && [ -n \"${COMPREPLY[0]}\" ] || COMPREPLY=($(compgen "
                       "-f -- \"$cut\"))\n"
                       "    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n"
                       "}\n"
                       "complete -F _moat moat\n");
    return cli_close(&o, CLI_OK);
}
