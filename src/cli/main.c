// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"

static bool is_first_word(const char *name, const char *word)
{
    size_t len = strlen(word);
    return strncmp(name, word, len) == 0 && (name[len] == ' ' || !name[len]);
}

static bool begins_command(const char *word)
{
    for (int i = 0; i < cli_command_count; i++)
        if (is_first_word(cli_commands[i].name, word))
            return true;
    return false;
}

static bool is_command(const char *name, int argc, char **argv)
{
    const char *second = strchr(name, ' ');
    return is_first_word(name, argv[0]) && (!second || (argc > 1 && strcmp(argv[1], second + 1) == 0));
}

static const struct cli_command *find_command(int argc, char **argv)
{
    for (int i = 0; i < cli_command_count; i++)
        if (is_command(cli_commands[i].name, argc, argv))
            return &cli_commands[i];
    return NULL;
}

static int no_command(int argc, char **argv)
{
    if (!argc)
        return cli_error("no command and no program given; `moat help` lists them all");
    if (argc == 1)
        return cli_error("`moat %s` alone is no command; see `moat help %s`", argv[0], argv[0]);
    char both[80];
    snprintf(both, sizeof both, "%s %s", argv[0], argv[1]);
    return cli_unknown(both);
}

// Returns whether "--" was the last word that the options took: then a program follows, whatever its name.
static bool ended_by_dashes(int argc, char **argv, int left)
{
    return left < argc && strcmp(argv[argc - left - 1], "--") == 0;
}

// Parses the command line. Options may stand anywhere; for what runs a program, and where a program is
// given instead of a command, they must precede the program. Sets *program in the latter case.
static int parse_command_line(struct option_set *set, int *argc, char **argv, bool *program)
{
    static const char *const runs[] = {"run", "explain", "share run"};
    int given = *argc, rest;
    char **words = mem_zalloc((size_t)given + 1, sizeof *words);  // in the order given
    if (!words)
        return -ENOMEM;
    memcpy(words, argv, (size_t)given * sizeof *words);
    int err = option_parse_args(set, given, argv, false, argc);
    *program = ended_by_dashes(given, words, *argc) || (*argc && !begins_command(argv[0]));
    mem_free(words);
    int words_of_it = 1;
    bool mixed = true;
    for (size_t i = 0; *argc && i < sizeof runs / sizeof *runs; i++)
        if (is_command(runs[i], *argc, argv)) {
            mixed = false;
            words_of_it = strchr(runs[i], ' ') ? 2 : 1;
        }
    if (*argc && !*program) {
        int second = option_parse_args(set, *argc - words_of_it, argv + words_of_it, mixed, &rest);
        *argc = rest + words_of_it;
        err = err ? err : second;
    }
    return err;
}

static int load_options(struct option_set *set, const struct options *options)
{
    int err = options->config ? option_load_file(set, options->config) : 0;
    const char *text = getenv("MOAT_OPTIONS");
    int second = text && err != -ENOMEM ? option_parse_environment(set, "MOAT_OPTIONS", text) : 0;
    return err ? err : second;
}

static int bad_options(int err)
{
    return err == -ENOMEM ? cli_error("out of memory") : CLI_BAD;
}

static bool is_named(const struct cli_command *command, const char *name)
{
    return strcmp(command->name, name) == 0;
}

static bool mode_is_given(const struct option_set *set)
{
    for (size_t i = 0; i < set->table->count; i++)
        if (strcmp(set->table->rows[i].key, "mode") == 0)
            return set->sources[i].origin == OPTION_BY_COMMAND_LINE;
    return false;
}

// Sets the mode that a command stands for.
static int imply_mode(struct option_set *set, const struct cli_command *command)
{
    char explain[] = "--mode=explain", fence[] = "--mode=fence", *words[] = {explain};
    int left;
    if (is_named(command, "share run") && !mode_is_given(set))
        words[0] = fence;
    else if (!is_named(command, "explain"))
        return 0;
    return option_parse_args(set, 1, words, false, &left);
}

static int run_command(struct option_set *set, const struct options *options, int argc, char **argv)
{
    bool program;
    int err = parse_command_line(set, &argc, argv, &program);
    if (err)
        return bad_options(err);
    if (options->version)
        return cmd_version(options, 0, NULL);
    if (options->help)
        return cmd_help(options, argc, argv);
    static char *run[] = {"run"};
    const struct cli_command *command = program ? find_command(1, run)
                                        : argc  ? find_command(argc, argv)
                                                : NULL;
    if (!command)
        return no_command(argc, argv);
    err = option_check_command(set, command->name, is_named(command, "share run") ? "run" : NULL);
    err = err ? err : imply_mode(set, command);
    err = err ? err : load_options(set, options);
    return err ? bad_options(err) : command->run(options, argc - !program, argv + !program);
}

// Opens /dev/null for standard streams that the caller has closed, so that no file opened later takes their
// number. A program that is run finds them closed.
static void keep_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF &&
            open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
            _exit(CLI_BAD);
}

int main(int argc, char **argv)
{
    keep_standard_streams();
    struct diag_printer printer;
    diag_printer_init(&printer, 20);
    struct option_set set;
    struct options options = {.set = &set};
    int status = option_init(&set, &option_table, &options, &printer.sink);
    status = status ? cli_error("out of memory")
                    : run_command(&set, &options, argc - (argc > 0), argv + (argc > 0));
    option_free(&set);
    return status;
}
