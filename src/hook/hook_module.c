// SPDX-License-Identifier: MIT
// Modules and libraries: images are rewritten when they are loaded, if a mode wants that; the names of
// kernels are recorded, and the variables that the program requests.
#include <string.h>

#include "base/mem.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "context/kernels.h"
#include "context/names.h"
#include "mode/mode.h"
#include "rewrite/modules.h"
#include "rewrite/rewrite.h"
#include "rewrite/rewrite_jit.h"
#include "track/track.h"

// handle: where the driver has stored it, if it has loaded the image.
static CUresult loaded(CUresult r, const void *handle)
{
    guard_count(r ? GUARD_MODULES_REFUSED : GUARD_MODULES);
    if (!r && guard.watching)
        mode_module_made(*(const void *const *)handle);
    return r;
}

// The driver writes into the values of its options (sizes of logs, times): a second call must get the
// original values.
enum { VALUES = 64 };

static bool save_values(const struct rewrite_options *o, void **saved)
{
    if (o->count > VALUES || (o->count && !o->values))
        return false;
    if (o->count)
        memcpy(saved, o->values, o->count * sizeof *saved);
    return true;
}

static void restore_values(const struct rewrite_options *o, void *const *saved)
{
    if (o->count)
        memcpy(o->values, saved, o->count * sizeof *saved);
}

#define LOAD_MODULE(rewriting, ours, own_call)                       \
    struct rewrite_options o = {.count = 0};                         \
    struct rewrite r;                                                \
    CUresult result;                                                 \
    while (rewriting) {                                              \
        result = r.own ? own_call : ours;                            \
        if (rewrite_again(&r, &o, result, *module, false))           \
            continue;                                                \
        if (rewrite_end(&r, result, result ? NULL : *module, false)) \
            return loaded(result, module);                           \
        break;                                                       \
    }                                                                \
    result = own_call;                                               \
    rewrite_left(&r, result);                                        \
    return loaded(result, module)

CUresult hook_cuModuleLoad(CUmodule *module, const char *file)
{
    LOAD_MODULE(rewrite_file(&r, file, false, &o), guard.real.cuModuleLoadData(module, r.image),
                guard.real.cuModuleLoad(module, file));
}

CUresult hook_cuModuleLoadData(CUmodule *module, const void *image)
{
    LOAD_MODULE(rewrite_memory(&r, image, false, &o), guard.real.cuModuleLoadData(module, r.image),
                guard.real.cuModuleLoadData(module, image));
}

CUresult hook_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    LOAD_MODULE(rewrite_memory(&r, image, false, &o), guard.real.cuModuleLoadData(module, r.image),
                guard.real.cuModuleLoadFatBinary(module, image));
}

CUresult hook_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                                 void **values)
{
    struct rewrite_options o = {.count = count, .options = options, .values = values};
    struct rewrite r;
    void *saved[VALUES];
    CUresult result;
    while (rewrite_memory(&r, image, false, &o)) {
        bool saveable = save_values(&o, saved);
        const void *what = r.own ? image : r.image;
        result = saveable ? guard.real.cuModuleLoadDataEx(module, what, count, options, values)
                          : CUDA_ERROR_INVALID_VALUE;
        bool again = rewrite_again(&r, &o, result, *module, false);
        if (!again && rewrite_end(&r, result, result ? NULL : *module, false))
            return loaded(result, module);
        if (saveable)
            restore_values(&o, saved);
        if (!again)
            break;
    }
    result = guard.real.cuModuleLoadDataEx(module, image, count, options, values);
    rewrite_left(&r, result);
    return loaded(result, module);
}

// A library's own options. Those about the program's image do not apply to moat's.
struct library_options {
    unsigned count;
    CUlibraryOption options[CU_LIBRARY_NUM_OPTIONS];
    void *values[CU_LIBRARY_NUM_OPTIONS];
};

static bool keep_options(struct library_options *o, const CUlibraryOption *options, void *const *values,
                         unsigned count)
{
    o->count = 0;
    for (unsigned i = 0; i < count && options; i++) {
        if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
            continue;
        if (o->count == CU_LIBRARY_NUM_OPTIONS)
            return false;
        o->options[o->count] = options[i];
        o->values[o->count++] = values ? values[i] : NULL;
    }
    return true;
}

// The program's own options, or a copy with one more.
struct load_options {
    struct rewrite_options from;
    CUjit_option options[VALUES + 1];
    void *values[VALUES + 1];
};

// Returns false if there is no room. The program does not see what the driver writes into the copy's values,
// and need not: without a context, the compilation happens later.
static bool limit_registers(const struct rewrite *r, const struct rewrite_options *o, struct load_options *to)
{
    to->from = *o;
    if (!r->registers)
        return true;
    if (o->count > VALUES)
        return false;
    if (o->count) {
        memcpy(to->options, o->options, o->count * sizeof *to->options);
        memcpy(to->values, o->values, o->count * sizeof *to->values);
    }
    to->from.options = to->options;
    to->from.values = to->values;
    return rewrite_jit_limit(to->options, to->values, &to->from.count, VALUES + 1, r->registers);
}

// How a program loads a library.
struct library_call {
    const void *code;  // NULL: from the file
    const char *file;
    CUlibraryOption *options;
    void **values;
    unsigned count;
};

static CUresult load_own(const struct library_call *c, CUlibrary *library, const struct rewrite_options *o)
{
    return c->file ? guard.real.cuLibraryLoadFromFile(library, c->file, o->options, o->values, o->count,
                                                      c->options, c->values, c->count)
                   : guard.real.cuLibraryLoadData(library, c->code, o->options, o->values, o->count,
                                                  c->options, c->values, c->count);
}

static CUresult load_ours(const struct rewrite *r, CUlibrary *library, const struct rewrite_options *o,
                          struct library_options *l)
{
    struct load_options own;
    if (!limit_registers(r, o, &own))
        return CUDA_ERROR_INVALID_VALUE;
    return guard.real.cuLibraryLoadData(library, r->image, own.from.options, own.from.values, own.from.count,
                                        l->count ? l->options : NULL, l->count ? l->values : NULL, l->count);
}

// Returns true if the library was loaded as moat wants it; *result is then the program's result.
static bool load_library(struct rewrite *r, const struct library_call *c, CUlibrary *library,
                         struct rewrite_options *o, CUresult *result)
{
    struct library_options l;
    void *saved[VALUES];
    bool again = keep_options(&l, c->options, c->values, c->count);
    r->why = REWRITE_OFF;
    while (again && (c->file ? rewrite_file(r, c->file, true, o) : rewrite_memory(r, c->code, true, o))) {
        bool saveable = save_values(o, saved);
        *result = !saveable ? CUDA_ERROR_INVALID_VALUE
                  : r->own  ? load_own(c, library, o)
                            : load_ours(r, library, o, &l);
        again = rewrite_again(r, o, *result, *library, true);
        if (!again && rewrite_end(r, *result, *result ? NULL : *library, true))
            return true;
        if (saveable)
            restore_values(o, saved);
    }
    return false;
}

static CUresult load(const struct library_call *c, CUlibrary *library, struct rewrite_options *o)
{
    struct rewrite r;
    CUresult result;
    if (load_library(&r, c, library, o, &result))
        return loaded(result, library);
    result = load_own(c, library, o);
    rewrite_left(&r, result);
    return loaded(result, library);
}

CUresult hook_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
                                unsigned count, CUlibraryOption *library_options, void **library_values,
                                unsigned library_count)
{
    struct rewrite_options o = {.count = count, .options = options, .values = values};
    return load(&(struct library_call){code, NULL, library_options, library_values, library_count}, library,
                &o);
}

CUresult hook_cuLibraryLoadFromFile(CUlibrary *library, const char *file, CUjit_option *options,
                                    void **values, unsigned count, CUlibraryOption *library_options,
                                    void **library_values, unsigned library_count)
{
    struct rewrite_options o = {.count = count, .options = options, .values = values};
    if (!file)
        return loaded(guard.real.cuLibraryLoadFromFile(library, file, options, values, count, library_options,
                                                       library_values, library_count),
                      library);
    return load(&(struct library_call){NULL, file, library_options, library_values, library_count}, library,
                &o);
}

// After the driver's call the handle may be another module's: the row identifies the one that was unloaded.
#define UNLOAD(symbol, handle)                           \
    struct modules_row *row = modules_unloading(handle); \
    mode_module_ends(handle);                            \
    uint64_t before = kernels_found_so_far();            \
    kernels_owner_ends(handle, true);                    \
    CUresult r = guard.real.symbol(handle);              \
    if (r) {                                             \
        kernels_owner_ends(handle, false);               \
        mode_module_stays(handle);                       \
    } else if (guard.watching) {                         \
        mode_module_gone(handle);                        \
        modules_gone(row);                               \
        kernels_owner_gone(handle, before);              \
        track_owner_gone(handle, DRIVER_##symbol);       \
    }                                                    \
    modules_release(row);                                \
    return r

CUresult hook_cuModuleUnload(CUmodule module)
{
    UNLOAD(cuModuleUnload, module);
}

CUresult hook_cuLibraryUnload(CUlibrary library)
{
    UNLOAD(cuLibraryUnload, library);
}

// Functions and kernels.

static void know_function(const void *handle, enum kernels_kind kind, const void *owner, const char *name)
{
    kernels_found(handle, kind, owner, name);
    mode_function_found(handle, owner, name);
}

CUresult hook_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult r = guard.real.cuModuleGetFunction(function, module, name);
    if (!r && guard.watching)
        know_function(*function, KERNELS_FUNCTION, module, name);
    return r;
}

CUresult hook_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult r = guard.real.cuLibraryGetKernel(kernel, library, name);
    if (!r && guard.watching) {
        know_function(*kernel, KERNELS_KERNEL, library, name);
        mode_library_in_context(library, NULL);
    }
    return r;
}

static const void *owner_of(CUkernel kernel)
{
    const struct kernel *k = kernels_find(kernel);
    return k ? atomic_load_explicit(&k->owner, memory_order_acquire) : NULL;  // partner: kernels_found
}

CUresult hook_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUresult r = guard.real.cuKernelGetFunction(function, kernel);
    if (!r && guard.watching) {
        kernels_found(*function, KERNELS_FUNCTION, owner_of(kernel), kernels_name(kernel));
        mode_function_of(*function, kernel);
    }
    return r;
}

// Returns whether the parameter is one that moat has added to a rewritten kernel.
static bool is_hidden(const void *handle, size_t index)
{
    struct kernel *k = kernels_find(handle);
    if (!k || !atomic_load_explicit(&k->hidden, memory_order_acquire))  // partner: kernels_hide
        return false;
    const struct kernels_layout *l = kernels_layout(k);
    return l && index >= l->count;
}

CUresult hook_cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    return is_hidden(f, index) ? CUDA_ERROR_INVALID_VALUE
                               : guard.real.cuFuncGetParamInfo(f, index, offset, size);
}

CUresult hook_cuKernelGetParamInfo(CUkernel k, size_t index, size_t *offset, size_t *size)
{
    return is_hidden(k, index) ? CUDA_ERROR_INVALID_VALUE
                               : guard.real.cuKernelGetParamInfo(k, index, offset, size);
}

CUresult hook_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUresult r = guard.real.cuLibraryGetModule(module, library);
    if (!r && guard.watching)
        mode_library_in_context(library, *module);
    return r;
}

// A program that enumerates kernels passes no names, so the driver is asked for them. Kernels that moat has
// added to a rewritten module are not listed.

static bool is_added(const char *name)
{
    static const char prefix[] = "__moat_";
    return !strncmp(name, prefix, sizeof prefix - 1);
}

#define ENUMERATE(symbol, kind, handle_type, owner_type, number_of, name_of, used)                       \
    /* Returns all handles, to be freed, and how many of them, moved to the front, are the program's. */ \
    static handle_type *list_##symbol(owner_type owner, unsigned *own)                                   \
    {                                                                                                    \
        unsigned n = 0, m = 0;                                                                           \
        const char *name;                                                                                \
        handle_type *all = NULL;                                                                         \
        if (!guard.real.number_of(&n, owner) && n)                                                       \
            all = mem_alloc(n * sizeof *all);                                                            \
        if (all && guard.real.symbol(all, n, owner)) {                                                   \
            mem_free(all);                                                                               \
            all = NULL;                                                                                  \
        }                                                                                                \
        for (unsigned i = 0; all && i < n; i++)                                                          \
            if (guard.real.name_of(&name, all[i]) || !is_added(name))                                    \
                all[m++] = all[i];                                                                       \
        *own = m;                                                                                        \
        return all;                                                                                      \
    }                                                                                                    \
    CUresult hook_##symbol(handle_type *handles, unsigned room, owner_type owner)                        \
    {                                                                                                    \
        CUresult r = guard.real.symbol(handles, room, owner);                                            \
        unsigned n = 0;                                                                                  \
        if (r || !guard.watching)                                                                        \
            return r;                                                                                    \
        handle_type *all = list_##symbol(owner, &n);                                                     \
        for (unsigned i = 0; all && i < room; i++)                                                       \
            handles[i] = i < n ? all[i] : NULL;                                                          \
        for (unsigned i = 0; i < n && i < room; i++) {                                                   \
            const char *name;                                                                            \
            if (!guard.real.name_of(&name, handles[i]))                                                  \
                know_function(handles[i], kind, owner, name);                                            \
        }                                                                                                \
        mem_free(all);                                                                                   \
        used;                                                                                            \
        return r;                                                                                        \
    }                                                                                                    \
    CUresult hook_##number_of(unsigned *number, owner_type owner)                                        \
    {                                                                                                    \
        CUresult r = guard.real.number_of(number, owner);                                                \
        unsigned n = 0;                                                                                  \
        handle_type *all = r || !rewrite_on ? NULL : list_##symbol(owner, &n);                           \
        if (all)                                                                                         \
            *number = n;                                                                                 \
        mem_free(all);                                                                                   \
        return r;                                                                                        \
    }

ENUMERATE(cuModuleEnumerateFunctions, KERNELS_FUNCTION, CUfunction, CUmodule, cuModuleGetFunctionCount,
          cuFuncGetName, (void)0)
ENUMERATE(cuLibraryEnumerateKernels, KERNELS_KERNEL, CUkernel, CUlibrary, cuLibraryGetKernelCount,
          cuKernelGetName, mode_library_in_context(owner, NULL))

// Variables. A program may request one again and again; it is recorded only the first time.

static void found_variable(enum driver_id call, uint64_t base, size_t size, const void *owner,
                           const char *name)
{
    unsigned section = epoch_enter();
    struct track_block *b = track_live(base);
    bool known = b && b->range.base == base && b->range.size == size && b->facts.family == TRACK_VARIABLE;
    epoch_leave(section);
    if (known || !base)
        return;
    track_made_for(TRACK_VARIABLE, call, base, size, owner, names_keep(name));
    guard_count(GUARD_VARIABLES);
}

#define VARIABLE(symbol, owner_type)                                                                        \
    CUresult hook_##symbol(CUdeviceptr *pointer, size_t *bytes, owner_type owner, const char *name)         \
    {                                                                                                       \
        CUdeviceptr base = 0;                                                                               \
        size_t size = 0;                                                                                    \
        if (!pointer && !bytes)                                                                             \
            return guard.real.symbol(NULL, NULL, owner, name);                                              \
        CUresult r = guard.real.symbol(pointer ? pointer : &base, bytes ? bytes : &size, owner, name);      \
        if (!r && guard.watching)                                                                           \
            found_variable(DRIVER_##symbol, pointer ? *pointer : base, bytes ? *bytes : size, owner, name); \
        return r;                                                                                           \
    }

VARIABLE(cuModuleGetGlobal_v2, CUmodule)
VARIABLE(cuLibraryGetGlobal, CUlibrary)
VARIABLE(cuLibraryGetManaged, CUlibrary)
