// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_source.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/mem.h"
#include "base/readable.h"
#include "image/cubin_bounds.h"

// The wrapper that nvcc's host code registers.
struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *list;  // version 2: one fatbin for each linked object, then NULL
};

static const unsigned char wrapper_magic[4] = {0xb1, 0x43, 0x62, 0x46};

// --- choosing ---------------------------------------------------------------------------------------------

// sm_90a fits 9.0 only, sm_100f its major version.
static bool fits(const struct image_entry *e, unsigned arch)
{
    if (e->suffix == 'a')
        return e->arch == arch;
    if (e->suffix == 'f' && e->arch / 10 != arch / 10)
        return false;
    return e->arch <= arch;
}

// The newest that fits is best, otherwise the oldest of the others; of equals the later one.
static bool better(const struct image_entry *e, const struct image_entry *than, unsigned arch)
{
    if (!than || fits(e, arch) != fits(than, arch))
        return !than || fits(e, arch);
    return fits(e, arch) ? e->arch >= than->arch : e->arch <= than->arch;
}

// Machine code runs on GPUs of the same major version that are not older.
static unsigned find_cubin(const struct image *im, unsigned first, unsigned end, unsigned arch)
{
    unsigned found = REWRITE_SOURCE_NONE;
    for (unsigned i = first; i < end; i++) {
        const struct image_entry *e = image_entry(im, i);
        if (e->kind == IMAGE_CUBIN && !e->damaged && e->arch / 10 == arch / 10 && fits(e, arch) &&
            (found == REWRITE_SOURCE_NONE || e->arch >= image_entry(im, found)->arch))
            found = i;
    }
    return found;
}

static int add_best(struct rewrite_source *s, const struct image *im, unsigned first, unsigned end,
                    unsigned arch)
{
    const struct image_entry *best = NULL;
    unsigned at = 0;
    for (unsigned i = first; i < end; i++) {
        const struct image_entry *e = image_entry(im, i);
        if (e->kind == IMAGE_PTX && !e->damaged && better(e, best, arch)) {
            best = e;
            at = i;
        }
    }
    if (!best)
        return -ENODATA;
    if (s->count == REWRITE_SOURCE_MOST)
        return -E2BIG;
    s->texts[s->count].image = im;
    s->texts[s->count].newer = !fits(best, arch);
    s->texts[s->count].cubin = find_cubin(im, first, end, arch);
    s->texts[s->count++].entry = at;
    return 0;
}

// Entries of one fatbin are contiguous.
static int add_image(struct rewrite_source *s, struct image *im, unsigned arch, bool many)
{
    unsigned n = image_count(im);
    int err = n ? 0 : -ENODATA;
    s->images[s->nimages++] = im;
    for (unsigned i = 0; i < n && !err;) {
        unsigned end = i + 1, fatbin = image_entry(im, i)->fatbin;
        while (end < n && fatbin != IMAGE_NO_FATBIN && image_entry(im, end)->fatbin == fatbin)
            end++;
        if (end < n && !many && !image_entry(im, i)->part)
            return -ENODATA;
        err = add_best(s, im, i, end, arch);
        i = end;
    }
    return err;
}

static int add_bytes(struct rewrite_source *s, const void *bytes, size_t size, unsigned arch, bool many,
                     struct diag_sink *sink)
{
    struct image *im;
    if (s->nimages == REWRITE_SOURCE_MOST)
        return -E2BIG;
    int err = image_open_memory("module", bytes, size, sink, &im);
    return err ? err : add_image(s, im, arch, many);
}

// --- where images are -------------------------------------------------------------------------------------

// Compares byte by byte, because a text may be shorter than n bytes.
static bool begins(const void *p, const void *with, size_t n)
{
    const unsigned char *a = p, *b = with;
    for (size_t i = 0; a && i < n; i++)
        if (!readable_bytes(a + i, 1) || a[i] != b[i])
            return false;
    return a;
}

static int add_unmeasured(struct rewrite_source *s, const void *image, unsigned arch, struct diag_sink *sink)
{
    size_t size;
    int err = image_measure(image, readable_bytes, &size);
    return err ? err : add_bytes(s, image, size, arch, false, sink);
}

// Drops the text of a library that the device cannot run, and keeps its machine code, if any of it fits.
static void keep_code(struct rewrite_source *s)
{
    unsigned last = --s->count;
    if (s->texts[last].cubin == REWRITE_SOURCE_NONE || s->ncodes == REWRITE_SOURCE_CODES)
        return;
    s->code[s->ncodes].image = s->texts[last].image;
    s->code[s->ncodes++].entry = s->texts[last].cubin;
}

// With -rdc the list holds the PTX of the objects; data holds only their linked machine code. Behind the
// program's own objects there may be libraries whose PTX is for newer devices only, such as the device's
// runtime.
static int add_list(struct rewrite_source *s, const void *const *list, unsigned arch, struct diag_sink *sink)
{
    for (unsigned i = 0;; i++) {
        if (!readable_bytes(list + i, sizeof *list))
            return -EFAULT;
        if (!list[i])
            return i ? 0 : -ENODATA;
        unsigned before = s->count;
        int err = add_unmeasured(s, list[i], arch, sink);
        if (err)
            return err;
        if (before && s->texts[s->count - 1].newer)
            keep_code(s);
    }
}

int rewrite_source_memory(struct rewrite_source *s, const void *image, unsigned arch, struct diag_sink *sink)
{
    struct wrapper w = {0};
    s->nimages = s->count = s->ncodes = 0;
    s->listed = false;
    if (!begins(image, wrapper_magic, sizeof wrapper_magic) || !readable_bytes(image, sizeof w))
        return add_unmeasured(s, image, arch, sink);
    memcpy(&w, image, sizeof w);
    s->listed = w.version == 2 && w.list;
    return w.version == 2 && w.list ? add_list(s, w.list, arch, sink) : add_unmeasured(s, w.data, arch, sink);
}

int rewrite_source_bytes(struct rewrite_source *s, const void *bytes, size_t size, unsigned arch, bool many,
                         struct diag_sink *sink)
{
    s->nimages = s->count = s->ncodes = 0;
    s->listed = false;
    return readable_bytes(bytes, size) ? add_bytes(s, bytes, size, arch, many, sink) : -EFAULT;
}

int rewrite_source_file(struct rewrite_source *s, const char *path, unsigned arch, bool many,
                        struct diag_sink *sink)
{
    struct image *im;
    s->nimages = s->count = s->ncodes = 0;
    s->listed = false;
    if (!path || access(path, R_OK))
        return -ENOENT;
    int err = image_open(path, sink, &im);
    return err ? err : add_image(s, im, arch, many);
}

void rewrite_source_free(struct rewrite_source *s)
{
    for (unsigned i = 0; i < s->nimages; i++)
        image_free(s->images[i]);
}

// --- texts ------------------------------------------------------------------------------------------------

// Only the payload is hashed: the entry's header says how to read it, so the meaning of the bytes depends on
// nothing else.
static struct rewrite_source_sum sum_of(const struct image_entry *e)
{
    XXH128_hash_t h = XXH3_128bits(e->payload.ptr, e->payload.len);
    return (struct rewrite_source_sum){{h.low64, h.high64}, e->payload.len};
}

void rewrite_source_sums(const struct rewrite_source *s, struct rewrite_source_sum *sums)
{
    for (unsigned i = 0; i < s->count; i++)
        sums[i] = sum_of(image_entry(s->texts[i].image, s->texts[i].entry));
    for (unsigned i = 0; i < s->ncodes; i++)
        sums[s->count + i] = sum_of(image_entry(s->code[i].image, s->code[i].entry));
}

int rewrite_source_read(const struct rewrite_source *s, unsigned i, struct diag_sink *sink,
                        struct image_buffer *buffer, struct str *text)
{
    return image_read(s->texts[i].image, s->texts[i].entry, sink, buffer, text);
}

int rewrite_source_code(const struct rewrite_source *s, unsigned i, struct diag_sink *sink,
                        struct image_buffer *buffer, struct str *code)
{
    return image_read(s->code[i].image, s->code[i].entry, sink, buffer, code);
}

bool rewrite_source_alike(const struct rewrite_source *s, unsigned i, struct diag_sink *sink, char *why,
                          size_t size)
{
    struct image_buffer buffers[2] = {0};
    struct str text, code, differs = {"", 0}, missing = {"", 0};
    const struct image *im = s->texts[i].image;
    unsigned cubin = s->texts[i].cubin;
    if (cubin == REWRITE_SOURCE_NONE ||
        image_entry(im, cubin)->arch == image_entry(im, s->texts[i].entry)->arch)
        return true;
    if (!image_read(im, s->texts[i].entry, sink, &buffers[0], &text) &&
        !image_read(im, cubin, sink, &buffers[1], &code)) {
        differs = cubin_bounds_differ(code, text);
        missing = cubin_bounds_missing(code, text);
    }
    if (differs.len)
        snprintf(why, size, "with blocks of another size: " STR_FMT, STR_ARG(differs));
    else if (missing.len)
        snprintf(why, size, "without kernel " STR_FMT, STR_ARG(missing));
    bool alike = !differs.len && !missing.len;
    image_buffer_free(&buffers[0]);
    image_buffer_free(&buffers[1]);
    return alike;
}

bool rewrite_source_is_native(const struct rewrite_source *s, unsigned i, unsigned arch)
{
    const struct image_entry *e = image_entry(s->texts[i].image, s->texts[i].entry);
    return e->fatbin == IMAGE_NO_FATBIN || e->arch == arch;
}

bool rewrite_source_is_newer(const struct rewrite_source *s, unsigned i)
{
    return s->texts[i].newer;
}

bool rewrite_source_is_listed(const struct rewrite_source *s)
{
    return s->listed;
}

void rewrite_source_version(const struct rewrite_source *s, unsigned i, unsigned *major, unsigned *minor)
{
    const struct image_entry *e = image_entry(s->texts[i].image, s->texts[i].entry);
    *major = e->version_major;
    *minor = e->version_minor;
}

char *rewrite_source_copy(const struct rewrite_source *s, unsigned i, struct diag_sink *sink)
{
    struct image_buffer buffer = {0};
    struct str text;
    char *copy = rewrite_source_read(s, i, sink, &buffer, &text) ? NULL : mem_alloc(text.len + 1);
    if (copy)
        *(char *)mempcpy(copy, text.ptr, text.len) = 0;
    image_buffer_free(&buffer);
    return copy;
}

bool rewrite_source_in_fatbin(const struct rewrite_source *s, unsigned i)
{
    return image_entry(s->texts[i].image, s->texts[i].entry)->fatbin != IMAGE_NO_FATBIN;
}

const char *rewrite_source_name(const struct rewrite_source *s, unsigned i, char *name, size_t size)
{
    const struct image_entry *e = image_entry(s->texts[i].image, s->texts[i].entry);
    if (e->name.len)
        snprintf(name, size, STR_FMT, STR_ARG(e->name));
    else
        snprintf(name, size, "%s", image_name(s->texts[i].image));
    return name;
}
