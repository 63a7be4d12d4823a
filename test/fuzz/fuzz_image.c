// SPDX-License-Identifier: MIT
// Any bytes as a file: open, list, read every module, name its kernels. What is returned must lie where the
// header says.
//
// The seeds in corpus/image are made by nvcc, ar and cat from one file of three lines, with each way to
// compress, as fatbin, cubin, PTX, object, program and archive.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"

enum { MOST_READ = 4 << 20 };  // larger modules only cost time

static volatile unsigned char consumed;

static void emit_nothing(struct diag_sink *sink, const struct diag *d)
{
    (void)sink;
    consumed ^= (unsigned char)strlen(d->message);
}

static bool within(struct str outer, struct str inner)
{
    return !inner.len || (inner.ptr >= outer.ptr && inner.len <= outer.len &&
                          (size_t)(inner.ptr - outer.ptr) <= outer.len - inner.len);
}

static void consume(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        consumed ^= (unsigned char)s.ptr[i];
}

static int visit(void *ctx, struct str kernel)
{
    if (!kernel.len || !within(*(struct str *)ctx, kernel))
        abort();
    consume(kernel);
    return 0;
}

static void look_at(const struct image *im, unsigned i, struct str file, struct diag_sink *sink,
                    struct image_buffer *buf)
{
    const struct image_entry *e = image_entry(im, i);
    if (!within(file, e->payload) || e->offset > file.len || (e->damaged && !image_damage(im)))
        abort();
    consume(e->name);
    consume(e->options);
    consume(e->section);
    consume(e->member);
    struct str data;
    if (e->full_size > MOST_READ || image_read(im, i, sink, buf, &data))
        return;
    if (e->damaged || data.len > e->full_size)
        abort();
    consume(data);
    image_kernels(im, i, data, sink, visit, &data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct diag_sink sink = {.emit = emit_nothing};
    struct str file = {(const char *)bytes, len};
    struct image_buffer buf = {0};
    struct image *im;
    int err = image_open_memory("input", bytes, len, &sink, &im);
    if (err) {
        if (im || !sink.errors)
            abort();
        return 0;
    }
    if (image_damage(im) != sink.errors)
        abort();
    for (unsigned i = 0; i < image_count(im); i++)
        look_at(im, i, file, &sink, &buf);
    image_buffer_free(&buf);
    image_free(im);
    return 0;
}
