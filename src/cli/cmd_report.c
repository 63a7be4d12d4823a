// SPDX-License-Identifier: MIT
// moat report: renders saved reports, JSON Lines as --format=json writes them, in any format.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/reports.h"

struct input {
    const char *name;
    VEC(char) text;
};

static int read_input(struct input *in, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    *in = (struct input){.name = standard ? "standard input" : path};
    FILE *file = standard ? stdin : fopen(path, "re");
    int err = file ? 0 : -errno;
    for (size_t got = 1; !err && got;) {
        if (vec_reserve(&in->text, 1 << 16)) {
            err = -ENOMEM;
            break;
        }
        errno = 0;
        got = fread(in->text.items + in->text.len, 1, 1 << 16, file);
        in->text.len += got;
        if (ferror(file))
            err = errno ? -errno : -EIO;
    }
    if (file && !standard)
        fclose(file);
    return err;
}

// Reports a line that cannot be read. A reason begins with "column N: " if the place is known.
static void report_bad_line(const struct input *in, size_t start, size_t len, const char *why,
                            struct diag_sink *sink)
{
    struct diag_source source = {in->name, {in->text.items, in->text.len}};
    unsigned long column = 0;
    if (strncmp(why, "column ", 7) == 0) {
        char *end;
        column = strtoul(why + 7, &end, 10);
        why = *end == ':' ? end + 1 + (end[1] == ' ') : why;
    }
    column = column > len + 1 ? len + 1 : column;
    diag_report(sink, DIAG_ERROR, &source, start + (column ? column - 1 : 0), 1, "%s", why);
}

static bool is_blank(struct str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (!strchr(" \t\r", line.ptr[i]))
            return false;
    return true;
}

// Returns whether the first line that is not blank may be an event: if not, the rest need not be read.
static bool looks_saved(const struct input *in)
{
    size_t at = 0;
    while (at < in->text.len && in->text.items[at] && strchr(" \t\r\n", in->text.items[at]))
        at++;
    return at == in->text.len || in->text.items[at] == '{';
}

static int take_all(struct reports *r, const struct input *in, struct diag_sink *sink)
{
    if (!looks_saved(in)) {
        struct diag_source source = {.name = in->name};
        diag_report(sink, DIAG_ERROR, &source, 0, 0,
                    "not a saved report: `moat --format=json --log-file=FILE PROGRAM` saves one");
        return 0;
    }
    for (size_t start = 0; start < in->text.len;) {
        const char *line = in->text.items + start;
        const char *nl = memchr(line, '\n', in->text.len - start);
        size_t len = nl ? (size_t)(nl - line) : in->text.len - start;
        char why[240] = "";
        int err = is_blank((struct str){line, len})
                      ? 0
                      : reports_take(r, (struct str){line, len}, false, why, sizeof why);
        if (err == -EINVAL)
            report_bad_line(in, start, len, why, sink);
        else if (err < 0)
            return err;
        start += len + 1;
    }
    return 0;
}

static int take_files(struct reports *r, int argc, char **argv)
{
    struct diag_printer printer;
    diag_printer_init(&printer, 20);
    int status = CLI_OK;
    for (int i = 0; i < argc && !status; i++) {
        struct input in;
        int err = read_input(&in, argv[i]);
        err = err ? err : take_all(r, &in, &printer.sink);
        vec_free(&in.text);
        if (err)
            status = cli_error("cannot read \"%.200s\": %s", argv[i], strerror(-err));
    }
    diag_printer_finish(&printer);
    return printer.sink.errors ? CLI_BAD : status;
}

static int load_suppressions(struct reports *r, const char *path)
{
    struct diag_printer printer;
    diag_printer_init(&printer, 20);
    int err = path ? reports_load_suppressions(r, path, &printer.sink) : 0;
    diag_printer_finish(&printer);
    return err ? CLI_BAD : CLI_OK;
}

int cmd_report(const struct options *options, int argc, char **argv)
{
    if (!argc)
        return cli_error("no file given; `moat help report` says more");
    struct render_setup setup = {.format = (enum option_format)options->format,
                                 .color = (enum option_color)options->color,
                                 .fd = STDOUT_FILENO};
    struct reports r;
    int status;
    if (reports_init(&r, options, &setup)) {
        status = cli_error("out of memory");
    } else {
        status = load_suppressions(&r, options->suppressions);
        status = status ? status : take_files(&r, argc, argv);
        int err = reports_finish(&r, -1);
        if (err)
            status = cli_error("cannot write the output: %s", strerror(-err));
        if (!status && r.errors)
            status = (int)options->error_exitcode;
    }
    reports_free(&r);
    return status;
}
