// SPDX-License-Identifier: MIT
#include "guard/jit_hook.h"

#include <dlfcn.h>

#include "guard/dl_hook.h"
#include "guard/jit_library.h"

// A caller that is linked with a library is known by its return address.
#define CALLER(f) jit_library_of_caller(JIT_##f, __builtin_return_address(0))
#define EXPORTED __attribute__((visibility("default")))

#define DEFINE_NVRTC_CUBIN(name, how, library)          \
    how int name(void *program, char *code);            \
    int name(void *program, char *code)                 \
    {                                                   \
        return jit_nvrtc_cubin(library, program, code); \
    }
#define DEFINE_LINK_CREATE(name, how, library)                         \
    how int name(void **handle, uint32_t count, const char **options); \
    int name(void **handle, uint32_t count, const char **options)      \
    {                                                                  \
        return jit_link_create(library, handle, count, options);       \
    }
#define DEFINE_LINK_DATA(name, how, library)                                                 \
    how int name(void *handle, int type, const void *data, size_t size, const char *called); \
    int name(void *handle, int type, const void *data, size_t size, const char *called)      \
    {                                                                                        \
        return jit_link_data(library, handle, type, data, size, called);                     \
    }
#define DEFINE_LINK_FILE(name, how, library)                \
    how int name(void *handle, int type, const char *path); \
    int name(void *handle, int type, const char *path)      \
    {                                                       \
        return jit_link_file(library, handle, type, path);  \
    }
#define DEFINE_LINK_CUBIN(name, how, library)         \
    how int name(void *handle, void *code);           \
    int name(void *handle, void *code)                \
    {                                                 \
        return jit_link_cubin(library, handle, code); \
    }
#define DEFINE_LINK_DESTROY(name, how, library)   \
    how int name(void **handle);                  \
    int name(void **handle)                       \
    {                                             \
        return jit_link_destroy(library, handle); \
    }

// For callers that are linked with a library.
#define CALL(symbol, f) DEFINE_##f(symbol, EXPORTED, CALLER(f))
#include "guard/jit_calls.def"
#undef CALL

// For those that ask dlsym: a function for each library.
#define FUNCTIONS(n)                            \
    DEFINE_NVRTC_CUBIN(cubin_of_##n, static, n) \
    DEFINE_LINK_CREATE(create_##n, static, n)   \
    DEFINE_LINK_DATA(data_##n, static, n)       \
    DEFINE_LINK_FILE(file_##n, static, n)       \
    DEFINE_LINK_CUBIN(linked_##n, static, n)    \
    DEFINE_LINK_DESTROY(destroy_##n, static, n)
FUNCTIONS(0)
FUNCTIONS(1)
FUNCTIONS(2)
FUNCTIONS(3)

#define ADDRESSES(n)                                                                                      \
    {                                                                                                     \
        (void *)cubin_of_##n, (void *)create_##n, (void *)data_##n, (void *)file_##n, (void *)linked_##n, \
            (void *)destroy_##n                                                                           \
    }
static void *const replacements[JIT_LIBRARIES][JIT_FUNCTIONS] = {ADDRESSES(0), ADDRESSES(1), ADDRESSES(2),
                                                                 ADDRESSES(3)};

// The pseudo-handles depend on the caller and find the symbols above, which also depend on it. No sanitizer:
// its start calls dlsym before its own functions work.
__attribute__((no_sanitize("address", "thread", "undefined"))) void *jit_hook_symbol(void *handle,
                                                                                     const char *symbol)
{
    int f = jit_library_function(symbol);
    if (f == JIT_NONE || handle == RTLD_DEFAULT || handle == RTLD_NEXT)
        return NULL;
    void *real = dl_hook_real_symbol(handle, symbol);
    int library = real ? jit_library_at(real) : JIT_NONE;
    return library == JIT_NONE ? real : replacements[library][f];
}
