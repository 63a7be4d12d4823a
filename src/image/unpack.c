// SPDX-License-Identifier: MIT
// Decompresses payloads. A zstd payload is a frame, an LZ4 payload a raw block; both must decompress to
// exactly the size that the fatbin declares.
//
// The buffer is allocated at the declared size, so that size is checked first. A fixed ratio would be wrong:
// a valid module with a large table of zeros compresses 10,000 times. The formats have limits of their own,
// which no valid payload exceeds: a zstd block makes at most 128 KiB from no fewer than 4 bytes, and a byte
// of LZ4 stands for at most 255. So 1 KiB of input costs at most 32 MiB; the limit is 1 GiB.
#include <errno.h>
#include <inttypes.h>
#include <lz4.h>
#include <zstd.h>

#include "image/image_internal.h"

#define MOST_BYTES ((uint64_t)1 << 30)
enum { ZSTD_BLOCK_FULL = 128 << 10, ZSTD_BLOCK_STORED = 4, LZ4_BYTE_FULL = 255 };

bool unpack_plausible(enum image_compression how, size_t stored, uint64_t full)
{
    if (how == IMAGE_PLAIN)
        return stored == full;
    if (full > MOST_BYTES || stored > MOST_BYTES)
        return false;
    uint64_t most = how == IMAGE_ZSTD ? stored / ZSTD_BLOCK_STORED * (uint64_t)ZSTD_BLOCK_FULL
                                      : stored * (uint64_t)LZ4_BYTE_FULL;
    return full <= most;
}

// Makes room for size bytes. The old contents are not needed, so a new allocation saves the copy of realloc.
static int reserve(struct image_buffer *buf, size_t size)
{
    if (size <= buf->cap)
        return 0;
    size_t cap = size + size / 4;
    mem_free(buf->bytes);
    buf->bytes = mem_alloc(cap);
    buf->cap = buf->bytes ? cap : 0;
    return buf->bytes ? 0 : -ENOMEM;
}

// Returns the message of a failure, or NULL. *size becomes the number of bytes produced.
static const char *unpack_zstd(struct image_buffer *buf, const struct image_entry *e, size_t *size)
{
    *size = ZSTD_decompressDCtx(buf->zstd, buf->bytes, e->full_size, e->payload.ptr, e->payload.len);
    return ZSTD_isError(*size) ? ZSTD_getErrorName(*size) : NULL;
}

static const char *unpack_lz4(struct image_buffer *buf, const struct image_entry *e, size_t *size)
{
    // Both sizes are below 1 GiB, so they fit an int.
    int n = LZ4_decompress_safe(e->payload.ptr, buf->bytes, (int)e->payload.len, (int)e->full_size);
    *size = n < 0 ? 0 : (size_t)n;
    return n < 0 ? "Data corruption detected" : NULL;
}

static int unpack(const struct image *im, const struct image_entry *e, struct diag_sink *sink,
                  struct image_buffer *buf)
{
    if (e->compression == IMAGE_ZSTD && !buf->zstd && !(buf->zstd = ZSTD_createDCtx()))
        return -ENOMEM;
    if (reserve(buf, e->full_size))
        return -ENOMEM;
    bool zstd = e->compression == IMAGE_ZSTD;
    size_t size;
    const char *why = zstd ? unpack_zstd(buf, e, &size) : unpack_lz4(buf, e, &size);
    size_t at = (size_t)(e->payload.ptr - im->base);
    if (why) {
        image_report(im, sink, at, "damaged %s data: %s", zstd ? "zstd" : "LZ4", why);
        return -EINVAL;
    }
    if (size != e->full_size) {
        image_report(im, sink, at, "%s data has %zu bytes, %zu were declared", zstd ? "zstd" : "LZ4", size,
                     e->full_size);
        return -EINVAL;
    }
    return 0;
}

int image_read(const struct image *im, unsigned i, struct diag_sink *sink, struct image_buffer *buf,
               struct str *data)
{
    const struct image_entry *e = image_entry(im, i);
    if (e->damaged) {
        image_report(im, sink, e->offset, "this module is damaged and cannot be read");
        return -EINVAL;
    }
    if (e->kind == IMAGE_OTHER) {
        image_report(im, sink, e->offset, "a module of kind %u is neither PTX nor cubin and cannot be read",
                     e->number);
        return -ENOTSUP;
    }
    *data = e->payload;
    if (e->compression != IMAGE_PLAIN) {
        int err = unpack(im, e, sink, buf);
        if (err == -ENOMEM)
            image_report(im, sink, e->offset, "no memory for a module of %zu bytes", e->full_size);
        if (err)
            return err;
        *data = (struct str){buf->bytes, e->full_size};
    }
    const char *nul = e->kind == IMAGE_PTX && data->len ? memchr(data->ptr, '\0', data->len) : NULL;
    if (nul)
        data->len = (size_t)(nul - data->ptr);
    return 0;
}

void image_buffer_free(struct image_buffer *buf)
{
    ZSTD_freeDCtx(buf->zstd);
    mem_free(buf->bytes);
    *buf = (struct image_buffer){0};
}
