// SPDX-License-Identifier: MIT
// ptx_rate FILE.ptx [RUNS]: how fast the front end goes over a text, as a Markdown table. The baseline is one pass
// over the bytes that counts lines; both are run in turn.
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ptx/ptx.h"

enum { MOST_RUNS = 1000 };
enum work { LINES, PARSE, PRINT, BOTH, VERIFY, WORKS };

static const char *const names[WORKS] = {"count lines (baseline)", "parse", "print", "parse and print",
                                         "verify"};
static double rates[WORKS][MOST_RUNS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t count_lines(struct str text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    return lines;
}

static void measure(struct str text, FILE *null, int run)
{
    struct diag_printer printer;
    struct ptx_module *m;
    struct out out;
    diag_printer_init(&printer, 1);
    double t0 = now();
    volatile size_t lines = count_lines(text);
    (void)lines;
    double t1 = now();
    if (ptx_parse("text", text, &printer.sink, NULL, &m))
        exit(1);
    double t2 = now();
    out_to_file(&out, null);
    ptx_print(m, &out);
    out_close(&out);
    double t3 = now();
    ptx_verify(m, &printer.sink, NULL);
    double t4 = now();
    ptx_free(m);
    double mb = (double)text.len / 1e6;
    rates[LINES][run] = mb / (t1 - t0);
    rates[PARSE][run] = mb / (t2 - t1);
    rates[PRINT][run] = mb / (t3 - t2);
    rates[BOTH][run] = mb / (t3 - t1);
    rates[VERIFY][run] = mb / (t4 - t3);
}

static int slower_last(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
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
    printf("| MB/s, %.1f MB, %d runs | average | median | worst |\n| --- | --- | --- | --- |\n",
           (double)st.st_size / 1e6, runs);
    for (int w = 0; w < WORKS; w++) {
        double sum = 0;
        for (int i = 0; i < runs; i++)
            sum += rates[w][i];
        qsort(rates[w], (size_t)runs, sizeof *rates[w], slower_last);
        printf("| %s | %.0f | %.0f | %.0f |\n", names[w], sum / runs, rates[w][runs / 2], rates[w][runs - 1]);
    }
    return 0;
}
