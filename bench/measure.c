// SPDX-License-Identifier: MIT
// measure RUNS NAME COMMAND... [-- NAME COMMAND...]...: runs the commands in turn, RUNS times each, and
// prints a Markdown table of wall time and peak memory. The first is the baseline. Their output is discarded.
// Exit status 1 if a command fails.
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_COMMANDS = 16, MOST_RUNS = 1000 };

struct command {
    const char *name;
    char **argv;
    double seconds[MOST_RUNS];
    long peak_kib;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(struct command *c, int i)
{
    double start = now();
    pid_t pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execvp(c->argv[0], c->argv);
        err(127, "%s", c->argv[0]);
    }
    int status;
    struct rusage usage;
    if (wait4(pid, &status, 0, &usage) < 0)
        err(1, "wait4");
    c->seconds[i] = now() - start;
    if (status)
        errx(1, "%s failed", c->name);
    if (usage.ru_maxrss > c->peak_kib)
        c->peak_kib = usage.ru_maxrss;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(struct command *c, int runs)
{
    double sum = 0;
    for (int i = 0; i < runs; i++)
        sum += c->seconds[i];
    qsort(c->seconds, (size_t)runs, sizeof *c->seconds, compare);
    printf("| %s | %.1f | %.1f | %.1f | %.1f |\n", c->name, sum / runs * 1e3, c->seconds[runs / 2] * 1e3,
           c->seconds[runs - 1] * 1e3, (double)c->peak_kib / 1024);
}

int main(int argc, char **argv)
{
    static struct command commands[MOST_COMMANDS];
    int n = 0, runs = argc > 1 ? atoi(argv[1]) : 0;
    if (runs < 1 || runs > MOST_RUNS || argc < 4)
        errx(2, "usage: measure RUNS NAME COMMAND... [-- NAME COMMAND...]...");
    for (int i = 2; i < argc; i++) {
        if (n == MOST_COMMANDS || i + 1 >= argc)
            errx(2, "too many commands, or one without words");
        commands[n++] = (struct command){.name = argv[i], .argv = &argv[i + 1]};
        while (i < argc && strcmp(argv[i], "--") != 0)
            i++;
        if (i < argc)
            argv[i] = NULL;
    }
    for (int r = 0; r < runs; r++)
        for (int i = 0; i < n; i++)
            run(&commands[i], r);
    printf("| | average ms | median ms | worst ms | peak MiB |\n| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < n; i++)
        print(&commands[i], runs);
    return 0;
}
