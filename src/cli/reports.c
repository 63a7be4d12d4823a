// SPDX-License-Identifier: MIT
#include "cli/reports.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/json_in.h"

enum { LARGEST_EVENT = 256 << 20 };  // bytes of memory

int reports_init(struct reports *r, const struct options *options, struct render_setup *setup)
{
    *r = (struct reports){.print_limit = (uint64_t)options->print_limit,
                          .brief = setup->format == OPTION_FORMAT_TEXT};
    r->demangler = demangle_new();
    setup->demangle =
        setup->format == OPTION_FORMAT_TEXT ? demangle_brief_with(r->demangler) : demangle_with(r->demangler);
    r->symbols = symbol_new();
    r->suppress = suppress_new();
    r->render = render_new(setup);
    return r->symbols && r->suppress && r->render ? 0 : -ENOMEM;
}

void reports_free(struct reports *r)
{
    for (size_t i = 0; i < r->processes.len; i++) {
        struct reports_process *p = &r->processes.items[i];
        if (p->waits)
            arena_free(&p->banner_arena);
        vec_free(&p->shown);
        vec_free(&p->given);
    }
    vec_free(&r->processes);
    render_free(r->render);
    suppress_free(r->suppress);
    symbol_free(r->symbols);
    demangle_free(r->demangler);
}

int reports_load_suppressions(struct reports *r, const char *path, struct diag_sink *sink)
{
    int err = suppress_load(r->suppress, path, sink);
    if (err && err != -EINVAL) {
        struct diag_source source = {.name = path};
        diag_report(sink, DIAG_ERROR, &source, 0, 0, "%s", strerror(-err));
    }
    return err;
}

static struct reports_process *find_process(struct reports *r, int pid)
{
    for (size_t i = 0; i < r->processes.len; i++)
        if (r->processes.items[i].pid == pid)
            return &r->processes.items[i];
    if (vec_push(&r->processes, (struct reports_process){.pid = pid}))
        return NULL;
    return &r->processes.items[r->processes.len - 1];
}

static bool was_shown(const struct reports_process *p, uint64_t id)
{
    for (size_t i = 0; i < p->shown.len; i++)
        if (p->shown.items[i] == id)
            return true;
    return false;
}

static bool is_heap(const char *library)
{
    return library && strcmp(library, "heap") == 0;
}

// Returns the number that users see. A saved report has those already.
static uint64_t number_of(const struct reports *r, struct reports_process *p, const char *library,
                          uint64_t id)
{
    struct reports_number n = {is_heap(library), id};
    if (!r->live || !id)
        return id;
    for (size_t i = 0; i < p->given.len; i++)
        if (p->given.items[i].heap == n.heap && p->given.items[i].id == id)
            return i + 1;
    return vec_push(&p->given, n) ? id : p->given.len;
}

// Counts an error and returns whether to render it.
static bool accept_error(struct reports *r, struct reports_process *p, const struct report *e)
{
    struct demangle demangle = demangle_with(r->demangler);
    if (suppress_match(r->suppress, e, &demangle)) {
        r->suppressed++;
        p->suppressed[is_heap(e->library)]++;
        return false;
    }
    r->errors++;
    if (r->print_limit && r->errors > r->print_limit) {
        r->unprinted++;
        return false;
    }
    return !vec_push(&p->shown, e->id);
}

static uint64_t value_of(const struct report_value *values, uint32_t count, const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(values[i].key, key) == 0)
            return values[i].value;
    return 0;
}

static bool any_watched(const struct report_end *end)
{
    for (uint32_t i = 0; i < end->nvalues; i++)
        if (end->values[i].value)
            return true;
    return false;
}

// Moves errors that are suppressed now from the summary's errors to its suppressed ones: a saved report does
// not count them.
static bool accept_end(struct reports *r, struct reports_process *p, struct report_end *end)
{
    uint64_t now = p->suppressed[is_heap(end->library)];
    uint64_t more = now > end->suppressed ? now - end->suppressed : 0;
    more = more < end->errors ? more : end->errors;
    end->errors -= more;
    end->suppressed += more;
    bool any = any_watched(end);
    r->ended++;
    r->watched += any;
    r->launches +=
        value_of(end->values, end->nvalues, "launches") + value_of(end->values, end->nvalues, "graphs");
    r->refused += value_of(end->uncovered, end->nuncovered, "modules_refused") +
                  value_of(end->uncovered, end->nuncovered, "launches_refused");
    p->running -= p->running > 0;
    return true;
}

// Processes a start. A process has one banner, which names all modes in which it is watched.
static void accept_start(struct reports *r, struct reports_process *p, struct report_start *s,
                         struct arena *a, bool fresh)
{
    bool by_heap = s->mode && strcmp(s->mode, "heap") == 0;
    s->also = !fresh && p->introduced && p->by_heap != by_heap;
    p->running = fresh ? 1 : p->running + 1;
    r->started++;
    if (s->also)
        return;
    p->introduced = true;
    p->parent = s->parent;
    p->by_heap = by_heap;
    p->shown.len = fresh ? 0 : p->shown.len;
    p->given.len = fresh ? 0 : p->given.len;
    if (fresh)
        memset(p->suppressed, 0, sizeof p->suppressed);
    char mode[100];
    if (r->live && !s->version)
        s->version = MOAT_VERSION;
    if (r->live && r->heap && s->mode && !by_heap) {
        snprintf(mode, sizeof mode, "%.80s,heap", s->mode);
        struct str both = arena_str(a, (struct str){mode, strlen(mode) + 1});
        s->mode = both.ptr ? both.ptr : s->mode;
    }
}

static bool accept(struct reports *r, struct report_line *line, struct arena *a, bool fresh)
{
    r->last_pid = render_pid(line);
    r->last_event = line->event;
    struct reports_process *p = find_process(r, r->last_pid);
    if (!p)
        return true;
    switch (line->event) {
    case REPORT_START: accept_start(r, p, &line->start, a, fresh); return true;
    case REPORT_ERROR:
        line->error.id = number_of(r, p, line->error.library, line->error.id);
        return accept_error(r, p, &line->error);
    case REPORT_REPEAT:
        line->repeat.id = number_of(r, p, line->repeat.library, line->repeat.id);
        return was_shown(p, line->repeat.id);
    case REPORT_NOTE:
    case REPORT_COUNTS:
    case REPORT_PROOFS:
    case REPORT_UNCHECKED: return true;
    case REPORT_END: return accept_end(r, p, &line->end);
    }
    return true;
}

// --- banners of children: most of them have nothing to report ----------------------------------------------

static bool can_wait(const struct reports *r, const struct report_line *line)
{
    return r->live && r->brief && line->event == REPORT_START && !line->start.also && line->start.mode &&
           (!is_heap(line->start.mode) || !line->start.nnotes) && line->start.parent != getpid();
}

// Returns whether a process of the guard has ended without having done anything that moat could watch, as
// processes that only compile kernels do.
static bool is_idle(const struct report_line *line)
{
    return line->event == REPORT_END && !is_heap(line->end.library) && !line->end.errors &&
           !line->end.suppressed && !line->end.nuncovered && !any_watched(&line->end);
}

static bool is_quiet(const struct report_line *line)
{
    return line->event == REPORT_END && is_heap(line->end.library) && !line->end.errors &&
           !line->end.suppressed && line->end.nvalues && line->end.values[0].value && !line->end.nuncovered;
}

static void show_banner(struct reports *r, struct reports_process *p)
{
    if (!p || !p->waits)
        return;
    p->waits = false;
    render_line(r->render, &p->banner_arena, &p->banner);
}

// Renders a line, or holds a banner back. Takes ownership of the arena.
static void show(struct reports *r, struct arena *a, struct report_line *line)
{
    struct reports_process *p = find_process(r, render_pid(line));
    if (p && p->waits && is_idle(line)) {
        p->waits = false;
        arena_free(&p->banner_arena);
        arena_free(a);
        return;
    }
    bool alone = p && p->waits && is_quiet(line);
    if (!alone)
        show_banner(r, p);
    if (p && can_wait(r, line)) {
        p->waits = true;
        p->banner_arena = *a;
        p->banner = *line;
        return;
    }
    if (alone)
        line->end.quiet = p->banner.start.program;
    render_line(r->render, a, line);
    if (alone) {
        p->waits = false;
        arena_free(&p->banner_arena);
    }
}

int reports_take(struct reports *r, struct str line, bool fresh, char *why, size_t size)
{
    struct arena a;
    struct report_line event;
    arena_init(&a, LARGEST_EVENT);
    int err = json_in_line(&a, line, &event, why, size);
    a.on_fail = NULL;
    if (err) {
        arena_free(&a);
        return err;
    }
    symbol_line(r->symbols, &a, &event);
    uint64_t suppressed = r->suppressed;
    if (accept(r, &event, &a, fresh))
        show(r, &a, &event);
    else
        arena_free(&a);
    return r->suppressed > suppressed ? REPORTS_SUPPRESSED : REPORTS_SHOWN;
}

void reports_note(struct reports *r, int pid, const char *text)
{
    struct arena a;
    arena_init(&a, 0);
    struct report_line line = {.event = REPORT_NOTE, .note = {pid, arena_str(&a, str_from(text)).ptr}};
    if (line.note.text)
        show(r, &a, &line);
}

static void note_signal(struct reports *r, int pid, int number)
{
    char text[200];
    const char *hint =
        number == SIGSEGV ? "; code on the host may have used a pointer to memory of the device" : "";
    snprintf(text, sizeof text, "this process ended without a summary: by signal %d (%s)%s", number,
             strsignal(number), hint);
    reports_note(r, pid, text);
}

void reports_note_unended(struct reports *r, int status)
{
    for (size_t i = 0; i < r->processes.len; i++) {
        const struct reports_process *p = &r->processes.items[i];
        if (!p->running)
            continue;
        bool lives = !kill(p->pid, 0) || errno == EPERM;
        if (!lives && WIFSIGNALED(status) && p->parent == getpid())
            note_signal(r, p->pid, WTERMSIG(status));
        else
            reports_note(
                r, p->pid,
                lives ? "this process outlives the program and prints its further reports itself"
                      : "this process ended without a summary: by a signal, by _exit, or because it became "
                        "another program");
    }
}

int reports_finish(struct reports *r, int exit_code)
{
    if (r->unprinted) {
        char text[120];
        snprintf(text, sizeof text, "%llu further %s not printed (--print-limit=%llu)",
                 (unsigned long long)r->unprinted, r->unprinted == 1 ? "error was" : "errors were",
                 (unsigned long long)r->print_limit);
        reports_note(r, r->last_pid, text);
    }
    return render_finish(r->render, exit_code);
}
