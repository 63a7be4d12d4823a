// SPDX-License-Identifier: MIT
// The next allocator: the one that the program would have used without us. And a few pages of our own for the
// calls that come while it is being looked up.
#ifndef MOAT_HEAP_NEXT_MALLOC_H
#define MOAT_HEAP_NEXT_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

struct next_malloc {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    size_t (*malloc_usable_size)(void *);
    bool is_glibc;
    void (*exit_now)(int);  // _exit; this and abort may be NULL
    void (*abort)(void);
};
extern __attribute__((visibility("hidden"))) struct next_malloc next_malloc;

int next_malloc_init(void);  // once; 0, or -ENOSYS if there is no next allocator

// Allocates zeroed memory, aligned to 16; NULL when it is used up. Such a block is never freed.
void *next_malloc_early(size_t size);
bool next_malloc_is_early(const void *p);
size_t next_malloc_early_size(const void *p);

#endif
