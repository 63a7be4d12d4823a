// SPDX-License-Identifier: MIT
// Opens a file, detects its kind, and lists its modules.
#include "image/image.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/image_internal.h"
#include "image/ptx_registry.h"

static void vreport(const struct image *im, struct diag_sink *sink, size_t offset, const char *fmt,
                    va_list args)
{
    struct diag_source source = {.name = im->name};
    // With length 1, offset 0 is printed too.
    diag_vreport(sink, DIAG_ERROR, &source, offset, 1, fmt, args);
}

void image_report(const struct image *im, struct diag_sink *sink, size_t offset, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vreport(im, sink, offset, fmt, args);
    va_end(args);
}

void image_damaged(struct image *im, size_t offset, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vreport(im, im->sink, offset, fmt, args);
    va_end(args);
    im->damage++;
}

int image_add(struct image *im, const struct image_entry *e)
{
    return vec_push(&im->entries, *e);
}

static int add_ptx(struct image *im, const struct image_place *p, struct str text, bool part)
{
    struct image_entry e = {
        .kind = IMAGE_PTX,
        .number = 1,
        .fatbin = IMAGE_NO_FATBIN,
        .part = part,
        .offset = p->at,
        .full_size = text.len,
        .payload = text,
        .member = p->member,
    };
    ptx_text_header(text, &e);
    return image_add(im, &e);
}

// Adds the PTX behind machine code, if it is known.
static int add_known(struct image *im, const struct image_place *p, struct str code)
{
    struct str rest, text;
    if (!ptx_registry_find(code, &rest))
        return 0;
    bool several = memchr(rest.ptr, '\0', rest.len);
    int err = 0;
    while (!err && ptx_registry_next(&rest, &text))
        err = add_ptx(im, p, text, several);
    return err;
}

int image_detect(struct image *im, const struct image_place *p)
{
    struct str bytes = {im->base + p->at, p->end - p->at};
    if (str_starts(bytes, STR("\177ELF"))) {
        int err = elf_image_walk(im, p);
        return err ? err : add_known(im, p, bytes);
    }
    if (fatbin_is_header(bytes))
        return fatbin_walk(im, p);
    if (ptx_text_is(bytes))
        return add_ptx(im, p, bytes, false);
    return -ENOEXEC;
}

static int find_modules(struct image *im)
{
    struct str bytes = {im->base, im->len};
    if (str_starts(bytes, STR("!<arch>\n")))
        return elf_image_archive(im);
    if (str_starts(bytes, STR("!<thin>\n"))) {
        image_report(im, im->sink, 0, "a thin archive holds only the names of its members: give the members");
        return -ENOTSUP;
    }
    int err = image_detect(im, &(struct image_place){.end = im->len});
    if (err == -ENOEXEC)
        image_report(im, im->sink, 0, im->len ? "not an ELF file, archive, fatbin or PTX" : "empty file");
    return err;
}

// Reports a failure that has no offset.
static int fail(struct diag_sink *sink, const char *name, int err)
{
    struct diag_source source = {.name = name};
    const char *why = err == -ESPIPE ? "not a regular file" : strerror(-err);
    diag_report(sink, DIAG_ERROR, &source, 0, 0, "%s", why);
    return err;
}

static int open_bytes(const char *name, struct str bytes, bool mapped, struct diag_sink *sink,
                      struct image **out)
{
    int err = -ENOMEM;
    struct image *im = mem_zalloc(1, sizeof *im);
    if (!im)
        return err;
    arena_init(&im->arena, 0);
    im->base = bytes.len ? bytes.ptr : "";  // avoids arithmetic on NULL
    im->len = bytes.len;
    im->sink = sink;
    struct str copy = arena_str(&im->arena, (struct str){name, strlen(name) + 1});
    im->name = copy.ptr;
    if (im->name)
        err = find_modules(im);
    if (err) {
        image_free(im);
        return err;
    }
    im->sink = NULL;
    im->mapped = mapped;  // set last: after an earlier failure the caller unmaps
    *out = im;
    return 0;
}

int image_open_memory(const char *name, const void *data, size_t len, struct diag_sink *sink,
                      struct image **out)
{
    *out = NULL;
    int err = open_bytes(name, (struct str){data, len}, false, sink, out);
    return err == -ENOMEM ? fail(sink, name, err) : err;
}

// Maps a file. *bytes stays empty for an empty file, which cannot be mapped.
static int map_file(const char *path, struct str *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = 0;
    struct stat st;
    if (fstat(fd, &st))
        err = -errno;
    else if (S_ISDIR(st.st_mode))
        err = -EISDIR;
    else if (!S_ISREG(st.st_mode))
        err = -ESPIPE;
    else if (st.st_size > 0) {
        void *base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (base == MAP_FAILED)
            err = -errno;
        else
            *bytes = (struct str){base, (size_t)st.st_size};
    }
    close(fd);
    return err;
}

int image_open(const char *path, struct diag_sink *sink, struct image **out)
{
    *out = NULL;
    struct str bytes = {0};
    int err = map_file(path, &bytes);
    if (err)
        return fail(sink, path, err);
    err = open_bytes(path, bytes, bytes.len > 0, sink, out);
    if (err && bytes.len)
        munmap((void *)bytes.ptr, bytes.len);
    return err == -ENOMEM ? fail(sink, path, err) : err;
}

void image_free(struct image *im)
{
    if (!im)
        return;
    if (im->mapped)
        munmap((void *)im->base, im->len);
    vec_free(&im->entries);
    arena_free(&im->arena);
    mem_free(im);
}

const char *image_name(const struct image *im)
{
    return im->name;
}

unsigned image_count(const struct image *im)
{
    return (unsigned)im->entries.len;
}

unsigned image_damage(const struct image *im)
{
    return im->damage;
}

const struct image_entry *image_entry(const struct image *im, unsigned i)
{
    assert(i < im->entries.len);
    return &im->entries.items[i];
}

int image_kernels(const struct image *im, unsigned i, struct str data, struct diag_sink *sink,
                  image_visit *visit, void *ctx)
{
    const struct image_entry *e = image_entry(im, i);
    if (e->kind == IMAGE_PTX)
        return ptx_text_kernels(data, visit, ctx);
    if (e->kind != IMAGE_CUBIN)
        return 0;
    const char *why = NULL;
    int err = elf_image_kernels(data, visit, ctx, &why);
    if (why)
        image_report(im, sink, e->offset, "cubin of %zu bytes: %s", data.len, why);
    return err;
}
