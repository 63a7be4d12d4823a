// SPDX-License-Identifier: MIT
// The watched heap: what malloc and its family do under libmoat-heap.so. preload.c gives these the names that programs know.
#ifndef MOAT_HEAP_HEAP_H
#define MOAT_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/block.h"

// `from` and `frame`: the return address of the program's call, and where its stack frame is. Not a struct: that would pass
// through memory.
#define HEAP_CALL __builtin_return_address(0), __builtin_frame_address(0)

struct heap_settings {
    bool lazy;            // freed blocks wait before they are given back
    uint64_t wait_bytes;  // as many of them for each thread
};
extern __attribute__((visibility("hidden"))) struct heap_settings heap_settings;

// NULL and errno = ENOMEM as malloc's. align: 0 or a power of two.
void *heap_alloc(const void *from, const void *frame, size_t size, size_t align, enum block_kind kind);
void *heap_calloc(const void *from, const void *frame, size_t count, size_t size);
void *heap_realloc(const void *from, const void *frame, void *p, size_t size);
void heap_free(const void *from, const void *frame, void *p,
               const char *name);  // name: of the function that was called
size_t heap_usable(void *p);

// The calling thread's record; NULL: it has none yet.
struct writer;
struct writer *heap_self(void);
void heap_thread_ends(struct writer *w);  // what it freed and kept is given back

// Blocks of the calling thread that wait: looked at once more. Other threads may be at work on theirs.
void heap_check_waiting(void);

#endif
