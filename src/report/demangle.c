// SPDX-License-Identifier: MIT
#include "report/demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "report/brief_name.h"

enum { LONGEST = 4096 };  // longest mangled name that is demangled

typedef char *demangle_function(const char *name, char *buffer, size_t *size, int *status);

struct demangled {
    const char *name, *brief;
};

struct demangler {
    struct arena arena;
    struct map known;  // mangled name → its place in names
    VEC(struct demangled) names;
    void *library;
    demangle_function *function;
    bool tried;
};

struct demangler *demangle_new(void)
{
    struct demangler *d = mem_zalloc(1, sizeof *d);
    if (d)
        arena_init(&d->arena, 0);
    return d;
}

void demangle_free(struct demangler *d)
{
    if (!d)
        return;
    map_free(&d->known);
    vec_free(&d->names);
    arena_free(&d->arena);
    if (d->library)
        dlclose(d->library);
    mem_free(d);
}

static demangle_function *load(struct demangler *d)
{
    if (!d->tried) {
        d->tried = true;
        d->library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        if (d->library)
            *(void **)&d->function = dlsym(d->library, "__cxa_demangle");
    }
    return d->function;
}

// Removes the namespaces that nvcc puts what is local to a file into: _INTERNAL_5a865170_6_b12_cu_weights::.
static void drop_internal(char *text)
{
    static const char start[] = "_INTERNAL_";
    for (char *at = text; (at = strstr(at, start));) {
        size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        bool whole = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (whole && at[word] == ':' && at[word + 1] == ':')
            memmove(at, at + word + 2, strlen(at + word + 2) + 1);
        else
            at += word;
    }
}

// Removes what Numba adds to a kernel's name: [abi:v1], and its options as a long word.
static void drop_tags(char *text)
{
    enum { LONG = 20 };
    static const char start[] = "[abi:";
    for (char *at = text; (at = strstr(at, start));) {
        const char *tag = at + sizeof start - 1, *end = strchr(tag, ']');
        if (!end)
            return;
        bool is_version = *tag == 'v' && tag[1 + strspn(tag + 1, "0123456789")] == ']';
        bool is_options = *tag == 'c' && end - tag > LONG;
        if (is_version || is_options)
            memmove(at, end + 1, strlen(end + 1) + 1);
        else
            at++;
    }
}

// Demangles a name into the arena. Returns NULL if it is not mangled, or if out of memory.
static const char *compute(struct demangler *d, const char *name)
{
    int status = 0;
    char *text = load(d) ? d->function(name, NULL, NULL, &status) : NULL;
    if (text) {
        drop_internal(text);
        drop_tags(text);
    }
    struct str copy = text ? arena_str(&d->arena, (struct str){text, strlen(text) + 1}) : (struct str){0};
    free(text);
    return copy.ptr;
}

static const char *make_brief(struct demangler *d, const char *name)
{
    char buffer[4 * LONGEST];
    const char *brief = brief_name(name, buffer, sizeof buffer);
    const char *copy =
        brief == name ? name : arena_str(&d->arena, (struct str){brief, strlen(brief) + 1}).ptr;
    return copy ? copy : name;
}

// Returns both forms of a name, which are the name itself if it is not mangled, or if out of memory.
static struct demangled find_both(struct demangler *d, const char *name)
{
    struct str key = str_from(name);
    if (!str_starts(key, STR("_Z")) || key.len > LONGEST)
        return (struct demangled){name, name};
    uint32_t at = map_get(&d->known, key);
    if (at != MAP_NONE)
        return d->names.items[at];
    const char *copy = arena_str(&d->arena, (struct str){name, key.len + 1}).ptr;
    if (!copy)
        return (struct demangled){name, name};
    struct demangled found = {.name = compute(d, name)};
    if (!found.name)
        found.name = copy;
    found.brief = make_brief(d, found.name);
    if (!vec_push(&d->names, found))
        map_put(&d->known, (struct str){copy, key.len}, (uint32_t)(d->names.len - 1));
    return found;
}

static const char *find(void *context, const char *name)
{
    return find_both(context, name).name;
}

static const char *find_brief(void *context, const char *name)
{
    return find_both(context, name).brief;
}

struct demangle demangle_with(struct demangler *d)
{
    return d ? (struct demangle){find, d} : (struct demangle){0};
}

struct demangle demangle_brief_with(struct demangler *d)
{
    return d ? (struct demangle){find_brief, d} : (struct demangle){0};
}
