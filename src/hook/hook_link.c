// SPDX-License-Identifier: MIT
// Links: PTX among the inputs is rewritten, and the resulting image is remembered, so that it is recognised
// when the program loads it.
//
// The program's inputs are kept. If the driver refuses the rewritten ones, at once or when the link is
// completed, a second link of the original inputs replaces the first; the program keeps its handle.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/lock.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "hook/hook_link.h"
#include "rewrite/rewrite.h"
#include "rewrite/rewrite_about.h"
#include "rewrite/rewrite_jit.h"

struct jit_options {
    unsigned count;
    CUjit_option *options;
    void **values;
};

struct input {
    CUjitInputType type;
    char *bytes;  // NULL: a file
    size_t size;
    char *name;  // or path
    struct jit_options options;
};

struct link {
    struct link *next;
    CUlinkState handle;
    CUlinkState plain;           // the second link; NULL: not needed
    struct jit_options options;  // with copies of the values
    void **values;               // the program's, where the driver stores results
    bool lost;                   // an input could not be kept: no second link is possible
    VEC(struct input) inputs;
    VEC(struct pass_result *) parts;
    struct rewrite left;  // the reason, for the first input that was not rewritten
};

static struct lock lock = LOCK_INIT(LINKS);  // a leaf; a link itself is used by one thread at a time
static struct link *links;

void hook_link_after_fork(void)
{
    lock_after_fork(&lock);
}

static struct link *find(CUlinkState handle)
{
    if (!rewrite_on)
        return NULL;
    lock_take(&lock);
    struct link *l = links;
    while (l && l->handle != handle)
        l = l->next;
    lock_give(&lock);
    return l;
}

static struct link *take(CUlinkState handle)
{
    if (!rewrite_on)
        return NULL;
    lock_take(&lock);
    struct link **at = &links;
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    struct link *l = *at;
    if (l)
        *at = l->next;
    lock_give(&lock);
    return l;
}

// --- what is kept -----------------------------------------------------------------------------------------

static bool copy_options(struct jit_options *to, unsigned count, const CUjit_option *options,
                         void *const *values)
{
    *to = (struct jit_options){.count = count};
    if (!count)
        return true;
    to->options = mem_alloc(count * sizeof *options);
    to->values = mem_alloc(count * sizeof *values);
    if (!to->options || !to->values)
        return false;
    memcpy(to->options, options, count * sizeof *options);
    memcpy(to->values, values, count * sizeof *values);
    return true;
}

static void free_options(struct jit_options *o)
{
    mem_free(o->options);
    mem_free(o->values);
}

static void free_input(struct input *i)
{
    mem_free(i->bytes);
    mem_free(i->name);
    free_options(&i->options);
}

static void free_link(struct link *l)
{
    for (size_t i = 0; i < l->inputs.len; i++)
        free_input(&l->inputs.items[i]);
    for (size_t i = 0; i < l->parts.len; i++)
        pass_result_free(l->parts.items[i]);
    vec_free(&l->inputs);
    vec_free(&l->parts);
    free_options(&l->options);
    mem_free(l);
}

static char *copy(const void *bytes, size_t n)
{
    char *to = mem_alloc(n + 1);
    if (!to)
        return NULL;
    if (n)
        memcpy(to, bytes, n);
    to[n] = 0;
    return to;
}

// Keeps an input; bytes NULL means a file. Returns false if out of memory: the input must be linked
// unchanged.
static bool keep(struct link *l, const struct input *from)
{
    struct input i = {.type = from->type, .size = from->size};
    bool ok = copy_options(&i.options, from->options.count, from->options.options, from->options.values);
    if (from->bytes)
        ok &= (i.bytes = copy(from->bytes, from->size)) != NULL;
    if (from->name)
        ok &= (i.name = copy(from->name, strlen(from->name))) != NULL;
    ok = ok && !vec_push(&l->inputs, i);
    if (!ok) {
        free_input(&i);
        l->lost = true;
    }
    return ok;
}

// --- the second link --------------------------------------------------------------------------------------

static CUresult add_as_it_is(CUlinkState to, struct input *i)
{
    struct jit_options *o = &i->options;
    return i->bytes ? guard.real.cuLinkAddData_v2(to, i->type, i->bytes, i->size, i->name, o->count,
                                                  o->options, o->values)
                    : guard.real.cuLinkAddFile_v2(to, i->type, i->name, o->count, o->options, o->values);
}

static void refused(struct link *l, CUresult r)
{
    const char *name = driver_result_name(r);
    l->left = (struct rewrite){.why = REWRITE_REFUSED};
    snprintf(l->left.detail, sizeof l->left.detail, "%s", name ? name : "an unknown error");
}

static CUresult go_plain(struct link *l)
{
    if (l->options.count)
        memcpy(l->values, l->options.values, l->options.count * sizeof *l->values);
    CUresult r = guard.real.cuLinkCreate_v2(l->options.count, l->options.options, l->values, &l->plain);
    if (r) {
        l->plain = NULL;
        return r;
    }
    for (size_t i = 0; !r && i < l->inputs.len; i++)
        r = add_as_it_is(l->plain, &l->inputs.items[i]);
    return r;
}

// --- the calls --------------------------------------------------------------------------------------------

static CUresult create(__typeof__(cuLinkCreate_v2) *real, unsigned count, CUjit_option *options,
                       void **values, CUlinkState *out)
{
    // The driver writes results to the values, so they are copied first.
    struct link *l = rewrite_on ? mem_zalloc(1, sizeof *l) : NULL;
    bool kept = l && (!count || (options && values)) && copy_options(&l->options, count, options, values);
    CUresult r = real(count, options, values, out);
    if (r || !kept) {
        if (l)
            free_link(l);
        return r;
    }
    l->handle = *out;
    l->values = values;
    lock_take(&lock);
    l->next = links;
    links = l;
    lock_give(&lock);
    return r;
}

CUresult hook_cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *out)
{
    return create(guard.real.cuLinkCreate, count, options, values, out);
}

CUresult hook_cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values, CUlinkState *out)
{
    return create(guard.real.cuLinkCreate_v2, count, options, values, out);
}

// The device runtime, which launches kernels, is not part of the program.
static bool is_runtime(const struct input *i)
{
    const char *slash = i->name ? strrchr(i->name, '/') : NULL, *file = slash ? slash + 1 : i->name;
    return file && strncmp(file, "libcudadevrt", 12) == 0;
}

static bool is_rewritable(const struct input *i)
{
    if (is_runtime(i))
        return false;
    return i->type == CU_JIT_INPUT_PTX || i->type == CU_JIT_INPUT_FATBINARY ||
           i->type == CU_JIT_INPUT_OBJECT || i->type == CU_JIT_INPUT_LIBRARY;
}

enum { OPTIONS = 64 };

// The driver writes into the values of options, which are copied back.
static CUresult add_text(struct link *l, const struct input *from, const struct pass_result *part)
{
    CUjit_option options[OPTIONS];
    void *values[OPTIONS];
    unsigned count = from->options.count;
    if (count >= OPTIONS)
        return CUDA_ERROR_INVALID_VALUE;
    if (count) {
        memcpy(options, from->options.options, count * sizeof *options);
        memcpy(values, from->options.values, count * sizeof *values);
    }
    if (part->registers)
        rewrite_jit_limit(options, values, &count, OPTIONS, part->registers);
    CUresult r = guard.real.cuLinkAddData_v2(l->handle, CU_JIT_INPUT_PTX, (void *)part->text.ptr,
                                             part->text.len + 1, from->name, count, options, values);
    for (unsigned i = 0; i < from->options.count; i++)
        if (options[i] != CU_JIT_MAX_REGISTERS)
            from->options.values[i] = values[i];
    return r;
}

static CUresult add_texts(struct link *l, const struct input *from, struct rewrite_texts *t)
{
    CUresult r = CUDA_SUCCESS;
    if (vec_reserve(&l->parts, t->count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; !r && i < t->count; i++)
        r = add_text(l, from, t->parts[i]);
    if (r)
        return r;
    for (unsigned i = 0; i < t->count; i++)
        l->parts.items[l->parts.len++] = t->parts[i];
    t->count = 0;
    return r;
}

// Returns false if the input was not rewritten, and must be added unchanged.
static bool add_rewritten(struct link *l, const struct input *from, CUresult *result)
{
    struct rewrite_texts t;
    struct rewrite r;
    if (!is_rewritable(from) || l->lost || !keep(l, from))
        return false;
    bool ours = rewrite_input(&r, &t, from->bytes, from->size, from->bytes ? NULL : from->name);
    if (ours) {
        *result = add_texts(l, from, &t);
        if (*result) {
            refused(l, *result);
            *result = go_plain(l);
        }
    } else if (!l->left.why) {
        l->left = r;
    }
    rewrite_texts_free(&t);
    return ours;
}

static CUresult add(CUlinkState handle, struct input *from, bool *done)
{
    struct link *l = find(handle);
    CUresult r;
    *done = true;
    if (l && l->plain)
        return add_as_it_is(l->plain, from);
    if (l && add_rewritten(l, from, &r))
        return r;
    if (l && !is_rewritable(from) && !l->lost)
        keep(l, from);
    if (l && !is_runtime(from))
        rewrite_input_left(from->bytes, from->size, from->bytes ? NULL : from->name);
    *done = false;
    return CUDA_SUCCESS;
}

#define ADD_DATA(symbol)                                                                              \
    CUresult hook_##symbol(CUlinkState handle, CUjitInputType type, void *data, size_t size,          \
                           const char *name, unsigned count, CUjit_option *options, void **values)    \
    {                                                                                                 \
        struct input i = {type, data, size, (char *)name, {count, options, values}};                  \
        bool done = false;                                                                            \
        CUresult r = data && (!count || (options && values)) ? add(handle, &i, &done) : CUDA_SUCCESS; \
        return done ? r : guard.real.symbol(handle, type, data, size, name, count, options, values);  \
    }
ADD_DATA(cuLinkAddData)
ADD_DATA(cuLinkAddData_v2)

#define ADD_FILE(symbol)                                                                              \
    CUresult hook_##symbol(CUlinkState handle, CUjitInputType type, const char *path, unsigned count, \
                           CUjit_option *options, void **values)                                      \
    {                                                                                                 \
        struct input i = {type, NULL, 0, (char *)path, {count, options, values}};                     \
        bool done = false;                                                                            \
        CUresult r = path && (!count || (options && values)) ? add(handle, &i, &done) : CUDA_SUCCESS; \
        return done ? r : guard.real.symbol(handle, type, path, count, options, values);              \
    }
ADD_FILE(cuLinkAddFile)
ADD_FILE(cuLinkAddFile_v2)

static void remember(struct link *l, const void *image, size_t size)
{
    struct out about;
    if (out_to_memory(&about))
        return;
    if (l->parts.len && !l->plain)
        rewrite_about_parts(l->parts.items, (unsigned)l->parts.len, &about);
    else if (l->left.why)
        rewrite_about_left(l->left.why, l->left.detail, &about);
    if (about.len && !about.error)
        rewrite_about_remember(image, size, (struct str){about.buf, about.len});
    out_close(&about);
}

CUresult hook_cuLinkComplete(CUlinkState handle, void **image, size_t *size)
{
    struct link *l = find(handle);
    size_t n = 0;
    if (!l || !image)
        return guard.real.cuLinkComplete(handle, image, size);
    CUresult r = guard.real.cuLinkComplete(l->plain ? l->plain : handle, image, &n);
    if (r && l->parts.len && !l->plain && !l->lost) {
        refused(l, r);
        CUresult second = go_plain(l);
        r = second ? second : guard.real.cuLinkComplete(l->plain, image, &n);
    }
    if (r)
        return r;
    remember(l, *image, n);
    if (size)
        *size = n;
    return r;
}

CUresult hook_cuLinkDestroy(CUlinkState handle)
{
    struct link *l = take(handle);
    CUresult r = guard.real.cuLinkDestroy(handle);
    if (!l)
        return r;
    if (l->plain)
        guard.real.cuLinkDestroy(l->plain);
    free_link(l);
    return r;
}
