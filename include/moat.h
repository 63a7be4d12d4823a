// SPDX-License-Identifier: MIT
// Calls by which a program informs moat. Include it anywhere, C or C++: nothing has to be linked, and if moat does not
// watch the program, every call does nothing.
//
// A pool allocator takes large buffers from CUDA and gives out pieces. moat sees the large buffers only; the allocator
// announces the pieces:
//
//     void *piece = pool_take(pool, size);
//     moat_block_made(piece, size, "activations");
//     ...
//     moat_block_gone(piece);
//     pool_give_back(pool, piece);
//
// moat then finds transfers that leave a piece, as if it had been allocated separately.
#ifndef MOAT_H
#define MOAT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The functions of libmoat.so behind those below; it exports one such struct, moat_calls.
struct moat_calls {
    size_t size;
    void (*block_made)(const void *base, size_t size, const char *name);
    void (*block_gone)(const void *base);
    unsigned long long (*errors)(void);
};

// dlsym, if the program has it. moat_calls is looked up at run time, because a linker binds a weak symbol without a
// definition to NULL for good.
extern void *moat_find_symbol(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));

// NULL: moat does not watch this process.
static inline const struct moat_calls *moat_find_calls(void)
{
    static const char none = 0;
    static const void *found;  // threads that race find the same
    const void *calls = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (!calls) {
        calls = moat_find_symbol ? moat_find_symbol(NULL, "moat_calls") : NULL;
        calls = calls ? calls : &none;
        __atomic_store_n(&found, calls, __ATOMIC_RELAXED);
    }
    return calls == &none ? NULL : (const struct moat_calls *)calls;
}

// The allocator gave out a block. name may be NULL; it is copied.
static inline void moat_block_made(const void *base, size_t size, const char *name)
{
    const struct moat_calls *calls = moat_find_calls();
    if (calls)
        calls->block_made(base, size, name);
}

// The allocator took the block back: its memory belongs to the pool again.
static inline void moat_block_gone(const void *base)
{
    const struct moat_calls *calls = moat_find_calls();
    if (calls)
        calls->block_gone(base);
}

// Whether moat watches this process.
static inline int moat_is_watching(void)
{
    return moat_find_calls() != NULL;
}

// How many errors were reported in this process so far.
static inline unsigned long long moat_errors(void)
{
    const struct moat_calls *calls = moat_find_calls();
    return calls ? calls->errors() : 0;
}

#ifdef __cplusplus
}
#endif

#endif
