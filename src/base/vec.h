// SPDX-License-Identifier: MIT
// Growable arrays on the heap.
//
//   len <= cap; items[0 .. len) are valid
//
// VEC(int) numbers = {0}; if (vec_push(&numbers, 7)) return -ENOMEM; ... vec_free(&numbers);
#ifndef MOAT_BASE_VEC_H
#define MOAT_BASE_VEC_H

#include <errno.h>
#include <stddef.h>

#include "base/mem.h"

#define VEC(T)      \
    struct {        \
        T *items;   \
        size_t len; \
        size_t cap; \
    }

static inline int vec_grow_raw(void **items, size_t *cap, size_t need, size_t size)
{
    size_t want = *cap ? *cap * 2 : 16;
    if (want < need)
        want = need;
    void *grown = mem_realloc(*items, want, size);
    if (!grown)
        return -ENOMEM;
    *items = grown;
    *cap = want;
    return 0;
}

// Makes room for n more items. Returns 0 or -ENOMEM.
#define vec_reserve(v, n)               \
    ((v)->cap - (v)->len >= (size_t)(n) \
         ? 0                            \
         : vec_grow_raw((void **)&(v)->items, &(v)->cap, (v)->len + (n), sizeof *(v)->items))

// Appends an item. Returns 0 or -ENOMEM.
#define vec_push(v, ...) (vec_reserve(v, 1) ? -ENOMEM : ((v)->items[(v)->len++] = (__VA_ARGS__), 0))

#define vec_free(v) (mem_free((v)->items), (v)->items = NULL, (v)->len = (v)->cap = 0)

#endif
