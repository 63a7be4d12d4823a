// SPDX-License-Identifier: MIT
#include "base/option.h"

static const struct option_source *source_of(const struct option_set *set, const struct option_row *row)
{
    return &set->sources[row - set->table->rows];
}

static void print_list(uint64_t list, const char *const *words, struct out *o)
{
    const char *comma = "";
    for (int i = 0; words[i]; i++)
        if (list >> i & 1) {
            out_cstr(o, comma);
            out_cstr(o, words[i]);
            comma = ",";
        }
}

static void print_ms(int64_t microseconds, struct out *o)
{
    int part = (int)(microseconds % 1000), digits = 3;
    out_i64(o, microseconds / 1000);
    for (; part && part % 10 == 0; part /= 10)
        digits--;
    if (part)
        out_fmt(o, ".%0*d", digits, part);
}

void option_print_value(const struct option_set *set, const struct option_row *row, struct out *o)
{
    const void *v = set->values + row->offset;
    if (!row->initial && source_of(set, row)->origin == OPTION_BY_DEFAULT) {
        out_cstr(o, "not set");
        return;
    }
    switch (row->type) {
    case OPTION_FLAG: out_cstr(o, *(OPTION_C_FLAG const *)v ? "yes" : "no"); break;
    case OPTION_INT: out_i64(o, *(OPTION_C_INT const *)v); break;
    case OPTION_MS: print_ms(*(OPTION_C_MS const *)v, o); break;
    case OPTION_SIZE: out_u64(o, *(OPTION_C_SIZE const *)v); break;
    case OPTION_WORD: out_cstr(o, row->limits.words[*(OPTION_C_WORD const *)v]); break;
    case OPTION_LIST: print_list(*(OPTION_C_LIST const *)v, row->limits.words, o); break;
    case OPTION_STRING: out_cstr(o, *(OPTION_C_STRING const *)v); break;
    }
}

void option_print_source(const struct option_set *set, const struct option_row *row, struct out *o)
{
    const struct option_source *source = source_of(set, row);
    switch (source->origin) {
    case OPTION_BY_DEFAULT: out_cstr(o, "default"); break;
    case OPTION_BY_FILE: out_fmt(o, "%s:%u", source->file, source->line); break;
    case OPTION_BY_ENVIRONMENT: out_cstr(o, "MOAT_OPTIONS"); break;
    case OPTION_BY_COMMAND_LINE: out_cstr(o, "command line"); break;
    }
}

static void print_escaped(struct str s, struct out *o)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == ':' || s.ptr[i] == '\\')
            out_char(o, '\\');
        out_char(o, s.ptr[i]);
    }
}

void option_print_environment(const struct option_set *set, struct out *o)
{
    const char *colon = "";
    for (size_t i = 0; i < set->table->count; i++) {
        const struct option_row *row = &set->table->rows[i];
        if (set->sources[i].origin == OPTION_BY_DEFAULT || !*row->commands)
            continue;
        out_fmt(o, "%s%s=", colon, row->key);
        colon = ":";
        if (row->type == OPTION_STRING)
            print_escaped(str_from(*(OPTION_C_STRING const *)(set->values + row->offset)), o);
        else
            option_print_value(set, row, o);
    }
}

void option_print_usage(const struct option_row *row, struct out *o)
{
    out_fmt(o, "--%s", row->key);
    if (row->type == OPTION_FLAG)
        return;
    out_char(o, '=');
    if (row->argument)
        out_cstr(o, row->argument);
    for (int i = 0; row->limits.words && row->limits.words[i]; i++)
        out_fmt(o, "%s%s", i ? "|" : "", row->limits.words[i]);
}
