// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_later.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "core/guard.h"
#include "pass/pass_check.h"
#include "pass/pass_variants.h"
#include "rewrite/rewrite_link.h"

enum { MOST_WAIT = 60000, NAME = 4096 };
enum { DRIVER_OF_9_0 = 13000 };  // the first that takes PTX 9.0

static struct cache *cache;

struct rewrite_later {
    struct str text;
    struct rewrite_jit jit;
    char key[CACHE_MOST_PASS + 1];
    unsigned arch;
    struct rewrite_source_sum sum;
    // What holds the text.
    struct pass_result *result;
    struct cache_entry entry;
    bool cached;
};

void rewrite_later_start(struct cache *the_cache)
{
    cache = the_cache;
}

struct rewrite_later *rewrite_later_new(const struct rewrite_jit *jit, const char *key, unsigned arch,
                                        const struct rewrite_source_sum *sum)
{
    struct rewrite_later *l = mem_zalloc(1, sizeof *l);
    if (!l)
        return NULL;
    rewrite_jit_copy(&l->jit, jit);
    snprintf(l->key, sizeof l->key, "%s", key);
    l->arch = arch;
    l->sum = *sum;
    return l;
}

void rewrite_later_entry(struct rewrite_later *l, const struct cache_entry *entry)
{
    l->entry = *entry;
    l->cached = true;
    l->text = (struct str){entry->image.ptr, strnlen(entry->image.ptr, entry->image.len)};
}

void rewrite_later_result(struct rewrite_later *l, struct pass_result *result)
{
    l->result = result;
    l->text = result->text;
}

void rewrite_later_free(struct rewrite_later *l)
{
    if (!l)
        return;
    if (l->cached)
        cache_entry_free(&l->entry);
    pass_result_free(l->result);
    mem_free(l);
}

bool rewrite_later_fits(const struct pass_check *checks, const void *handle, bool library)
{
    const struct driver *d = &guard.real;
    char name[NAME];
    for (uint32_t i = 0; checks && i < checks->nvariables; i++) {
        const struct pass_check_variable *v = &checks->variables[i];
        CUdeviceptr at = 0;
        size_t size = 0;
        if (!v->needed)
            continue;
        if (snprintf(name, sizeof name, STR_FMT, STR_ARG(v->name)) >= (int)sizeof name ||
            (library ? d->cuLibraryGetGlobal(&at, &size, (CUlibrary)handle, name)
                     : d->cuModuleGetGlobal_v2(&at, &size, (CUmodule)handle, name)) ||
            size != v->size)
            return false;
    }
    return checks != NULL;
}

// --- compiling ---------------------------------------------------------------------------------------------

// The first message of a sink.
struct first {
    struct diag_sink sink;
    char text[200];
};

static void keep_first(struct diag_sink *sink, const struct diag *d)
{
    struct first *f = (struct first *)sink;
    if (d->severity == DIAG_ERROR && !f->text[0])
        snprintf(f->text, sizeof f->text, "%.150s", d->message);
}

static CUresult link_text(const struct rewrite_later *l, struct str text, unsigned registers,
                          struct rewrite_jit *jit, struct rewrite_variant *out, size_t *size)
{
    void *image = NULL;
    rewrite_jit_copy(jit, &l->jit);
    CUresult r = rewrite_link_open(jit, &out->link);
    if (!r)
        r = rewrite_link_add(out->link, text, "variant", registers);
    if (!r)
        r = rewrite_link_apart(out->link, text, &pass_check_apart);
    if (!r)
        r = guard.real.cuLinkComplete(out->link, &image, size);
    out->image = r ? NULL : image;
    return r;
}

static bool compile_way(const struct rewrite_later *l, const char *name, const struct pass_variants_way *way,
                        struct rewrite_variant *out, size_t *image, char *why, size_t size)
{
    struct first first = {.sink = {.emit = keep_first}};
    struct rewrite_jit jit;
    struct out text;
    int err = out_to_memory(&text);
    if (!err) {
        err = pass_variants_cut(l->text, str_from(name), way, &first.sink, &text);
        if (!err) {
            struct str cut = {text.buf, text.len - 1};
            CUresult r = link_text(l, cut, way->registers, &jit, out, image);
            const char *result = r ? driver_result_name(r) : "";
            snprintf(why, size, "%s%s%s", result ? result : "an unknown error", r && jit.log[0] ? ": " : "",
                     r ? jit.log : "");
        }
        out_close(&text);
    }
    if (err)
        snprintf(why, size, "%s", first.text[0] ? first.text : strerror(-err));
    return out->image;
}

// What a compiler does not take with a newer version of PTX it may take as it was.
static bool compile(const struct rewrite_later *l, const char *name, const struct rewrite_limits *limits,
                    bool cold, struct rewrite_variant *out, size_t *image, char *why, size_t size)
{
    struct pass_variants_way way = {limits->registers, limits->beside, cold};
    bool made = compile_way(l, name, &way, out, image, why, size);
    if (made || !way.cold)
        return made;
    rewrite_variant_free(out);
    way.cold = false;
    return compile_way(l, name, &way, out, image, why, size);
}

static bool recall(const struct cache_key *key, struct rewrite_variant *out)
{
    if (!cache || cache_get(cache, key, &out->entry))
        return false;
    out->cached = true;
    out->image = out->entry.image.ptr;
    guard_count(GUARD_CACHE_HITS);
    return true;
}

// What the entry is made of: the program's text, and the variant's name.
struct content {
    struct rewrite_source_sum sum;
    struct rewrite_limits limits;
    char name[NAME];
};

bool rewrite_later_make(struct rewrite_later *l, const char *name, const struct rewrite_limits *limits,
                        struct rewrite_variant *out, char *why, size_t size)
{
    struct content content = {.sum = l->sum, .limits = *limits};
    struct cache_claim claim;
    size_t image = 0;
    int driver = 0;
    *out = (struct rewrite_variant){.image = NULL};
    *why = 0;
    guard.real.cuDriverGetVersion(&driver);
    size_t length = (size_t)snprintf(content.name, sizeof content.name, "%s", name);
    if (length >= sizeof content.name)
        return false;
    const struct cache_key key = {
        .content = {(const char *)&content, offsetof(struct content, name) + length},
        .pass = l->key,
        .arch = l->arch,
        .driver = (uint32_t)driver};
    if (recall(&key, out))
        return true;
    if (cache)
        cache_claim(cache, &key, MOST_WAIT, &claim);
    bool made = recall(&key, out);
    if (!made) {
        made = compile(l, name, limits, driver >= DRIVER_OF_9_0, out, &image, why, size);
        if (made && cache && !cache_put(cache, &key, (struct str){out->image, image}, STR("variant\n")))
            guard_count(GUARD_CACHE_STORED);
    }
    if (cache)
        cache_unclaim(cache, &claim);
    return made;
}

void rewrite_variant_free(struct rewrite_variant *v)
{
    if (v->link)
        guard.real.cuLinkDestroy(v->link);
    if (v->cached)
        cache_entry_free(&v->entry);
    *v = (struct rewrite_variant){.image = NULL};
}
