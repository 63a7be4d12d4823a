// SPDX-License-Identifier: MIT
// A memory arena: memory is allocated piece by piece and freed all at once.
//
//   used <= reserved <= limit      (limit 0: none)
//
// If out of memory, arena_alloc returns NULL; when on_fail is set, it jumps there with the value -ENOMEM
// instead. Compiler-like code sets on_fail once at its entry point and needs no check per node.
#ifndef MOAT_BASE_ARENA_H
#define MOAT_BASE_ARENA_H

#include <setjmp.h>
#include <stddef.h>

#include "base/str.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    char *next, *end;
    size_t used, reserved, limit;
    jmp_buf *on_fail;
};

void arena_init(struct arena *a, size_t limit);
void arena_free(struct arena *a);
void *arena_alloc_slow(struct arena *a, size_t size);
struct str arena_str(struct arena *a, struct str s);

// Returns zeroed memory, aligned to 8 bytes. See above for what happens if out of memory.
static inline void *arena_alloc(struct arena *a, size_t size)
{
    size_t need = (size + 7) & ~(size_t)7;
    if (need < size || need > (size_t)(a->end - a->next))
        return arena_alloc_slow(a, size);
    void *p = a->next;
    a->next += need;
    a->used += need;
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t size);

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_array((a), (n), sizeof(T)))

#endif
