// SPDX-License-Identifier: MIT
// Options, one row each in options.def, from four sources. The later one in this list wins:
//
//   default < configuration file < environment < command line
//
// A malformed value is an error even where a stronger source overrides it. Errors go to the set's sink and
// name their source: "--format", "MOAT_OPTIONS:1:8", "moat.conf:3:10".
#ifndef MOAT_BASE_OPTION_H
#define MOAT_BASE_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/modes.def"
#include "base/out.h"
#include "base/str.h"

// The C type of a field, by the option's type.
#define OPTION_C_FLAG bool
#define OPTION_C_INT int64_t
#define OPTION_C_MS int64_t  // microseconds
#define OPTION_C_SIZE uint64_t
#define OPTION_C_WORD int       // the word's place in its row, from 0: its enumerator
#define OPTION_C_LIST uint64_t  // bit n: word n
#define OPTION_C_STRING const char *

enum option_type { OPTION_FLAG, OPTION_INT, OPTION_MS, OPTION_SIZE, OPTION_WORD, OPTION_LIST, OPTION_STRING };

// What a row of modes.def expands to: a word of --mode.
#define OPTION_MODE_WORD(id, symbol, word, ...) W(MODE_##id, word)
#define OPTION_MODE_NO_WORD(id, symbol)

// Enumerators of words: OPTION_FORMAT_TEXT, ...
#define ANY
#define RANGE(least, most)
#define W(id, word) OPTION_##id,
#define WORDS(name, words) enum name { words };
#define OPTION(field, key, type, initial, limits, ...) limits
#include "base/options.def"
#undef OPTION
#undef WORDS
#undef W
#undef RANGE
#undef ANY

struct option_set;

struct options {
    const struct option_set *set;  // where each value came from
#define OPTION(field, key, type, ...) OPTION_C_##type field;
#include "base/options.def"
#undef OPTION
};

struct option_row {
    const char *key;
    enum option_type type;
    const char *initial;
    struct option_limits {
        int64_t least, most;       // least == most: no limits
        const char *const *words;  // NULL-terminated
    } limits;
    const char *argument, *commands, *help;
    size_t offset;  // of the field in the struct of values
};

struct option_table {
    const struct option_row *rows;
    size_t count;
};

extern const struct option_table option_table;

enum option_origin { OPTION_BY_DEFAULT, OPTION_BY_FILE, OPTION_BY_ENVIRONMENT, OPTION_BY_COMMAND_LINE };

struct option_source {
    enum option_origin origin;
    const char *file;
    unsigned line;
};

struct option_set {
    const struct option_table *table;
    char *values;                   // the struct that holds the rows' fields
    struct option_source *sources;  // one per row
    struct arena arena;             // holds string values
    struct diag_sink *sink;
};

// Sets every field to its default. values and sink must outlive the set. Returns 0 or -ENOMEM.
int option_init(struct option_set *set, const struct option_table *table, void *values,
                struct diag_sink *sink);
void option_free(struct option_set *set);

// The parse functions return 0, -EINVAL after reporting what was wrong, or -ENOMEM.

// Parses --key=value, --key value, --flag and --no-flag; "--" ends the options. Operands move to the front of
// argv, and *left is their number. Unless `mixed`, the first operand ends the options too.
int option_parse_args(struct option_set *set, int argc, char **argv, bool mixed, int *left);

// Parses key=value:key=value, where \: stands for a colon and \\ for a backslash within a value. `name` is
// the variable's.
int option_parse_environment(struct option_set *set, const char *name, const char *text);

// Parses lines of the form key = value; a line that starts with # is a comment.
int option_parse_file(struct option_set *set, const char *name, struct str text);
int option_load_file(struct option_set *set, const char *path);

// Returns whether the row applies to the command, named as in cmds.def. All rows apply to `options`, which
// lists them.
bool option_applies(const struct option_row *row, const char *command);

// Reports options given on the command line that apply neither to the command nor to `also`, another one or
// NULL; returns -EINVAL if there are any, else 0.
int option_check_command(const struct option_set *set, const char *command, const char *also);

void option_print_value(const struct option_set *set, const struct option_row *row, struct out *o);
void option_print_source(const struct option_set *set, const struct option_row *row, struct out *o);
// Prints every option that some source has set, except those of the command line itself, in the syntax of
// option_parse_environment.
void option_print_environment(const struct option_set *set, struct out *o);
void option_print_usage(const struct option_row *row, struct out *o);  // --format=text|json

#endif
