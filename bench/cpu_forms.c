// SPDX-License-Identifier: MIT
// cpu_forms FILE.ptx...: which instructions of these texts the CPU device executes, as Markdown. A text is
// loaded; while an instruction is refused, it is noted, blanked out, and the text loaded again.
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"
#include "exec/space.h"
#include "ptx/ptx.h"

enum { MOST_FORMS = 20000 };

struct form {
    char *name;
    enum ptx_op_id op;
    bool executed;
};
static struct form forms[MOST_FORMS];
static size_t nforms;

// What is refused for another reason than its spelling.
static char reasons[20][240];
static unsigned nreasons;

static const char *const op_names[] = {
#define OP(id, name, ...) name,
#include "ptx/ops.def"
};

// --- what the device requires of the loader of a program ---

static uint64_t place(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align)
{
    size_t unit = align < 16 ? 16 : align;
    void *p = aligned_alloc(unit, (size + unit) / unit * unit);
    if (p)
        memset(p, 0, (size + unit) / unit * unit);
    return (uintptr_t)p;
}

static void heap_alloc(void *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at)
{
    memset(at, 0, 32 * sizeof *at);
}

static uint32_t heap_free(void *ctx, uint32_t lanes, const uint64_t *at)
{
    return lanes;
}

static void print(void *ctx, const char *text, size_t len)
{
}

static const struct exec_host host = {
    .place = place, .heap_alloc = heap_alloc, .heap_free = heap_free, .print = print};

// --- texts ---

struct first {
    struct diag_sink sink;
    size_t offset;
    char message[240];
    bool set;
};

static void keep_first(struct diag_sink *sink, const struct diag *d)
{
    struct first *f = (struct first *)sink;
    if (d->severity != DIAG_ERROR || f->set)
        return;
    f->set = true;
    f->offset = d->offset;
    memcpy(f->message, d->message, sizeof f->message);
}

static struct form *find_form(struct str name)
{
    for (size_t i = 0; i < nforms; i++)
        if (str_eq(str_from(forms[i].name), name))
            return &forms[i];
    return NULL;
}

// Notes the forms of a text, once before it is loaded and once as it could be.
static void note_forms(const char *path, struct str text, bool executed)
{
    struct first sink = {.sink.emit = keep_first};
    struct ptx_module *m;
    if (ptx_parse(path, text, &sink.sink, NULL, &m))
        errx(1, "%s: %s", path, sink.message);
    for (uint32_t i = 0; i < m->nforms; i++) {
        const struct ptx_form *f = m->forms[i];
        struct form *known = find_form(f->name);
        if (known)
            known->executed |= executed;
        if (known || f->id == PTX_OP_UNKNOWN)
            continue;
        if (nforms == MOST_FORMS)
            errx(1, "too many forms");
        forms[nforms++] = (struct form){strndup(f->name.ptr, f->name.len), f->id, executed};
    }
    ptx_free(m);
}

// Without the name behind "as in".
static void note_reason(const char *message)
{
    char reason[sizeof *reasons];
    const char *name = strstr(message, ", as in ");
    snprintf(reason, sizeof reason, "%.*s", name ? (int)(name - message) : (int)strlen(message), message);
    for (unsigned i = 0; i < nreasons; i++)
        if (strcmp(reasons[i], reason) == 0)
            return;
    if (nreasons < sizeof reasons / sizeof *reasons)
        memcpy(reasons[nreasons++], reason, sizeof reason);
}

// Removes the statement at offset from the text: from the start of its line, where a guard may stand, to its
// semicolon.
static bool refuse(char *text, size_t offset, const char *message)
{
    size_t start = offset, end = offset + strcspn(text + offset, ";");
    while (start && !strchr("\n;{}", text[start - 1]))
        start--;
    size_t at = start + strspn(text + start, " \t\r\n");
    if (text[at] == '@')
        at += strcspn(text + at, " \t");
    at += strspn(text + at, " \t");
    struct form *f = find_form((struct str){text + at, strcspn(text + at, " \t\r\n;")});
    if (!f || !text[end])
        return false;
    if (!strstr(message, f->name) && !strstr(message, "nothing defines") &&
        !strstr(message, "is not declared"))
        note_reason(message);
    memset(text + start, ' ', end + 1 - start);
    return true;
}

// Removes the function whose head stands at offset, a declaration or a definition. Its line starts with it.
static bool refuse_function(char *text, size_t offset, const char *message)
{
    size_t start = offset, end = offset + strcspn(text + offset, ";{");
    while (start && text[start - 1] != '\n')
        start--;
    if (!strstr(message, " as in ") || !text[end])
        return false;
    note_reason(message);
    for (int depth = text[end] == '{'; depth && text[end + 1];) {
        end++;
        depth += (text[end] == '{') - (text[end] == '}');
    }
    memset(text + start, ' ', end + 1 - start);
    return true;
}

static bool take_out(char *text, int code, const struct first *sink)
{
    bool gone = code == -ENOENT || (code == -EINVAL && strstr(sink->message, "is not declared"));
    if ((code != -ENOTSUP && !gone) || !sink->set)
        return false;
    return refuse(text, sink->offset, sink->message) || refuse_function(text, sink->offset, sink->message);
}

static void load(const char *path, char *text, size_t len)
{
    for (;;) {
        struct first sink = {.sink.emit = keep_first};
        struct exec_text t = {path, {text, len}};
        struct exec_program *program = NULL;
        int err = exec_load(&t, 1, &host, &sink.sink, &program);
        exec_program_free(program);
        if (!err) {
            note_forms(path, t.ptx, true);
            return;
        }
        if (!take_out(text, err, &sink)) {
            warnx("%s: offset %zu: %s: %s", path, sink.offset, strerror(-err), sink.message);
            return;
        }
    }
}

static void read_text(const char *path)
{
    static char text[4 << 20];
    FILE *file = fopen(path, "r");
    if (!file)
        err(1, "%s", path);
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = 0;
    note_forms(path, (struct str){text, len}, false);
    load(path, text, len);
}

// --- tables ---

static void print_some(enum ptx_op_id op, unsigned all, unsigned refused)
{
    printf("| `%s` | %u of %u |", op_names[op], all - refused, all);
    unsigned shown = 0;
    for (size_t i = 0; i < nforms; i++)
        if (forms[i].op == op && !forms[i].executed && shown++ < 6)
            printf(" `%s`", forms[i].name);
    printf(shown > 6 ? " and %u more |\n" : " |\n", shown - 6);
}

int main(int argc, char **argv)
{
    static unsigned all[PTX_OP_COUNT], refused[PTX_OP_COUNT];
    if (space_init())
        errx(1, "no address space");
    for (int i = 1; i < argc; i++)
        read_text(argv[i]);
    size_t bad = 0, whole = 0, some = 0;
    for (size_t i = 0; i < nforms; i++) {
        all[forms[i].op]++;
        refused[forms[i].op] += !forms[i].executed;
        bad += !forms[i].executed;
    }
    for (int i = 0; i < PTX_OP_COUNT; i++) {
        whole += all[i] && !refused[i];
        some += refused[i] && refused[i] < all[i];
    }
    printf(
        "Of the %zu spellings of instructions in `test/ptx/forms`, which has every operation and modifier of "
        "PTX ISA "
        "9.0,\nthe CPU device executes %zu; of %d operations %zu in all their spellings and %zu in some.\n\n",
        nforms, nforms - bad, PTX_OP_COUNT, whole, some);
    printf("In all spellings:");
    for (int i = 0; i < PTX_OP_COUNT; i++)
        if (all[i] && !refused[i])
            printf(" `%s`", op_names[i]);
    printf(".\n\n| in some | spellings | not these |\n| --- | --- | --- |\n");
    for (int i = 0; i < PTX_OP_COUNT; i++)
        if (refused[i] && refused[i] < all[i])
            print_some(i, all[i], refused[i]);
    printf("\nNot yet:");
    for (int i = 0; i < PTX_OP_COUNT; i++)
        if (refused[i] && refused[i] == all[i])
            printf(" `%s`", op_names[i]);
    printf(".\n");
    for (unsigned i = 0; i < nreasons; i++)
        printf("%s%s%s", i ? "; " : "\nWhatever the instruction: ", reasons[i],
               i + 1 < nreasons ? "" : ".\n");
    return 0;
}
