// SPDX-License-Identifier: MIT
// C++'s operators new and delete, by their mangled names: libstdc++'s own would call malloc, and reports
// would show libstdc++ in place of the program.
#include <dlfcn.h>
#include <stddef.h>

#include "heap/heap_fast.h"

#define EXPORT __attribute__((visibility("default")))

// As the standard asks if out of memory: calls the program's new handler, as often as there is one, else
// throws std::bad_alloc. Both are libstdc++'s, which a program with these operators has.
static void out_of_memory(void)
{
    typedef void handler(void);
    handler *(*get)(void) = (handler * (*)(void)) dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv");
    handler *set = get ? get() : NULL;
    if (set) {
        set();
        return;
    }
    handler *fail = (handler *)dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv");
    if (fail)
        fail();
    __builtin_trap();
}

static inline __attribute__((always_inline)) void *take(const void *from, const void *frame, size_t size,
                                                        size_t align, enum block_kind kind)
{
    return align > BLOCK_ALIGN ? heap_alloc(from, frame, size, align, kind)
                               : heap_fast_alloc(from, frame, size, kind);
}

static inline __attribute__((always_inline)) void *
new_or_throw(const void *from, const void *frame, size_t size, size_t align, enum block_kind kind)
{
    void *p;
    while (__builtin_expect(!(p = take(from, frame, size, align, kind)), 0))
        out_of_memory();
    return p;
}

// NEW(symbol, nothrow's symbol, their aligned symbols, kind)
#define NEW(plain, nothrow, aligned, aligned_nothrow, kind)                     \
    EXPORT void *plain(size_t size);                                            \
    EXPORT void *plain(size_t size)                                             \
    {                                                                           \
        return new_or_throw(HEAP_CALL, size, 0, kind);                          \
    }                                                                           \
    EXPORT void *nothrow(size_t size, const void *);                            \
    EXPORT void *nothrow(size_t size, const void *unused)                       \
    {                                                                           \
        return take(HEAP_CALL, size, 0, kind);                                  \
    }                                                                           \
    EXPORT void *aligned(size_t size, size_t align);                            \
    EXPORT void *aligned(size_t size, size_t align)                             \
    {                                                                           \
        return new_or_throw(HEAP_CALL, size, align, kind);                      \
    }                                                                           \
    EXPORT void *aligned_nothrow(size_t size, size_t align, const void *);      \
    EXPORT void *aligned_nothrow(size_t size, size_t align, const void *unused) \
    {                                                                           \
        return take(HEAP_CALL, size, align, kind);                              \
    }

NEW(_Znwm, _ZnwmRKSt9nothrow_t, _ZnwmSt11align_val_t, _ZnwmSt11align_val_tRKSt9nothrow_t, BLOCK_NEW)
NEW(_Znam, _ZnamRKSt9nothrow_t, _ZnamSt11align_val_t, _ZnamSt11align_val_tRKSt9nothrow_t, BLOCK_NEW_ARRAY)

#define DELETE(name, kind, spelled, ...)             \
    EXPORT void name(void *p, ##__VA_ARGS__);        \
    EXPORT void name(void *p, ##__VA_ARGS__)         \
    {                                                \
        heap_fast_free(HEAP_CALL, p, kind, spelled); \
    }

// The size and alignment that a program passes are not needed: a block knows its own.
DELETE(_ZdlPv, BLOCK_NEW, "delete")
DELETE(_ZdlPvm, BLOCK_NEW, "delete", size_t size)
DELETE(_ZdlPvRKSt9nothrow_t, BLOCK_NEW, "delete", const void *unused)
DELETE(_ZdlPvSt11align_val_t, BLOCK_NEW, "delete", size_t align)
DELETE(_ZdlPvmSt11align_val_t, BLOCK_NEW, "delete", size_t size, size_t align)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, BLOCK_NEW, "delete", size_t align, const void *unused)
DELETE(_ZdaPv, BLOCK_NEW_ARRAY, "delete[]")
DELETE(_ZdaPvm, BLOCK_NEW_ARRAY, "delete[]", size_t size)
DELETE(_ZdaPvRKSt9nothrow_t, BLOCK_NEW_ARRAY, "delete[]", const void *unused)
DELETE(_ZdaPvSt11align_val_t, BLOCK_NEW_ARRAY, "delete[]", size_t align)
DELETE(_ZdaPvmSt11align_val_t, BLOCK_NEW_ARRAY, "delete[]", size_t size, size_t align)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, BLOCK_NEW_ARRAY, "delete[]", size_t align, const void *unused)
