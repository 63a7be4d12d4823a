// SPDX-License-Identifier: MIT
#include "guard/jit_library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "guard/dl_hook.h"

static const char *const names[JIT_FUNCTIONS] = {
    [JIT_NVRTC_CUBIN] = "nvrtcGetCUBIN",          [JIT_LINK_CREATE] = "nvJitLinkCreate",
    [JIT_LINK_DATA] = "nvJitLinkAddData",         [JIT_LINK_FILE] = "nvJitLinkAddFile",
    [JIT_LINK_CUBIN] = "nvJitLinkGetLinkedCubin", [JIT_LINK_DESTROY] = "nvJitLinkDestroy",
};

// A sanitizer's start calls dlsym before its own functions work.
#define EARLY __attribute__((no_sanitize("address", "thread", "undefined")))

// Returns whether a symbol is a name, or a name between "__" and a version.
EARLY static bool is_symbol_of(const char *symbol, const char *name)
{
    bool versioned = symbol[0] == '_' && symbol[1] == '_';
    const char *s = versioned ? symbol + 2 : symbol;
    while (*name && *s == *name) {
        s++;
        name++;
    }
    return !*name && (versioned ? *s == '_' : !*s);
}

EARLY int jit_library_function(const char *symbol)
{
    // Nearly every symbol differs here.
    if (!symbol || !((symbol[0] == 'n' && symbol[1] == 'v') || (symbol[0] == '_' && symbol[1] == '_')))
        return JIT_NONE;
    for (int f = 0; f < JIT_FUNCTIONS; f++)
        if (is_symbol_of(symbol, names[f]))
            return f;
    return JIT_NONE;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank: leaf; the loader is not called under it
static void *handles[JIT_LIBRARIES];                      // filled from the front, never changed after that

// Returns the number of a library, which must stay loaded.
static int number_of(void *handle)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    while (n < JIT_LIBRARIES && handles[n] && handles[n] != handle)
        n++;
    bool known = n < JIT_LIBRARIES && handles[n];
    if (n < JIT_LIBRARIES)
        handles[n] = handle;
    pthread_mutex_unlock(&lock);
    if (known || n == JIT_LIBRARIES)
        dlclose(handle);
    return n < JIT_LIBRARIES ? n : JIT_NONE;
}

static int number_of_file(const char *path)
{
    void *handle = path && *path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return handle ? number_of(handle) : JIT_NONE;
}

static const struct link_map *map_at(const void *address)
{
    Dl_info info;
    void *map;
    return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}

int jit_library_at(const void *address)
{
    const struct link_map *map = map_at(address);
    return map && map != map_at(names) ? number_of_file(map->l_name) : JIT_NONE;
}

// --- libraries that a caller is linked with ----------------------------------------------------------------

// What a file's dynamic section says.
struct dynamic {
    const ElfW(Dyn) * entries;
    const char *strings;
    const char *soname;
};

// The loader relocates the address of the strings, except in files that it has not loaded, as the kernel's
// vdso.
static struct dynamic read_dynamic(ElfW(Addr) base, const ElfW(Dyn) * entries)
{
    struct dynamic d = {.entries = entries};
    size_t name = 0;
    for (; entries && entries->d_tag != DT_NULL; entries++)
        if (entries->d_tag == DT_STRTAB)
            d.strings = (const char *)(entries->d_un.d_ptr + (entries->d_un.d_ptr < base ? base : 0));
        else if (entries->d_tag == DT_SONAME)
            name = entries->d_un.d_val;
    d.soname = d.strings && name ? d.strings + name : NULL;
    return d;
}

static bool needs(const struct dynamic *d, const char *soname)
{
    for (const ElfW(Dyn) *e = d->entries; e && e->d_tag != DT_NULL; e++)
        if (e->d_tag == DT_NEEDED && strcmp(d->strings + e->d_un.d_val, soname) == 0)
            return true;
    return false;
}

struct search {
    const char *prefix;     // of the SONAME
    struct dynamic caller;  // empty: not known
    char path[4096];        // of what was found
    bool needed;            // by the caller
};

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *s = context;
    const ElfW(Dyn) *entries = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entries = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    struct dynamic d = read_dynamic(info->dlpi_addr, entries);
    if (!d.soname || strncmp(d.soname, s->prefix, strlen(s->prefix)) != 0)
        return 0;
    s->needed = s->caller.strings && needs(&s->caller, d.soname);
    if (s->needed || !*s->path)
        snprintf(s->path, sizeof s->path, "%s", info->dlpi_name);
    return s->needed;
}

int jit_library_of_caller(enum jit_function f, const void *return_address)
{
    const struct link_map *caller = map_at(return_address);
    struct search s = {.prefix = f == JIT_NVRTC_CUBIN ? "libnvrtc." : "libnvJitLink."};
    if (caller)
        s.caller = read_dynamic(caller->l_addr, caller->l_ld);
    dl_iterate_phdr(look, &s);
    return number_of_file(s.path);
}

void jit_library_find(int number, const char *name, void *to, size_t size)
{
    static const char *const forms[] = {"%s", "__%s_13_0", "__%s_12_0"};
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof forms / sizeof *forms; i++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, forms[i], name);
        found = dl_hook_real_symbol(handles[number], symbol);
    }
    memcpy(to, &found, size);
}
