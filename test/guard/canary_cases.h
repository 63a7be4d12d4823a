// SPDX-License-Identifier: MIT
// Programs that consist of cases for --mode=canary, each wrong or right:
//   PROGRAM list
//   PROGRAM bad NAME            says when the kernel had written: "wrote SECONDS"
//   PROGRAM good NAME [ROUNDS]  many times over in one process
// Traits of a case, one at most:
//   once   too slow to repeat, or ends the process      call   a call is wrong: no canary is shown
//   host   written by the host: no kernel to name       leak   needs --leak-check
#ifndef CANARY_CASES_H
#define CANARY_CASES_H

#include <sys/wait.h>

#include "canary_kernels.h"

enum { SMALL = 1000, ODD = 1001, LARGE = 3 << 20 };
enum { PATIENCE_S = 60 };  // longer than any machine takes

#define OVER "heap-buffer-overflow"
#define UNDER "heap-buffer-underflow"

static struct kernels kernels;
static kernels_word *flag;
static const char *self;

static inline CUdeviceptr plain(size_t size)
{
    CUdeviceptr p;
    NEED(d.cuMemAlloc_v2(&p, size));
    return p;
}

static inline void wait_for_write(int bad)
{
    double then = kernels_wait(flag);
    if (bad)
        printf("wrote %.6f\n", then);
    fflush(stdout);
}

static inline void flip_and_see(CUdeviceptr p, uint64_t count, CUstream stream, int bad)
{
    kernels_flip(&kernels, p, count, flag, stream);
    wait_for_write(bad);
}

// Writes the byte behind a buffer, or its last one.
static inline void behind(CUdeviceptr p, size_t size, int bad)
{
    flip_and_see(p + size - 1 + (unsigned)bad, 1, NULL, bad);
    NEED(d.cuCtxSynchronize());
}

static inline void before(CUdeviceptr p, int bad)
{
    flip_and_see(p - (unsigned)bad, 1, NULL, bad);
    NEED(d.cuCtxSynchronize());
}

// The first of the paper's experiments; child processes run it too.
static inline void single(int bad)
{
    CUdeviceptr p = plain(SMALL);
    kernels_fill(&kernels, p, SMALL, NULL);
    flip_and_see(p + SMALL - 4 + 4 * (unsigned)bad, 4, NULL, bad);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemFree_v2(p));
}

static inline int is_reported(void)
{
    const char *name = getenv("PAIRS_LOG");
    FILE *log = name ? fopen(name, "r") : NULL;
    char line[4096];
    int found = 0;
    while (log && !found && fgets(line, sizeof line, log))
        found = strstr(line, "ERROR: moat") != NULL;
    if (log)
        fclose(log);
    return found;
}

// Waits, without a call of CUDA, until the report is in the file that PAIRS_LOG names; returns 0 if it does
// not come in time. If a report ends the program, that may take as long. A correct case waits a moment in
// which it could be reported.
static inline int await_report(int bad, double seconds)
{
    const char *options = getenv("MOAT_OPTIONS");
    int ends = options && strstr(options, "halt-on-error");
    double end = kernels_now() + seconds;
    if (!bad)
        usleep(100000);
    while (bad && kernels_now() < end) {
        if (!ends && is_reported())
            return 1;
        usleep(10000);
    }
    return !bad;
}

static inline int status_of(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        printf("a child did not end well\n");
        exit(2);
    }
    return WEXITSTATUS(status);
}

// Makes child processes before CUDA is used: how many depends on the case, and of several the third has the
// error. Returns in the children only.
static inline void forks(const char *name, int *bad)
{
    unsigned count = strcmp(name, "by_process") == 0 ? 4 : strcmp(name, "forked_before") == 0 ? 1 : 0;
    pid_t children[4];
    int worst = 0;
    for (unsigned i = 0; i < count; i++) {
        children[i] = fork();
        if (!children[i]) {
            *bad = *bad && (count == 1 || i == 2);
            return;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        int status = status_of(children[i]);
        worst = status > worst ? status : worst;
    }
    if (count)
        exit(worst);
}

static inline void start(void)
{
    char why[300];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        exit(77);
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    kernels_load(&kernels);
    flag = kernels_new_word();
}

static inline int canary_main(int argc, char **argv, const struct cases_row *cases, size_t count)
{
    self = argv[0];
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return cases_list(cases, count);
    if (argc != 3 && argc != 4)
        return 2;
    int bad = strcmp(argv[1], "bad") == 0;
    unsigned rounds = argc == 4 && !bad ? (unsigned)atoi(argv[3]) : 1;
    forks(argv[2], &bad);
    start();
    for (size_t i = 0; i < count; i++)
        if (strcmp(argv[2], cases[i].name) == 0) {
            for (unsigned n = 0; n < rounds; n++)
                cases[i].run(bad);
            return 0;
        }
    printf("no case %s\n", argv[2]);
    return 2;
}

#endif
