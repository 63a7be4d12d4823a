// SPDX-License-Identifier: MIT
// ptx_rate FILE.ptx [RUNS]: how fast the front end and each analysis go over a text, as a Markdown table. The
// baseline is one pass over the bytes that counts lines; all are run in turn.
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "flow/cfg.h"
#include "flow/dom.h"
#include "flow/live.h"
#include "flow/loops.h"
#include "flow/reach.h"
#include "flow/regs.h"
#include "ptx/ptx.h"

enum { MOST_RUNS = 1000 };
enum step { LINES, PARSE, PRINT, BOTH, VERIFY, CFG, DOM, POST, LOOPS, REGS, LIVE, REACH, STEPS };

static const char *const names[STEPS] = {
    [LINES] = "count lines (baseline)",
    [PARSE] = "parse",
    [PRINT] = "print",
    [BOTH] = "parse and print",
    [VERIFY] = "verify",
    [CFG] = "control-flow graph",
    [DOM] = "dominators",
    [POST] = "post-dominators",
    [LOOPS] = "loops",
    [REGS] = "register accesses",
    [LIVE] = "liveness",
    [REACH] = "reaching definitions",
};
static double seconds[STEPS][MOST_RUNS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Adds the time since *start to a step of a run, and starts anew.
static void lap(enum step step, int run, double *start)
{
    double t = now();
    seconds[step][run] += t - *start;
    *start = now();
}

static size_t count_lines(struct str text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    return lines;
}

static void analyse(const struct ptx_module *m, const struct ptx_func *f, int run)
{
    struct cfg *cfg;
    struct dom *dom, *post;
    struct loops *loops;
    struct regs *regs;
    struct live *live;
    struct reach *reach;
    double start = now();
    int bad = cfg_build(m, f, &cfg);
    lap(CFG, run, &start);
    bad = bad || dom_build(cfg->graph, &dom);
    lap(DOM, run, &start);
    bad = bad || dom_build_post(cfg->graph, cfg->exits, &post);
    lap(POST, run, &start);
    bad = bad || loops_build(cfg->graph, dom, &loops);
    lap(LOOPS, run, &start);
    bad = bad || regs_build(f, 0, &regs);
    lap(REGS, run, &start);
    bad = bad || live_build(cfg, regs, 0, &live);
    lap(LIVE, run, &start);
    bad = bad || reach_build(cfg, dom, regs, 0, &reach);
    lap(REACH, run, &start);
    if (bad)
        errx(1, "a function cannot be analysed");
    reach_free(reach);
    live_free(live);
    regs_free(regs);
    loops_free(loops);
    dom_free(post);
    dom_free(dom);
    cfg_free(cfg);
}

static void measure(struct str text, FILE *null, int run)
{
    struct diag_printer printer;
    struct ptx_module *m;
    struct out out;
    diag_printer_init(&printer, 1);
    double start = now();
    volatile size_t lines = count_lines(text);
    (void)lines;
    lap(LINES, run, &start);
    if (ptx_parse("text", text, &printer.sink, NULL, &m))
        exit(1);
    lap(PARSE, run, &start);
    out_to_file(&out, null);
    ptx_print(m, &out);
    out_close(&out);
    lap(PRINT, run, &start);
    ptx_verify(m, &printer.sink, NULL);
    lap(VERIFY, run, &start);
    seconds[BOTH][run] = seconds[PARSE][run] + seconds[PRINT][run];
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC && m->items[i].func->has_body)
            analyse(m, m->items[i].func, run);
    ptx_free(m);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(enum step step, int runs, double mb)
{
    double sum = 0, *s = seconds[step];
    for (int i = 0; i < runs; i++)
        sum += s[i];
    qsort(s, (size_t)runs, sizeof *s, compare);
    printf("| %s | %.2f | %.2f | %.2f | %.0f |\n", names[step], sum / runs * 1e3, s[runs / 2] * 1e3,
           s[runs - 1] * 1e3, mb / (sum / runs));
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : 30;
    if (argc < 2 || runs < 1 || runs > MOST_RUNS)
        errx(2, "usage: ptx_rate FILE.ptx [RUNS]");
    int fd = open(argv[1], O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        err(2, "%s", argv[1]);
    char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (text == MAP_FAILED)
        err(2, "%s", argv[1]);
    FILE *null = fopen("/dev/null", "w");
    for (int i = 0; i < runs; i++)
        measure((struct str){text, (size_t)st.st_size}, null, i);
    double mb = (double)st.st_size / 1e6;
    printf("| %.1f MB, %d runs | average ms | median ms | worst ms | MB/s on average |\n", mb, runs);
    printf("| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < STEPS; i++)
        print_row((enum step)i, runs, mb);
    return 0;
}
