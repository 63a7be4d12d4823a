// SPDX-License-Identifier: MIT
#include "base/arena.h"

#include <errno.h>
#include <stdint.h>

#include "base/mem.h"

enum { FIRST_CHUNK = 16 << 10, LARGEST_CHUNK = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t size;
    char data[];
};

void arena_init(struct arena *a, size_t limit)
{
    *a = (struct arena){.limit = limit};
}

void arena_free(struct arena *a)
{
    struct arena_chunk *c = a->chunks;
    while (c) {
        struct arena_chunk *older = c->older;
        mem_free(c);
        c = older;
    }
    arena_init(a, a->limit);
}

static void *fail(struct arena *a)
{
    if (a->on_fail)
        longjmp(*a->on_fail, -ENOMEM);
    return NULL;
}

static size_t chunk_size(const struct arena *a, size_t need)
{
    size_t size = a->chunks ? a->chunks->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    return size > need ? size : need;
}

// Links a chunk for a request that is too large to share one, after the current chunk, so that the room left
// in the current chunk is not lost.
static void *alloc_alone(struct arena *a, struct arena_chunk *c)
{
    if (a->chunks) {
        c->older = a->chunks->older;
        a->chunks->older = c;
    } else {
        c->older = NULL;
        a->chunks = c;
    }
    a->used += c->size;
    return c->data;
}

void *arena_alloc_slow(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return fail(a);
    size_t need = (size + 7) & ~(size_t)7;
    bool alone = need > LARGEST_CHUNK / 4;
    size_t room = alone ? need : chunk_size(a, need);
    if (a->limit && (room > a->limit || a->reserved > a->limit - room))
        return fail(a);
    struct arena_chunk *c = mem_zalloc(1, sizeof *c + room);
    if (!c)
        return fail(a);
    c->size = room;
    a->reserved += room;
    if (alone)
        return alloc_alone(a, c);
    c->older = a->chunks;
    a->chunks = c;
    a->next = c->data + need;
    a->end = c->data + room;
    a->used += need;
    return c->data;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return fail(a);
    return arena_alloc(a, bytes);
}

struct str arena_str(struct arena *a, struct str s)
{
    char *copy = arena_alloc(a, s.len + 1);
    if (!copy)
        return (struct str){NULL, 0};
    memcpy(copy, s.ptr, s.len);
    return (struct str){copy, s.len};
}
