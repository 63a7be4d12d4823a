// SPDX-License-Identifier: MIT
// A library to be preloaded into a program with a shared runtime: it writes which memory the program
// allocates and frees to the file that SHADOW_TRACE names, for bench/shadow-memory.sh, a line for each call:
//   a ADDRESS BYTES KIND     device, managed, or pinned
//   f ADDRESS
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;

static void note(char what, const void *address, size_t bytes, const char *kind)
{
    pthread_mutex_lock(&lock);
    const char *name = getenv("SHADOW_TRACE");
    if (!file && name)
        file = fopen(name, "w");
    if (file && what == 'a')
        fprintf(file, "a %p %zu %s\n", address, bytes, kind);
    else if (file && address)
        fprintf(file, "f %p\n", address);
    if (file)
        fflush(file);
    pthread_mutex_unlock(&lock);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MADE(name, kind, bytes, parameters, arguments)          \
    __attribute__((visibility("default"))) int name parameters; \
    int name parameters                                         \
    {                                                           \
        int r = NEXT(name) arguments;                           \
        if (!r)                                                 \
            note('a', *p, bytes, kind);                         \
        return r;                                               \
    }
#define FREED(name, parameters, arguments)                      \
    __attribute__((visibility("default"))) int name parameters; \
    int name parameters                                         \
    {                                                           \
        note('f', p, 0, NULL);                                  \
        return NEXT(name) arguments;                            \
    }

MADE(cudaMalloc, "device", n, (void **p, size_t n), (p, n))
MADE(cudaMallocAsync, "device", n, (void **p, size_t n, void *s), (p, n, s))
MADE(cudaMallocPitch, "device", *pitch *h, (void **p, size_t *pitch, size_t w, size_t h), (p, pitch, w, h))
MADE(cudaMallocManaged, "managed", n, (void **p, size_t n, unsigned flags), (p, n, flags))
MADE(cudaMallocHost, "pinned", n, (void **p, size_t n), (p, n))
MADE(cudaHostAlloc, "pinned", n, (void **p, size_t n, unsigned flags), (p, n, flags))
FREED(cudaFree, (void *p), (p))
FREED(cudaFreeAsync, (void *p, void *s), (p, s))
FREED(cudaFreeHost, (void *p), (p))
