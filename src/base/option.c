// SPDX-License-Identifier: MIT
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/near.h"

enum { SHOWN = 60, LARGEST_FILE = 1 << 20 };

#define ANY
#define RANGE(min, max) .limits.least = min, .limits.most = max,
#define W(id, word) word,
#define WORDS(name, list) .limits.words = (const char *const[]){list NULL},
#define OPTION(field, name, kind, start, bounds, value, where, text) \
    {.key = name,                                                    \
     .type = OPTION_##kind,                                          \
     .initial = start,                                               \
     bounds.argument = value,                                        \
     .commands = where,                                              \
     .help = text,                                                   \
     .offset = offsetof(struct options, field)},
static const struct option_row rows[] = {
#include "base/options.def"
};

const struct option_table option_table = {rows, sizeof rows / sizeof *rows};

// A key and perhaps a value, from one source.
struct entry {
    enum option_origin origin;
    struct diag_source source;
    size_t key_at, value_at;  // offsets in source.text
    struct str key, value;    // value.ptr == NULL: no value
    const char *file;
    unsigned line;
};

static int bad(const struct option_set *set, const struct entry *e, bool in_value, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static int bad(const struct option_set *set, const struct entry *e, bool in_value, const char *fmt, ...)
{
    size_t at = in_value && e->value.ptr ? e->value_at : e->key_at;
    size_t len = in_value && e->value.ptr ? e->value.len : e->key.len;
    if (!e->source.text.ptr)
        at = len = 0;
    va_list args;
    va_start(args, fmt);
    diag_vreport(set->sink, DIAG_ERROR, &e->source, at, len, fmt, args);
    va_end(args);
    return -EINVAL;
}

static struct str shown(struct str s)
{
    return (struct str){s.ptr, s.len < SHOWN ? s.len : SHOWN};
}

static const struct option_row *find_row(const struct option_table *table, struct str key)
{
    for (size_t i = 0; i < table->count; i++)
        if (str_eq(key, str_from(table->rows[i].key)))
            return &table->rows[i];
    return NULL;
}

static int unknown_key(const struct option_set *set, const struct entry *e)
{
    struct near near;
    near_init(&near, e->key);
    for (size_t i = 0; i < set->table->count; i++)
        near_offer(&near, set->table->rows[i].key);
    const char *dashes = e->origin == OPTION_BY_COMMAND_LINE ? "--" : "";
    if (near.best)
        return bad(set, e, false, "unknown option; did you mean %s%s?", dashes, near.best);
    return bad(set, e, false, "unknown option; `moat options` lists them all");
}

static struct option_source *source_of(const struct option_set *set, const struct option_row *row)
{
    return &set->sources[row - set->table->rows];
}

// --- values ---

union value {
    OPTION_C_FLAG flag;
    OPTION_C_INT integer;
    OPTION_C_SIZE size;
    OPTION_C_WORD word;
    OPTION_C_LIST list;
    OPTION_C_STRING string;
};

static int parse_flag(const struct option_set *set, const struct entry *e, union value *v)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(e->value, str_from(words[i]))) {
            v->flag = i % 2;
            return 0;
        }
    return bad(set, e, true, "\"" STR_FMT "\" is neither yes nor no", STR_ARG(shown(e->value)));
}

// Reads digits, decimal or 0x, into *n, and sets *rest to what follows them. Returns -ERANGE if the number is
// too large.
static int parse_digits(struct str text, uint64_t *n, struct str *rest)
{
    unsigned base = text.len > 2 && text.ptr[0] == '0' && (text.ptr[1] | 32) == 'x' ? 16 : 10;
    size_t i = base == 16 ? 2 : 0, start = i;
    for (*n = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (!(base == 16 ? isxdigit(c) : isdigit(c)))
            break;
        unsigned digit = isdigit(c) ? c - 48u : (c | 32u) - 'a' + 10;
        if (__builtin_mul_overflow(*n, base, n) || __builtin_add_overflow(*n, digit, n))
            return -ERANGE;
    }
    *rest = str_skip(text, i);
    return i > start ? 0 : -EINVAL;
}

static int out_of_range(const struct option_set *set, const struct entry *e, const struct option_limits *l)
{
    return bad(set, e, true, STR_FMT " is not within %lld to %lld", STR_ARG(shown(e->value)),
               (long long)l->least, (long long)l->most);
}

static int parse_int(const struct option_set *set, const struct entry *e, const struct option_row *row,
                     union value *v)
{
    static const struct option_limits widest = {INT64_MIN, INT64_MAX, NULL};
    const struct option_limits *l = row->limits.least == row->limits.most ? &widest : &row->limits;
    bool negative = e->value.len && e->value.ptr[0] == '-';
    uint64_t n;
    struct str rest;
    int err = parse_digits(str_skip(e->value, negative), &n, &rest);
    if (err == -EINVAL || (!err && rest.len))
        return bad(set, e, true, "\"" STR_FMT "\" is not a whole number", STR_ARG(shown(e->value)));
    if (err || n > (uint64_t)INT64_MAX + negative)
        return out_of_range(set, e, l);
    v->integer = (int64_t)(negative ? 0 - n : n);
    if (v->integer < l->least || v->integer > l->most)
        return out_of_range(set, e, l);
    return 0;
}

// Parses milliseconds, with up to three digits after the point.
static int parse_ms(const struct option_set *set, const struct entry *e, const struct option_row *row,
                    union value *v)
{
    uint64_t whole, parts = 0;
    struct str rest;
    int err = parse_digits(e->value, &whole, &rest);
    if (!err && rest.len > 1 && rest.ptr[0] == '.') {
        unsigned unit = 1000;
        for (rest = str_skip(rest, 1); rest.len && unit > 1 && isdigit((unsigned char)rest.ptr[0]);
             rest = str_skip(rest, 1))
            parts += (uint64_t)(rest.ptr[0] - '0') * (unit /= 10);
    }
    if (err == -EINVAL || (!err && rest.len))
        return bad(set, e, true, "\"" STR_FMT "\" is not a number of milliseconds such as 2 or 0.5",
                   STR_ARG(shown(e->value)));
    if (err || whole > (uint64_t)row->limits.most || whole * 1000 + parts > (uint64_t)row->limits.most * 1000)
        return out_of_range(set, e, &row->limits);
    v->integer = (int64_t)(whole * 1000 + parts);
    return 0;
}

static int parse_size(const struct option_set *set, const struct entry *e, const struct option_row *row,
                      union value *v)
{
    static const char units[] = "kmgt";
    struct str rest;
    int err = parse_digits(e->value, &v->size, &rest);
    const char *unit = rest.len == 1 && !err ? memchr(units, rest.ptr[0] | 32, 4) : NULL;
    if (err == -EINVAL || (!err && rest.len && !unit))
        return bad(set, e, true, "\"" STR_FMT "\" is not a size such as 4096, 64k, 2M or 1G",
                   STR_ARG(shown(e->value)));
    if (!err && unit && __builtin_mul_overflow(v->size, 1ull << 10 * (unit - units + 1), &v->size))
        err = -ERANGE;
    if (err)
        return bad(set, e, true, STR_FMT " is too large", STR_ARG(shown(e->value)));
    const struct option_limits *l = &row->limits;
    if (l->least != l->most && (v->size < (uint64_t)l->least || v->size > (uint64_t)l->most))
        return out_of_range(set, e, l);
    return 0;
}

static int find_word(const struct option_set *set, const struct entry *e, const struct option_row *row,
                     struct str word)
{
    const char *const *words = row->limits.words;
    struct near near;
    near_init(&near, word);
    for (int i = 0; words[i]; i++) {
        if (str_eq(word, str_from(words[i])))
            return i;
        near_offer(&near, words[i]);
    }
    if (near.best)
        return bad(set, e, true, "unknown word \"" STR_FMT "\"; did you mean %s?", STR_ARG(shown(word)),
                   near.best);
    char all[160] = "";
    for (size_t i = 0, n = 0; words[i] && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", words[i]);
    return bad(set, e, true, "unknown word \"" STR_FMT "\"; known are %s", STR_ARG(shown(word)), all);
}

static int parse_list(const struct option_set *set, const struct entry *e, const struct option_row *row,
                      union value *v)
{
    struct str left = e->value;
    for (v->list = 0;;) {
        const char *comma = left.len ? memchr(left.ptr, ',', left.len) : NULL;
        struct str word = {left.ptr, comma ? (size_t)(comma - left.ptr) : left.len};
        int n = find_word(set, e, row, word);
        if (n < 0)
            return n;
        v->list |= 1ull << n;
        if (!comma)
            return 0;
        left = str_skip(left, word.len + 1);
    }
}

static int parse_value(struct option_set *set, const struct entry *e, const struct option_row *row,
                       union value *v)
{
    switch (row->type) {
    case OPTION_FLAG: return parse_flag(set, e, v);
    case OPTION_INT: return parse_int(set, e, row, v);
    case OPTION_MS: return parse_ms(set, e, row, v);
    case OPTION_SIZE: return parse_size(set, e, row, v);
    case OPTION_WORD: v->word = find_word(set, e, row, e->value); return v->word < 0 ? v->word : 0;
    case OPTION_LIST: return parse_list(set, e, row, v);
    case OPTION_STRING:
        if (memchr(e->value.ptr, 0, e->value.len))
            return bad(set, e, true, "a zero byte in a text");
        v->string = arena_str(&set->arena, e->value).ptr;
        return v->string ? 0 : -ENOMEM;
    }
    return -EINVAL;
}

static size_t value_size(enum option_type type)
{
    static const size_t sizes[] = {
        [OPTION_FLAG] = sizeof(OPTION_C_FLAG),     [OPTION_INT] = sizeof(OPTION_C_INT),
        [OPTION_MS] = sizeof(OPTION_C_MS),         [OPTION_SIZE] = sizeof(OPTION_C_SIZE),
        [OPTION_WORD] = sizeof(OPTION_C_WORD),     [OPTION_LIST] = sizeof(OPTION_C_LIST),
        [OPTION_STRING] = sizeof(OPTION_C_STRING),
    };
    return sizes[type];
}

static int apply(struct option_set *set, const struct option_row *row, const struct entry *e)
{
    if (!*row->commands && (e->origin == OPTION_BY_FILE || e->origin == OPTION_BY_ENVIRONMENT))
        return bad(set, e, false, "can be given on the command line only");
    union value v;
    int err = parse_value(set, e, row, &v);
    if (err)
        return err;
    struct option_source *source = source_of(set, row);
    if (e->origin < source->origin)
        return 0;
    *source = (struct option_source){e->origin, e->file, e->line};
    memcpy(set->values + row->offset, &v, value_size(row->type));
    return 0;
}

// Finds the row of an entry; "flag" alone means yes and "no-flag" means no.
static int resolve(const struct option_set *set, struct entry *e, const struct option_row **found)
{
    const struct option_row *row = find_row(set->table, e->key);
    if (row && row->type == OPTION_FLAG && !e->value.ptr)
        e->value = STR("yes");
    if (!row && str_starts(e->key, STR("no-"))) {
        row = find_row(set->table, str_skip(e->key, 3));
        if (row && row->type != OPTION_FLAG)
            return bad(set, e, false, "%s is not a flag", row->key);
        if (row && e->value.ptr)
            return bad(set, e, true, "a flag that is negated takes no value");
        e->value = STR("no");
    }
    *found = row;
    return row ? 0 : unknown_key(set, e);
}

static int parse_entry(struct option_set *set, struct entry *e)
{
    const struct option_row *row;
    int err = resolve(set, e, &row);
    if (err)
        return err;
    if (!e->value.ptr)
        return bad(set, e, false, "needs a value");
    return apply(set, row, e);
}

// --- sources ---

int option_init(struct option_set *set, const struct option_table *table, void *values,
                struct diag_sink *sink)
{
    *set = (struct option_set){.table = table, .values = values, .sink = sink};
    arena_init(&set->arena, 0);
    set->sources = ARENA_ARRAY(&set->arena, struct option_source, table->count);
    if (!set->sources)
        return -ENOMEM;
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        union value v = {0};
        struct entry e = {.source.name = row->key, .key = str_from(row->key)};
        int err = 0;
        if (row->initial) {
            e.value = str_from(row->initial);
            err = parse_value(set, &e, row, &v);
        }
        if (err)
            return err;
        memcpy(set->values + row->offset, &v, value_size(row->type));
    }
    return 0;
}

void option_free(struct option_set *set)
{
    if (set)
        arena_free(&set->arena);
}

// Records err in *first: the first failure is kept until all entries have been parsed. Returns false if out
// of memory, which ends the parse at once.
static bool keep_first(int err, int *first)
{
    if (err && !*first)
        *first = err;
    if (err == -ENOMEM)
        *first = err;
    return err != -ENOMEM;
}

static int parse_arg(struct option_set *set, char **argv, int argc, int *i)
{
    char name[SHOWN + 8];
    // The two short forms that people try first.
    struct str arg = str_from(strcmp(argv[*i], "-h") == 0   ? "--help"
                              : strcmp(argv[*i], "-V") == 0 ? "--version"
                                                            : argv[*i]);
    struct entry e = {.origin = OPTION_BY_COMMAND_LINE, .source.name = name};
    const char *equals = memchr(arg.ptr, '=', arg.len);
    if (equals) {
        e.value = str_skip(arg, (size_t)(equals - arg.ptr) + 1);
        arg.len = (size_t)(equals - arg.ptr);
    }
    snprintf(name, sizeof name, STR_FMT, STR_ARG(shown(arg)));
    if (!str_starts(arg, STR("--")))
        return bad(set, &e, false, "unknown option; they all start with --");
    e.key = str_skip(arg, 2);
    const struct option_row *row;
    int err = resolve(set, &e, &row);
    if (err)
        return err;
    if (!e.value.ptr && *i + 1 < argc)
        e.value = str_from(argv[++*i]);
    if (!e.value.ptr)
        return bad(set, &e, false, "needs a value");
    return apply(set, row, &e);
}

int option_parse_args(struct option_set *set, int argc, char **argv, bool mixed, int *left)
{
    int first = 0, operands = 0, i = 0;
    for (; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--") == 0) {
            i++;
            break;
        }
        if (arg[0] == '-' && arg[1]) {
            if (!keep_first(parse_arg(set, argv, argc, &i), &first))
                break;
        } else if (mixed) {
            argv[operands++] = argv[i];
        } else {
            break;
        }
    }
    while (i < argc)
        argv[operands++] = argv[i++];
    *left = operands;
    return first;
}

// Parses one key=value of an environment string; buf receives its value without escapes.
static int parse_segment(struct option_set *set, struct entry *e, struct str text, char *buf)
{
    const char *equals = memchr(text.ptr, '=', text.len);
    e->key = text;
    if (equals) {
        e->key.len = (size_t)(equals - text.ptr);
        e->value_at = e->key_at + e->key.len + 1;
        size_t n = 0;
        for (const char *p = equals + 1; p < text.ptr + text.len; p++) {
            if (*p == '\\' && p + 1 < text.ptr + text.len && (p[1] == ':' || p[1] == '\\'))
                p++;
            buf[n++] = *p;
        }
        e->value = (struct str){buf, n};
    }
    return parse_entry(set, e);
}

int option_parse_environment(struct option_set *set, const char *name, const char *text)
{
    size_t len = strlen(text), start = 0;
    char *buf = mem_alloc(len + 1);
    if (!buf)
        return -ENOMEM;
    int first = 0;
    while (start < len) {
        size_t end = start;
        while (end < len && text[end] != ':')
            end += text[end] == '\\' && end + 1 < len ? 2 : 1;
        struct entry e = {.origin = OPTION_BY_ENVIRONMENT, .source = {name, {text, len}}, .key_at = start};
        if (end > start &&
            !keep_first(parse_segment(set, &e, (struct str){text + start, end - start}, buf), &first))
            break;
        start = end + 1;
    }
    mem_free(buf);
    return first;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct str trim(struct str s)
{
    while (s.len && is_blank(s.ptr[0]))
        s = str_skip(s, 1);
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static int parse_line(struct option_set *set, struct entry *e, struct str line)
{
    struct str text = trim(line);
    if (!text.len || text.ptr[0] == '#')
        return 0;
    const char *start = e->source.text.ptr, *equals = memchr(text.ptr, '=', text.len);
    e->key = text;
    if (equals) {
        e->key = trim((struct str){text.ptr, (size_t)(equals - text.ptr)});
        e->value = trim(str_skip(text, (size_t)(equals - text.ptr) + 1));
        e->value_at = (size_t)(e->value.ptr - start);
    }
    e->key_at = (size_t)(e->key.ptr - start);
    return parse_entry(set, e);
}

int option_parse_file(struct option_set *set, const char *name, struct str text)
{
    int first = 0;
    struct str left = text;
    for (unsigned line = 1; left.len; line++) {
        const char *nl = memchr(left.ptr, '\n', left.len);
        size_t len = nl ? (size_t)(nl - left.ptr) : left.len;
        struct entry e = {.origin = OPTION_BY_FILE, .source = {name, text}, .file = name, .line = line};
        if (!keep_first(parse_line(set, &e, (struct str){left.ptr, len}), &first))
            break;
        left = str_skip(left, nl ? len + 1 : len);
    }
    return first;
}

static int bad_file(const struct option_set *set, const char *path, const char *why)
{
    struct diag_source source = {.name = path};
    diag_report(set->sink, DIAG_ERROR, &source, 0, 0, "%s", why);
    return -EINVAL;
}

int option_load_file(struct option_set *set, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return bad_file(set, path, strerror(errno));
    int err = -ENOMEM;
    char *text = mem_alloc(LARGEST_FILE + 1);
    if (!text)
        goto out;
    errno = 0;
    size_t len = fread(text, 1, LARGEST_FILE + 1, file);
    if (ferror(file))
        err = bad_file(set, path, strerror(errno ? errno : EIO));
    else if (len > LARGEST_FILE)
        err = bad_file(set, path, "too large for a configuration file");
    else
        err = option_parse_file(set, path, (struct str){text, len});
out:
    mem_free(text);
    fclose(file);
    return err;
}

// --- commands ---

bool option_applies(const struct option_row *row, const char *command)
{
    size_t len = strlen(command);
    for (const char *p = row->commands; *p;) {
        size_t n = strcspn(p, ",");
        if (n == len && memcmp(p, command, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return !*row->commands || strcmp(command, "options") == 0;
}

int option_check_command(const struct option_set *set, const char *command, const char *also)
{
    int err = 0;
    for (size_t i = 0; i < set->table->count; i++) {
        const struct option_row *row = &set->table->rows[i];
        if (set->sources[i].origin != OPTION_BY_COMMAND_LINE || option_applies(row, command) ||
            (also && option_applies(row, also)))
            continue;
        char name[SHOWN + 8];
        snprintf(name, sizeof name, "--%s", row->key);
        struct entry e = {.source.name = name};
        err = bad(set, &e, false, "not an option of `moat %s`, but of: %s", command, row->commands);
    }
    return err;
}
