// SPDX-License-Identifier: MIT
#include "heap/next_malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

struct next_malloc next_malloc;

enum { EARLY_BYTES = 1 << 16 };

static _Alignas(16) char early[EARLY_BYTES];
static _Atomic size_t early_used;

static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int next_malloc_init(void)
{
    struct next_malloc u = {
        .malloc = (void *(*)(size_t))find("malloc"),
        .calloc = (void *(*)(size_t, size_t))find("calloc"),
        .realloc = (void *(*)(void *, size_t))find("realloc"),
        .free = (void (*)(void *))find("free"),
        .posix_memalign = (int (*)(void **, size_t, size_t))find("posix_memalign"),
        .malloc_usable_size = (size_t(*)(void *))find("malloc_usable_size"),
        .exit_now = (void (*)(int))find("_exit"),
        .abort = (void (*)(void))find("abort"),
    };
    if (!u.malloc || !u.calloc || !u.realloc || !u.free || !u.posix_memalign || !u.malloc_usable_size)
        return -ENOSYS;
    u.is_glibc = find("__libc_malloc") == (void *)u.malloc;
    next_malloc = u;
    return 0;
}

void *next_malloc_early(size_t size)
{
    size_t need = (size + 31) / 16 * 16;
    // Relaxed: the bytes are zero from the start, and no two calls get the same ones.
    size_t at =
        size < EARLY_BYTES ? atomic_fetch_add_explicit(&early_used, need, memory_order_relaxed) : EARLY_BYTES;
    if (at + need > EARLY_BYTES)
        return NULL;
    memcpy(early + at, &size, sizeof size);
    return early + at + 16;
}

bool next_malloc_is_early(const void *p)
{
    return (uintptr_t)p - (uintptr_t)early < EARLY_BYTES;
}

size_t next_malloc_early_size(const void *p)
{
    size_t size;
    memcpy(&size, (const char *)p - 16, sizeof size);
    return size;
}
