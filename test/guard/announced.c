// SPDX-License-Identifier: MIT
// A pool allocator that announces its pieces through moat.h: `announced bad NAME`, `announced good NAME`,
// `announced list`. A case is one function, in which only the error depends on `bad`. `announced idle` only
// checks whether moat is there. It is plain C that is also C++, with only moat.h and a libcuda that is found
// at run time, as in other people's programs.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "moat.h"

enum { POOL = 1 << 20, PIECE = 1000, STEP = 1024 };

typedef unsigned long long address;
static int (*init)(unsigned);
static int (*retain)(void **, int);
static int (*use)(void *);
static int (*alloc_memory)(address *, size_t);
static int (*free_memory)(address);
static int (*to_device)(address, const void *, size_t);
static int (*to_host)(void *, address, size_t);
static int (*fill)(address, unsigned char, size_t);
static address pool;
static char host[POOL];

static char *piece(int i)
{
    return (char *)pool + (size_t)i * STEP;
}

static char *take(int i, size_t size, const char *name)
{
    moat_block_made(piece(i), size, name);
    return piece(i);
}

static int upload(int bad)
{
    char *p = take(3, PIECE, "activations");
    return to_device((address)p, host, PIECE + (size_t)bad);
}

static int download(int bad)
{
    char *p = take(0, PIECE, "weights");
    return to_host(host, (address)(p + 500), 500 + (size_t)bad);
}

static int clear(int bad)
{
    char *p = take(7, PIECE, NULL);
    return fill((address)p, 0, PIECE + 24 * (size_t)bad);
}

// The space between pieces belongs to no piece, but the copy continues into a live one.
static int into_neighbour(int bad)
{
    char *p = take(1, PIECE, "left");
    take(2, PIECE, "right");
    return to_device((address)p, host, bad ? PIECE + STEP : PIECE);
}

// A piece is taken again with another size.
static int taken_again(int bad)
{
    char *p = take(4, 100, "first");
    moat_block_gone(p);
    take(4, 500, "second");
    return to_device((address)p, host, 500 + (size_t)bad);
}

// If the end of the old piece was not announced, the new piece replaces it.
static int taken_over(int bad)
{
    char *p = take(5, 2 * STEP, "first");
    take(5, 100, "second");
    take(6, 100, "third");
    return to_device((address)(p + STEP), host, 100 + (size_t)bad);
}

// Memory that was given back belongs to the pool's owner, who may use the whole pool.
static int owner(int bad)
{
    char *p = take(0, PIECE, "lent");
    if (!bad)
        moat_block_gone(p);
    return fill(pool, 1, POOL);
}

// The pool's own end is the bound for what lies in no piece.
static int pool_end(int bad)
{
    return to_device(pool + POOL - 8, host, 8 + (size_t)bad);
}

static const struct {
    const char *name, *buffer;
    int (*run)(int bad);
} cases[] = {
    {"upload", "activations", upload},
    {"download", "weights", download},
    {"clear", "", clear},
    {"into_neighbour", "left", into_neighbour},
    {"taken_again", "second", taken_again},
    {"taken_over", "third", taken_over},
    {"owner", "lent", owner},
    {"pool_end", "", pool_end},
};

static int find(void *library, void *function, const char *name)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol == NULL;
}

static int open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    return !library || find(library, (void *)&init, "cuInit") ||
           find(library, (void *)&retain, "cuDevicePrimaryCtxRetain") ||
           find(library, (void *)&use, "cuCtxSetCurrent") ||
           find(library, (void *)&alloc_memory, "cuMemAlloc_v2") ||
           find(library, (void *)&free_memory, "cuMemFree_v2") ||
           find(library, (void *)&to_device, "cuMemcpyHtoD_v2") ||
           find(library, (void *)&to_host, "cuMemcpyDtoH_v2") ||
           find(library, (void *)&fill, "cuMemsetD8_v2") || init(0) || retain(&context, 0) || use(context) ||
           alloc_memory(&pool, POOL);
}

static int run(int bad, const char *name)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        int r = cases[i].run(bad);
        printf("%s: result %d, errors %llu\n", name, r, moat_errors());
        if (bad)
            return r == 0 || moat_errors() != 1;
        return r != 0 || moat_errors() || free_memory(pool);
    }
    return 2;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            printf("%s %s\n", cases[i].name, cases[i].buffer);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "idle") == 0) {
        moat_block_made(host, sizeof host, "nobody listens");
        moat_block_gone(host);
        printf("watching %d\n", moat_is_watching());
        return moat_errors() != 0;
    }
    if (argc != 3)
        return 2;
    if (open_driver()) {
        printf("announced.c: no libcuda\n");
        return 77;
    }
    return run(strcmp(argv[1], "bad") == 0, argv[2]);
}
