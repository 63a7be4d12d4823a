// SPDX-License-Identifier: MIT
// The interface by which a program informs moat. Include it anywhere, from C or C++: nothing has to be
// linked, and every call is a no-op in a process that moat does not watch.
//
// A pool allocator takes large buffers from CUDA and hands out pieces of them. moat sees the large buffers;
// the program announces the pieces:
//
//     void *piece = pool_take(pool, size);
//     moat_block_made(piece, size, "activations");
//     ...
//     moat_block_gone(piece);
//     pool_give_back(pool, piece);
//
// From then on moat reports transfers that leave a piece, as if the piece had been allocated by itself.
#ifndef MOAT_H
#define MOAT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The functions that libmoat.so provides for those below. It exports one object of this type, moat_calls.
struct moat_calls {
    size_t size;
    void (*block_made)(const void *base, size_t size, const char *name);
    void (*block_gone)(const void *base);
    unsigned long long (*errors)(void);
    int (*pause)(int on);
};

// dlsym, or NULL if the program does not have it. moat_calls is looked up at run time because a linker
// resolves a weak symbol that nothing defines to NULL for good.
extern void *moat_find_symbol(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));

// Returns NULL if moat does not watch this process.
static inline const struct moat_calls *moat_find_calls(void)
{
    static const char none = 0;
    static const void *found;  // threads that race store the same value
    const void *calls = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (!calls) {
        calls = moat_find_symbol ? moat_find_symbol(NULL, "moat_calls") : NULL;
        calls = calls ? calls : &none;
        __atomic_store_n(&found, calls, __ATOMIC_RELAXED);
    }
    return calls == &none ? NULL : (const struct moat_calls *)calls;
}

// Announces that an allocator handed out a block. name may be NULL; it is copied.
static inline void moat_block_made(const void *base, size_t size, const char *name)
{
    const struct moat_calls *calls = moat_find_calls();
    if (calls)
        calls->block_made(base, size, name);
}

// Announces that the block was taken back: its memory belongs to the allocator again.
static inline void moat_block_gone(const void *base)
{
    const struct moat_calls *calls = moat_find_calls();
    if (calls)
        calls->block_gone(base);
}

// Returns whether moat watches this process.
static inline int moat_is_watching(void)
{
    return moat_find_calls() != NULL;
}

// Returns how many errors moat has reported in this process so far.
static inline unsigned long long moat_errors(void)
{
    const struct moat_calls *calls = moat_find_calls();
    return calls ? calls->errors() : 0;
}

// Lets launches, copies, memsets and waits pass without a look, and canary mode make no scans (on != 0),
// until it is called again with 0: to measure what moat costs inside one process. Memory is tracked all the
// time. Errors of that time may be missed, and kernels of that time are named in no report. Returns whether
// it was done; it is not where the program's own kernels are changed (count, explain, and --kheap of check
// and canary), or without moat. In check mode kernels run without their checks.
static inline int moat_pause(int on)
{
    const struct moat_calls *calls = moat_find_calls();
    return calls && calls->size > offsetof(struct moat_calls, pause) ? calls->pause(on) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
