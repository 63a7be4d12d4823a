// SPDX-License-Identifier: MIT
#include "explain/explain_text.h"

#include <xxhash.h>

#include "base/mem.h"
#include "rewrite/rewrite_source.h"

enum { NAME = 128, BUCKETS = 1024 };

struct explain_text {
    struct explain_text *next;  // in its bucket
    XXH128_hash_t hash;
    size_t len;
    unsigned users;  // images that have it
    bool parsed;     // m is valid; NULL: it could not be parsed
    struct ptx_module *m;
    char name[NAME];
    char bytes[];
};

struct image {
    struct image *next;  // in its bucket
    const void *handle;
    unsigned count;
    struct explain_text *texts[];  // of a pending image: its own; else those that `texts` has
};

static struct explain_text *texts[BUCKETS];
static struct image *images[BUCKETS];
static __thread struct image *pending __attribute__((tls_model("initial-exec")));

// --- reading images
// ----------------------------------------------------------------------------------------

static void ignore(struct diag_sink *sink, const struct diag *d)
{
}

static struct explain_text *copy_text(const struct rewrite_source *s, unsigned i, struct diag_sink *sink)
{
    struct image_buffer buffer = {0};
    struct str text;
    struct explain_text *t = NULL;
    if (!rewrite_source_read(s, i, sink, &buffer, &text))
        t = mem_alloc(sizeof *t + text.len);
    if (t) {
        *t = (struct explain_text){.hash = XXH3_128bits(text.ptr, text.len), .len = text.len};
        memcpy(t->bytes, text.ptr, text.len);
        rewrite_source_name(s, i, t->name, sizeof t->name);
    }
    image_buffer_free(&buffer);
    return t;
}

static struct image *copy_texts(const struct rewrite_source *s, struct diag_sink *sink)
{
    struct image *im = mem_zalloc(1, sizeof *im + s->count * sizeof *im->texts);
    for (unsigned i = 0; im && i < s->count; i++) {
        im->texts[im->count] = copy_text(s, i, sink);
        im->count += im->texts[im->count] != NULL;
    }
    return im;
}

static void drop_pending(void)
{
    for (unsigned i = 0; pending && i < pending->count; i++)
        mem_free(pending->texts[i]);
    mem_free(pending);
    pending = NULL;
}

void explain_text_plan(const struct rewrite_origin *origin)
{
    struct diag_sink sink = {.emit = ignore};
    struct rewrite_source *s = mem_zalloc(1, sizeof *s);
    drop_pending();
    if (!s)
        return;
    int err = origin->path   ? rewrite_source_file(s, origin->path, origin->arch, false, &sink)
              : origin->size ? rewrite_source_bytes(s, origin->image, origin->size, origin->arch, true, &sink)
                             : rewrite_source_memory(s, origin->image, origin->arch, &sink);
    if (!err)
        pending = copy_texts(s, &sink);
    rewrite_source_free(s);
    mem_free(s);
}

// --- images by handle
// --------------------------------------------------------------------------------------

static struct image **place_of(const void *handle)
{
    struct image **p = &images[(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 54];
    while (*p && (*p)->handle != handle)
        p = &(*p)->next;
    return p;
}

static struct explain_text **bucket_of(const struct explain_text *t)
{
    return &texts[t->hash.low64 % BUCKETS];
}

// Returns the text that is kept for an equal one; the argument is freed if there was one.
static struct explain_text *keep_text(struct explain_text *t)
{
    struct explain_text *known = *bucket_of(t);
    while (known && (!XXH128_isEqual(known->hash, t->hash) || known->len != t->len))
        known = known->next;
    if (known) {
        mem_free(t);
    } else {
        known = t;
        t->next = *bucket_of(t);
        *bucket_of(t) = t;
    }
    known->users++;
    return known;
}

// Frees a text that no image has and that was not parsed.
static void leave_text(struct explain_text *t)
{
    if (--t->users || t->parsed)
        return;
    struct explain_text **p = bucket_of(t);
    while (*p != t)
        p = &(*p)->next;
    *p = t->next;
    mem_free(t);
}

void explain_text_gone(const void *handle)
{
    struct image **p = place_of(handle), *im = *p;
    if (!im)
        return;
    *p = im->next;
    for (unsigned i = 0; i < im->count; i++)
        leave_text(im->texts[i]);
    mem_free(im);
}

static void add_image(struct image *im, const void *handle)
{
    struct image **p = place_of(handle);
    im->handle = handle;
    im->next = *p;
    *p = im;
}

void explain_text_made(const void *handle)
{
    explain_text_gone(handle);  // the driver reuses handles, also of modules that ended with their context
    if (!pending)
        return;
    for (unsigned i = 0; i < pending->count; i++)
        pending->texts[i] = keep_text(pending->texts[i]);
    add_image(pending, handle);
    pending = NULL;
}

void explain_text_alias(const void *library, const void *module)
{
    const struct image *from = *place_of(library);
    if (!from || *place_of(module))
        return;
    size_t size = sizeof *from + from->count * sizeof *from->texts;
    struct image *im = mem_alloc(size);
    if (!im)
        return;
    memcpy(im, from, size);
    for (unsigned i = 0; i < im->count; i++)
        im->texts[i]->users++;
    add_image(im, module);
}

// --- kernels
// -----------------------------------------------------------------------------------------------

static const struct ptx_module *parse(struct explain_text *t)
{
    struct diag_sink sink = {.emit = ignore};
    if (!t->parsed && ptx_parse(t->name, (struct str){t->bytes, t->len}, &sink, NULL, &t->m))
        t->m = NULL;
    t->parsed = true;
    return t->m;
}

const struct ptx_func *explain_text_find(const void *handle, const char *name, const struct ptx_module **m)
{
    const struct image *im = *place_of(handle);
    for (unsigned i = 0; im && i < im->count; i++) {
        *m = parse(im->texts[i]);
        struct ptx_sym *sym = *m ? ptx_find(*m, str_from(name)) : NULL;
        if (sym && sym->kind == PTX_SYM_FUNC && sym->func->has_body)
            return sym->func;
    }
    return NULL;
}
