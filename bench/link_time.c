// SPDX-License-Identifier: MIT
// link_time FILE...: how long the driver takes to compile the PTX in each file, without its cache. A line for
// each: the file, and the seconds of cuModuleLoadData, of a link, and of a link on several threads
// (CU_JIT_SPLIT_COMPILE); `-` if the driver refuses it. The least of ROUNDS (3) runs of each. LINK_WITH: a
// file whose PTX each link has as well, compiled with at most 32 registers, as moat's own functions are.
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "bench.h"

static struct driver d;
static char *more;  // the text of LINK_WITH
static size_t more_size;

static char *read_text(const char *path, size_t *size)
{
    FILE *f = fopen(path, "r");
    if (!f || fseek(f, 0, SEEK_END)) {
        perror(path);
        exit(2);
    }
    *size = (size_t)ftell(f);
    rewind(f);
    char *text = mem_zalloc(1, *size + 1);
    if (!text || fread(text, 1, *size, f) != *size) {
        perror(path);
        exit(2);
    }
    fclose(f);
    return text;
}

// Each returns the seconds, or a negative number.
static double load(char *text, size_t size)
{
    CUmodule module;
    double begin = bench_now();
    (void)size;
    if (d.cuModuleLoadData(&module, text))
        return -1;
    double took = bench_now() - begin;
    NEED(d.cuModuleUnload(module));
    return took;
}

static double link_with(char *text, size_t size, unsigned options)
{
    CUlinkState link;
    CUjit_option option = CU_JIT_SPLIT_COMPILE;
    void *value = NULL, *image;
    size_t bytes;
    double begin = bench_now();
    if (d.cuLinkCreate_v2(options, &option, &value, &link))
        return -1;
    CUresult r = d.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, text, size + 1, "text", 0, NULL, NULL);
    CUjit_option limit = CU_JIT_MAX_REGISTERS;
    void *registers = (void *)32;
    if (!r && more)
        r = d.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, more, more_size + 1, "more", 1, &limit, &registers);
    if (!r)
        r = d.cuLinkComplete(link, &image, &bytes);
    double took = bench_now() - begin;
    NEED(d.cuLinkDestroy(link));
    return r ? -1 : took;
}

static double link_alone(char *text, size_t size)
{
    return link_with(text, size, 0);
}

static double link_split(char *text, size_t size)
{
    return link_with(text, size, 1);
}

static void measure(double (*way)(char *, size_t), char *text, size_t size)
{
    const char *rounds = getenv("ROUNDS");
    int n = rounds ? atoi(rounds) : 3;
    double least = -1;
    for (int i = 0; i < n; i++) {
        double took = way(text, size);
        if (took >= 0 && (least < 0 || took < least))
            least = took;
    }
    if (least < 0)
        printf(" -");
    else
        printf(" %.3f", least);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    char why[300];
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    if (argc < 2) {
        fprintf(stderr, "usage: link_time FILE...\n");
        return 2;
    }
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "link_time: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDeviceGet(&device, 0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, device));
    NEED(d.cuCtxSetCurrent(context));
    if (getenv("LINK_WITH"))
        more = read_text(getenv("LINK_WITH"), &more_size);
    for (int i = 1; i < argc; i++) {
        size_t size;
        char *text = read_text(argv[i], &size);
        printf("%s", argv[i]);
        measure(load, text, size);
        measure(link_alone, text, size);
        measure(link_split, text, size);
        printf("\n");
        mem_free(text);
    }
    mem_free(more);
    return 0;
}
