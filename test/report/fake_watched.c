// SPDX-License-Identifier: MIT
// A program that reports as a watched one does, without a guard: what the command makes of it can be tested
// alone. Does what its arguments say, one after the other:
//   start[=MODE], end     a process is watched, in mode api, or heap: then it is that library; its summary
//   error[=TYPE]          an error, in a kernel that is named after its type
//   repeat=ID,COUNT       the error happened so often in all
//   note=TEXT, raw=TEXT   a note; bytes that are no event
//   say=TEXT              on standard output
//   close                 all descriptors but the standard streams
//   fork                  the rest is done by a child; the process waits for it and ends as it did
//   leave                 the rest is done by a child; the process ends at once
//   many=N                the rest is done by N children at once
//   other                 go on as the other one of two libraries that report for the process
//   exec                  the rest is done by a program that takes this one's place
//   count                 say how many SIGINT come until a line of standard input does; each is said at once,
//                         too
//   line, await=FILE      wait until a line of standard input comes, or that file is there
//   sleep=MS, exit=STATUS, raise=SIGNAL
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/channel.h"

static struct channel channel, other_channel;
static struct side {
    uint64_t errors, suppressed, id;
    const char *library;
} here, other;

static void tell(const struct report_line *line)
{
    enum channel_answer answer = channel_send(&channel, line);
    if (line->event != REPORT_ERROR)
        return;
    here.errors += answer != CHANNEL_SUPPRESSED;
    here.suppressed += answer == CHANNEL_SUPPRESSED;
}

static void tell_start(const char *value)
{
    here.library = value && strcmp(value, "heap") == 0 ? "heap" : NULL;
    tell(&(struct report_line){.event = REPORT_START,
                               .start = {.pid = getpid(),
                                         .parent = getppid(),
                                         .program = "/usr/bin/fake",
                                         .mode = value ? value : "api",
                                         .device = here.library ? NULL : "cpu",
                                         .version = "0"}});
}

static void tell_error(const char *value)
{
    int type = report_type_find(value ? value : "heap-buffer-overflow");
    if (type < 0)
        exit(125);
    struct report_buffer buffer = {.base = 0x7f0000000000, .size = 1024, .made_by = "cuMemAlloc_v2"};
    struct report e = {.type = (enum report_type)type,
                       .pid = getpid(),
                       .has_address = true,
                       .address = 0x7f0000000400,
                       .access = REPORT_WRITE,
                       .bytes = 4,
                       .place = {.kernel = "_Z5scalePfi", .file = "scale.cu", .line = 7},
                       .nbuffers = 1,
                       .buffers = &buffer,
                       .library = here.library,
                       .id = ++here.id,
                       .count = 1};
    tell(&(struct report_line){.event = REPORT_ERROR, .error = e});
}

static void tell_repeat(const char *value)
{
    struct report_line line = {.event = REPORT_REPEAT, .repeat = {.pid = getpid(), .library = here.library}};
    unsigned long long which, count;
    if (!value || sscanf(value, "%llu,%llu", &which, &count) != 2)
        exit(125);
    line.repeat.id = which;
    line.repeat.count = count;
    tell(&line);
}

static void tell_note(const char *value)
{
    tell(&(struct report_line){.event = REPORT_NOTE, .note = {getpid(), value}});
}

static void tell_end(const char *value)
{
    struct report_value launched = {"kernels_launched", "kernels launched", 3};
    tell(&(struct report_line){.event = REPORT_END,
                               .end = {.pid = getpid(),
                                       .library = here.library,
                                       .errors = here.errors,
                                       .suppressed = here.suppressed,
                                       .nvalues = 1,
                                       .values = &launched}});
}

// Down the connection that a note has opened.
static void send_raw(const char *value)
{
    char answer;
    if (write(channel.fd, value, strlen(value)) < 0 || write(channel.fd, "\n", 1) < 0 ||
        read(channel.fd, &answer, 1) < 0)
        exit(125);
}

static void say(const char *value)
{
    if (write(1, value, strlen(value)) < 0 || write(1, "\n", 1) < 0)
        exit(125);
}

static void close_all(const char *value)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

static void go_on_in_children(const char *value)
{
    int count = value ? atoi(value) : 1, worst = 0;
    for (int i = 0; i < count; i++)
        if (!fork())
            return;
    for (int status; wait(&status) > 0;) {
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        worst = code > worst ? code : worst;
    }
    exit(worst);
}

static void leave(const char *value)
{
    if (fork())
        _exit(0);
}

static void rest(const char *value)
{
    usleep((useconds_t)atoi(value) * 1000);
}

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal)
{
    interrupts++;
    say("interrupted");
}

static void await_line(const char *value)
{
    for (char c = 0; c != '\n';)
        if (read(0, &c, 1) != 1)
            exit(125);
}

static void await_file(const char *value)
{
    for (int i = 0; i < 60000 && access(value, F_OK); i++)
        usleep(1000);
}

// What comes twice comes soon.
static void count_interrupts(const char *value)
{
    char text[40];
    signal(SIGINT, on_interrupt);
    say("ready");
    await_line(NULL);
    usleep(300000);
    snprintf(text, sizeof text, "interrupts: %d.", (int)interrupts);
    say(text);
}

static void end_by(const char *value)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    raise(atoi(value));
}

static void quit(const char *value)
{
    exit(atoi(value));
}

static void change_sides(const char *value)
{
    struct channel kept = channel;
    struct side kept_side = here;
    channel = other_channel;
    here = other;
    other_channel = kept;
    other = kept_side;
}

static char **arguments;  // from the one that is done now

static void become(const char *value)
{
    arguments[0] = "/proc/self/exe";
    execv(arguments[0], arguments);
    exit(125);
}

static const struct {
    const char *name;
    void (*run)(const char *value);
} actions[] = {
    {"start", tell_start},
    {"error", tell_error},
    {"repeat", tell_repeat},
    {"note", tell_note},
    {"end", tell_end},
    {"raw", send_raw},
    {"say", say},
    {"close", close_all},
    {"fork", go_on_in_children},
    {"leave", leave},
    {"many", go_on_in_children},
    {"sleep", rest},
    {"count", count_interrupts},
    {"line", await_line},
    {"await", await_file},
    {"exec", become},
    {"other", change_sides},
    {"raise", end_by},
    {"exit", quit},
};

static void act(const char *word)
{
    size_t len = strcspn(word, "=");
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strlen(actions[i].name) == len && strncmp(actions[i].name, word, len) == 0) {
            actions[i].run(word[len] ? word + len + 1 : NULL);
            return;
        }
    fprintf(stderr, "fake_watched: what is \"%s\"?\n", word);
    exit(125);
}

int main(int argc, char **argv)
{
    channel_init(&channel, getenv("FAKE_LOG"));
    channel_init(&other_channel, NULL);
    for (int i = 1; i < argc; i++) {
        arguments = argv + i;
        act(argv[i]);
    }
    return 0;
}
