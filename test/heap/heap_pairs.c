// SPDX-License-Identifier: MIT
// heap_pairs list: prints name, CWE, type and who finds it of every row of heap_pairs.def, one per line.
//
// heap_pairs bad|good NAME: runs the row's program. Called by heap_pairs.sh under libmoat-heap.so.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Compilers drop writes just before a free, and detect some of these errors themselves.
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#ifdef __clang__
#pragma clang optimize off
#else
#pragma GCC optimize("O0")
#pragma GCC diagnostic ignored "-Wuse-after-free"
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#endif

static char text[2048];
static volatile int sink;
static char *kept, *volatile shared, *batch[20000];

// Hides a pointer as a number, because compilers follow pointers.
static __attribute__((noinline)) char *unhide(volatile uintptr_t n)
{
    return (char *)n;
}
#define hide(p) unhide((uintptr_t)(p))

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

// --- threads, processes, signals ---

struct work {
    char *(*run)(char *p, int n);
    char *p;
    int n;
};

static void *run_work(void *arg)
{
    struct work *w = arg;
    return w->run(w->p, w->n);
}

static char *in_thread_at(char *(*run)(char *, int), uintptr_t p, int n)
{
    struct work w = {run, hide(p), n};
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, run_work, &w);
    pthread_join(thread, &result);
    return hide(result);
}

#define in_thread(run, p, n) in_thread_at(run, (uintptr_t)(p), n)

static char *write_one_too_far(char *p, int n)
{
    p[n] = 0;
    free(p);
    return NULL;
}

static char *write_before(char *p, int n)
{
    p[n] ^= 1;
    free(p);
    return NULL;
}

static char *write_keep(char *p, int n)
{
    hide(p)[n] ^= 1;
    return NULL;
}

static char *allocate(char *p, int n)
{
    return malloc((size_t)n);
}

static char *release(char *p, int n)
{
    free(p);
    return NULL;
}

static struct work staying;
static atomic_int has_run;

static void *run_and_stay(void *unused)
{
    staying.run(staying.p, staying.n);
    has_run = 1;
    for (;;)
        pause();
    return NULL;
}

// The thread is still alive when the process ends.
static void in_thread_that_stays(char *(*run)(char *, int), char *p)
{
    pthread_t thread;
    staying = (struct work){run, p, 5};
    pthread_create(&thread, NULL, run_and_stay, NULL);
    while (!has_run)
        usleep(1000);
}

static int in_child(void)
{
    pid_t pid = fork();
    if (pid)
        waitpid(pid, NULL, 0);
    return pid == 0;
}

static int signal_offset;

static void write_in_handler(int number)
{
    shared[signal_offset] = 0;
}

static void handle_signal(int offset)
{
    signal_offset = offset;
    signal(SIGUSR1, write_in_handler);
    raise(SIGUSR1);
}

static void many(int n)
{
    for (int i = 0; i < n; i++)
        batch[i] = malloc(40);
}

static void many_free(int n)
{
    for (int i = 0; i < n; i++)
        free(batch[i]);
}

// --- what the exploits did, in few lines of our own ---

struct glob {
    char **paths;
    size_t count;
};

// An error path that frees what was not filled in yet.
static void glob_fail(struct glob *g)
{
    free(hide(g->paths));
}

static char *cvs_name;

// Forgets that another function freed the name.
static void cvs_directory(const char *name)
{
    if (cvs_name)
        free(hide(cvs_name));
    cvs_name = strdup(name);
}

// Counts two characters for %h, but writes four.
static char *expand_prompt(const char *in, int right)
{
    size_t len = 1;
    for (const char *c = in; *c; c++)
        len += *c == '%' ? (size_t)(right ? 4 : 1) : 1;
    char *out = hide(malloc(len)), *to = out;
    for (const char *c = in; *c; c++) {
        if (*c == '%' && c[1] == 'h') {
            to = stpcpy(to, "host");
            c++;
        } else {
            *to++ = *c;
        }
    }
    *to = 0;
    return out;
}

// Allocates the fields that were asked for, but fills one more.
static void split_fields(const char *in, int most, int right)
{
    char *copy = strdup(in), *left = copy, *field;
    char **fields = (char **)(void *)hide(malloc((size_t)most * sizeof *fields));
    for (int n = 0; (field = strsep(&left, ":")) && (!right || n < most); n++)
        if (n <= most)
            fields[n] = field;
    free(fields);
    free(copy);
}

// Allocates one byte per character, but some characters have two.
static char *convert_wide(const char *in, int right)
{
    size_t len = 0;
    for (const char *c = in; *c; c++)
        len += right || (*c & 0xc0) != 0x80;
    char *out = hide(malloc(len + 1));
    return strcpy(out, in);
}

// Counts one byte for an escape of %u and four digits, but writes three.
static char *unescape_url(const char *in, int right)
{
    size_t len = 1;
    for (const char *c = in; *c; c++, len++)
        if (*c == '%')
            c += c[1] == 'u' ? 5 : 2, len += right && c[-4] == 'u' ? 2 : 0;
    char *out = hide(malloc(len)), *to = out;
    for (const char *c = in; *c; c++) {
        if (*c == '%' && c[1] == 'u') {
            to = stpcpy(to, "\xe4\xb8\xad");
            c += 5;
        } else if (*c == '%') {
            *to++ = (char)strtol((char[]){c[1], c[2], 0}, NULL, 16);
            c += 2;
        } else {
            *to++ = *c;
        }
    }
    *to = 0;
    return out;
}

#define PAIR(name, cwe, type, found, bad, good)             \
    static __attribute__((noinline)) void bad_##name(void)  \
    {                                                       \
        char *p = NULL;                                     \
        (void)p;                                            \
        bad;                                                \
    }                                                       \
    static __attribute__((noinline)) void good_##name(void) \
    {                                                       \
        char *p = NULL;                                     \
        (void)p;                                            \
        good;                                               \
    }
#include "heap_pairs.def"
#undef PAIR

static const struct row {
    const char *name, *type, *found;
    int cwe;
    void (*bad)(void), (*good)(void);
} rows[] = {
#define PAIR(name, cwe, type, found, ...) {#name, type, #found, cwe, bad_##name, good_##name},
#include "heap_pairs.def"
#undef PAIR
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (argc == 2)
            printf("%s %d %s %s\n", rows[i].name, rows[i].cwe, rows[i].type, rows[i].found);
        else if (argc == 3 && strcmp(argv[2], rows[i].name) == 0)
            (argv[1][0] == 'b' ? rows[i].bad : rows[i].good)();
    }
    return 0;
}
