// SPDX-License-Identifier: MIT
#include "cli/render.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "report/json_out.h"
#include "report/log_name.h"
#include "report/sarif.h"
#include "report/text.h"
#include "report/xml.h"

enum { BUFFER_SIZE = 4 << 20, TIMEOUT_MS = 10000 };  // for one event

struct kept {
    struct arena arena;
    struct report_line line;
};

// A file that events are written to.
struct sink {
    char *name;  // NULL: the setup's descriptor
    int fd;
    bool colour;
    VEC(struct kept) kept;  // for a document
};

struct render {
    struct render_setup setup;
    VEC(struct sink) sinks;
    char root[PATH_MAX];
    char *buffer;
    int error;  // first failure to write anywhere
};

struct render *render_new(const struct render_setup *setup)
{
    struct render *r = mem_zalloc(1, sizeof *r);
    char *buffer = mem_alloc(BUFFER_SIZE);
    if (!r || !buffer) {
        mem_free(r);
        mem_free(buffer);
        return NULL;
    }
    r->setup = *setup;
    r->buffer = buffer;
    if (!getcwd(r->root, sizeof r->root))
        r->root[0] = 0;
    return r;
}

static void sink_free(struct sink *s)
{
    for (size_t i = 0; i < s->kept.len; i++)
        arena_free(&s->kept.items[i].arena);
    vec_free(&s->kept);
    if (s->name && s->fd > STDERR_FILENO)
        close(s->fd);
    mem_free(s->name);
}

void render_free(struct render *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->sinks.len; i++)
        sink_free(&r->sinks.items[i]);
    vec_free(&r->sinks);
    mem_free(r->buffer);
    mem_free(r);
}

// --- where to ---

static bool wants_colour(enum option_color color, int fd)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (color != OPTION_COLOR_AUTO)
        return color == OPTION_COLOR_ALWAYS;
    return (!no || !*no) && (!terminal || strcmp(terminal, "dumb") != 0) && isatty(fd);
}

static char *copy_name(const char *name)
{
    size_t size = strlen(name) + 1;
    char *copy = mem_alloc(size);
    return copy ? memcpy(copy, name, size) : NULL;
}

static void say_unwritable(const struct sink *s, int err)
{
    cli_error("cannot write the log file \"%.200s\": %s; reports go to standard error", s->name,
              strerror(-err));
}

// Opens a file for appending, so that a process which still reports after the command has ended does not
// overwrite it.
static int open_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    return fd < 0 ? -errno : fd;
}

// Adds a sink for a file, or with name NULL for the setup's descriptor. If the file cannot be opened, the
// sink is standard error.
static struct sink *add_sink(struct render *r, const char *name, int *err)
{
    struct sink s = {.fd = r->setup.fd};
    *err = 0;
    if (name) {
        s.name = copy_name(name);
        s.fd = open_file(name);
    }
    if ((name && !s.name) || vec_push(&r->sinks, s)) {
        *err = -ENOMEM;
        mem_free(s.name);
        return NULL;
    }
    struct sink *added = &r->sinks.items[r->sinks.len - 1];
    if (added->fd < 0) {
        *err = added->fd;
        added->fd = STDERR_FILENO;
    }
    added->colour = wants_colour(r->setup.color, added->fd);
    return added;
}

static struct sink *find_sink(struct render *r, int pid)
{
    char name[PATH_MAX];
    bool to_file = r->setup.log_file && !log_name_expand(r->setup.log_file, pid, name, sizeof name);
    for (size_t i = 0; i < r->sinks.len; i++) {
        struct sink *s = &r->sinks.items[i];
        if (to_file ? s->name && strcmp(s->name, name) == 0 : !s->name)
            return s;
    }
    int err;
    struct sink *s = add_sink(r, to_file ? name : NULL, &err);
    if (s && err)
        say_unwritable(s, err);
    return s;
}

static int check_folder(char *name)
{
    char *slash = strrchr(name, '/');
    if (slash)
        slash[slash == name] = 0;
    return access(slash ? name : ".", W_OK | X_OK) ? -errno : 0;
}

static int try_log(struct render *r, char *name, size_t size)
{
    int err = log_name_expand(r->setup.log_file, getpid(), name, size);
    if (err)
        return err;
    if (log_name_per_process(r->setup.log_file))
        return check_folder(name);
    if (add_sink(r, name, &err) && err)
        sink_free(&r->sinks.items[--r->sinks.len]);  // or a document would be written for it
    return err;
}

int render_open_log(struct render *r, char *why, size_t size)
{
    char name[PATH_MAX];
    if (!r->setup.log_file)
        return 0;
    int err = try_log(r, name, sizeof name);
    if (err == -EINVAL)
        snprintf(why, size, "the log file's name \"%.200s\" has a %% before something other than p, h or %%",
                 r->setup.log_file);
    else if (err)
        snprintf(why, size, "the log file \"%.200s\" cannot be written: %s", r->setup.log_file,
                 strerror(-err));
    if (err)
        r->setup.log_file = NULL;
    return err;
}

// Returns whether to repeat a write. A program may make standard error non-blocking for all who share it.
static bool try_again(int fd)
{
    return errno == EINTR || (errno == EAGAIN && poll(&(struct pollfd){fd, POLLOUT, 0}, 1, TIMEOUT_MS) > 0);
}

static int write_all(int fd, const char *text, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0 && !try_again(fd))
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static void emit(struct render *r, struct sink *s, const char *text, size_t len)
{
    int err = write_all(s->fd, text, len);
    if (err && s->name && s->fd != STDERR_FILENO) {
        say_unwritable(s, err);
        close(s->fd);
        s->fd = STDERR_FILENO;
        s->colour = wants_colour(r->setup.color, s->fd);
        err = write_all(s->fd, text, len);
    }
    r->error = r->error ? r->error : err;
}

// --- what ---

int render_pid(const struct report_line *line)
{
    switch (line->event) {
    case REPORT_START: return line->start.pid;
    case REPORT_ERROR: return line->error.pid;
    case REPORT_REPEAT: return line->repeat.pid;
    case REPORT_NOTE: return line->note.pid;
    case REPORT_END: return line->end.pid;
    case REPORT_COUNTS: return line->counts.pid;
    case REPORT_PROOFS: return line->proofs.pid;
    case REPORT_UNCHECKED: return line->unchecked.pid;
    }
    return 0;
}

static void write_line(struct render *r, struct sink *s, const struct report_line *line)
{
    struct text_buffer b;
    text_buffer_init(&b, r->buffer, BUFFER_SIZE);
    if (r->setup.format == OPTION_FORMAT_JSON) {
        json_out_line(&b, line);
    } else {
        struct text_style style = {s->colour, r->setup.demangle, r->root[0] ? r->root : NULL};
        text_render(&b, line, &style);
    }
    emit(r, s, b.text, b.len);
}

void render_line(struct render *r, struct arena *a, const struct report_line *line)
{
    struct sink *s = find_sink(r, render_pid(line));
    bool at_once = r->setup.format == OPTION_FORMAT_TEXT || r->setup.format == OPTION_FORMAT_JSON;
    if (s && at_once)
        write_line(r, s, line);
    if (!s || at_once || vec_push(&s->kept, (struct kept){*a, *line}))
        arena_free(a);
}

static int write_document(struct render *r, struct sink *s, int exit_code)
{
    struct report_line *lines = mem_zalloc(s->kept.len + 1, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    for (size_t i = 0; i < s->kept.len; i++)
        lines[i] = s->kept.items[i].line;
    struct document d = {.lines = lines,
                         .count = s->kept.len,
                         .demangle = r->setup.demangle,
                         .version = MOAT_VERSION,
                         .root = r->root[0] ? r->root : NULL,
                         .argc = r->setup.argc,
                         .argv = (const char *const *)r->setup.argv,
                         .exit_code = exit_code,
                         .exit_known = exit_code >= 0};
    struct out o;
    out_to_memory(&o);
    (r->setup.format == OPTION_FORMAT_SARIF ? sarif_write : xml_write)(&o, &d);
    if (!o.error)
        emit(r, s, o.buf, o.len);
    mem_free(lines);
    return out_close(&o);
}

int render_finish(struct render *r, int exit_code)
{
    if (r->setup.format == OPTION_FORMAT_TEXT || r->setup.format == OPTION_FORMAT_JSON)
        return r->error;
    if (!r->sinks.len && !(r->setup.log_file && log_name_per_process(r->setup.log_file)))
        find_sink(r, 0);  // a document is written even without events
    for (size_t i = 0; i < r->sinks.len; i++) {
        int err = write_document(r, &r->sinks.items[i], exit_code);
        r->error = r->error ? r->error : err;
    }
    return r->error;
}
