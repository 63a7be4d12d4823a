// SPDX-License-Identifier: MIT
// cpu_calls [FILE.ptx]: how long the CPU device takes to load the file, and to launch an empty kernel and
// wait for it. Prints rows of a table.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "driver/cuda_api.h"

enum { LOADS = 60, LAUNCHES = 20000 };

static const char empty[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

static void try(CUresult r, const char *call)
{
    if (!r)
        return;
    fprintf(stderr, "cpu_calls: %s: error %d\n", call, r);
    exit(1);
}
#define TRY(call) try((call), #call)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what, double *seconds, int n, double unit, const char *name, double target)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += seconds[i] / unit;
    qsort(seconds, (size_t)n, sizeof *seconds, compare);
    double median = seconds[n / 2] / unit;
    printf("| %s | %d | %.2f %s | %.2f %s | %.2f %s | %.2f %s | %g %s: %s |\n", what, n, sum / n, name,
           median, name, seconds[n * 99 / 100] / unit, name, seconds[n - 1] / unit, name, target, name,
           median <= target ? "yes" : "no");
}

static char *read_text(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(1);
    }
    static const size_t most = 1 << 20;
    char *text = calloc(1, most);
    *size = text ? fread(text, 1, most - 1, file) : 0;
    fclose(file);
    return text;
}

static void load(const char *path)
{
    static double seconds[LOADS];
    char what[80];
    size_t size;
    char *text = read_text(path, &size);
    for (int i = 0; i < LOADS; i++) {
        CUmodule module;
        double start = now();
        TRY(cuModuleLoadData(&module, text));
        seconds[i] = now() - start;
        TRY(cuModuleUnload(module));
    }
    snprintf(what, sizeof what, "load a module of %zu bytes", size);
    report(what, seconds, LOADS, 1e-3, "ms", 20);
    free(text);
}

static void launch(void)
{
    static double seconds[LAUNCHES];
    CUmodule module;
    CUfunction nothing;
    TRY(cuModuleLoadData(&module, empty));
    TRY(cuModuleGetFunction(&nothing, module, "nothing"));
    for (int i = 0; i < LAUNCHES; i++) {
        double start = now();
        TRY(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        TRY(cuCtxSynchronize());
        seconds[i] = now() - start;
    }
    report("launch an empty kernel and wait", seconds, LAUNCHES, 1e-6, "us", 10);
    double start = now();
    for (int i = 0; i < LAUNCHES; i++)
        TRY(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    TRY(cuCtxSynchronize());
    printf("| launch an empty kernel, waiting only for the last | %d | %.2f us | | | | |\n", LAUNCHES,
           (now() - start) / LAUNCHES * 1e6);
    TRY(cuModuleUnload(module));
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuCtxCreate_v2(&context, 0, device));
    printf("| call | times | average | median | 99th percentile | worst | median within target |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    if (argc > 1)
        load(argv[1]);
    launch();
    TRY(cuCtxDestroy_v2(context));
    return 0;
}
