// SPDX-License-Identifier: MIT
#include "cli/cli.h"

#include <string.h>

enum { COLUMN = 26, WIDTH = 100 };  // first column of help texts, and their line length

// Returns whether name names the command: of "ptx list", both "ptx" and "ptx list" do.
static bool named(const struct cli_command *command, struct str name)
{
    struct str full = str_from(command->name);
    return str_starts(full, name) && (full.len == name.len || full.ptr[name.len] == ' ');
}

// Returns how much of the text fits on a line, up to a space; a word that is too long is not broken.
static size_t line_length(const char *text)
{
    size_t n = WIDTH - COLUMN;
    if (strlen(text) <= n)
        return strlen(text);
    while (n && text[n] != ' ')
        n--;
    return n ? n : strcspn(text, " ");
}

static void print_item(struct out *o, size_t start, const char *help)
{
    size_t used = o->len - start, n = line_length(help);
    if (used >= COLUMN - 1)
        out_fmt(o, "\n%*s%.*s\n", COLUMN, "", (int)n, help);
    else
        out_fmt(o, "%*s%.*s\n", (int)(COLUMN - used), "", (int)n, help);
    while (*(help += n)) {
        help += strspn(help, " ");
        n = line_length(help);
        out_fmt(o, "%*s%.*s\n", COLUMN, "", (int)n, help);
    }
}

static void print_option(struct out *o, const struct option_row *row)
{
    size_t start = o->len;
    out_cstr(o, "  ");
    option_print_usage(row, o);
    print_item(o, start, row->help);
}

static void print_command(struct out *o, const struct cli_command *command)
{
    size_t start = o->len;
    out_fmt(o, "  %s", command->synopsis);
    print_item(o, start, command->help);
}

static void print_mode(struct out *o, const char *word, const char *help)
{
    size_t start = o->len;
    out_fmt(o, "  %s", word);
    print_item(o, start, help);
}

// The words of --mode, each with the help of its row in modes.def.
static void print_modes(struct out *o)
{
#define MODE(id, symbol, word, decides, help) print_mode(o, word, help);
#define WITH(id, symbol)
#define WORD(word, help) print_mode(o, word, help);
    out_cstr(o, "\nModes, of which all but off include what api does:\n");
    MODES_BASIC(WORD)
    MODES(MODE, WITH)
#undef MODE
#undef WITH
#undef WORD
}

static void print_overview(struct out *o)
{
    out_cstr(o, "usage: moat [OPTIONS] PROGRAM [ARG...]\n       moat [OPTIONS] COMMAND ...\n\n"
                "moat finds memory errors in GPU programs.\n\nCommands:\n");
    for (int i = 0; i < cli_command_count; i++)
        print_command(o, &cli_commands[i]);
    out_cstr(o, "\nOptions:\n");
    for (size_t i = 0; i < option_table.count; i++)
        if (!*option_table.rows[i].commands)
            print_option(o, &option_table.rows[i]);
    out_cstr(
        o,
        "\n`moat help run` lists the options for running a program, `moat help COMMAND` those of a command;\n"
        "moat(1) explains them.\n");
}

static void print_topic(struct out *o, const struct cli_command *command)
{
    out_fmt(o, "usage: moat %s\n\n  %s\n", command->synopsis, command->help);
    const char *title = "\nOptions:\n";
    for (size_t i = 0; i < option_table.count; i++) {
        const struct option_row *row = &option_table.rows[i];
        if (!*row->commands || strcmp(command->name, "options") == 0 || !option_applies(row, command->name))
            continue;
        out_cstr(o, title);
        print_option(o, row);
        title = "";
    }
    if (strcmp(command->name, "run") == 0)
        print_modes(o);
}

int cmd_help(const struct options *options, int argc, char **argv)
{
    // The text is collected in memory: print_item measures the current line.
    struct out text, o;
    char topic[80] = "";
    for (int i = 0, n = 0; i < argc && i < 2 && n < (int)sizeof topic; i++)
        n += snprintf(topic + n, sizeof topic - (size_t)n, "%s%s", i ? " " : "", argv[i]);
    bool found = !argc;
    out_to_memory(&text);
    if (!argc)
        print_overview(&text);
    for (int i = 0; argc && i < cli_command_count; i++)
        if (named(&cli_commands[i], str_from(topic))) {
            out_cstr(&text, found ? "\n" : "");
            print_topic(&text, &cli_commands[i]);
            found = true;
        }
    int status = found ? CLI_OK : cli_unknown(topic);
    out_to_file(&o, stdout);
    out_bytes(&o, text.buf, text.len);
    return cli_close(&text, cli_close(&o, status));
}
