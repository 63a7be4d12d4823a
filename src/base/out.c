// SPDX-License-Identifier: MIT
#include "base/out.h"

#include <errno.h>
#include <stdarg.h>

#include "base/mem.h"

enum { BUFFER = 64 << 10 };

int out_to_file(struct out *o, FILE *file)
{
    *o = (struct out){.file = file, .cap = BUFFER};
    o->buf = mem_alloc(BUFFER);
    if (!o->buf) {
        o->cap = 0;
        o->error = -ENOMEM;
    }
    return o->error;
}

int out_to_memory(struct out *o)
{
    return out_to_file(o, NULL);
}

int out_flush(struct out *o)
{
    if (o->file && !o->error && o->len) {
        if (fwrite(o->buf, 1, o->len, o->file) != o->len)
            o->error = errno ? -errno : -EIO;
        o->len = 0;
    }
    return o->error;
}

int out_close(struct out *o)
{
    int err = out_flush(o);
    if (o->file && !err && fflush(o->file))
        err = errno ? -errno : -EIO;
    mem_free(o->buf);
    *o = (struct out){0};
    return err;
}

static void grow(struct out *o, size_t n)
{
    size_t cap = o->cap * 2 > o->len + n ? o->cap * 2 : o->len + n;
    char *buf = mem_realloc(o->buf, cap, 1);
    if (!buf) {
        o->error = -ENOMEM;
        return;
    }
    o->buf = buf;
    o->cap = cap;
}

void out_bytes_slow(struct out *o, const char *p, size_t n)
{
    if (o->error)
        return;
    if (!o->file) {
        grow(o, n);
        if (o->error)
            return;
    } else if (out_flush(o)) {
        return;
    }
    if (n > o->cap) {
        if (fwrite(p, 1, n, o->file) != n)
            o->error = errno ? -errno : -EIO;
        return;
    }
    memcpy(o->buf + o->len, p, n);
    o->len += n;
}

void out_cstr(struct out *o, const char *s)
{
    out_bytes(o, s, strlen(s));
}

void out_clean(struct out *o, struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        out_char(o, s.ptr[i] >= 32 && s.ptr[i] < 127 ? s.ptr[i] : '?');
}

void out_u64(struct out *o, uint64_t v)
{
    char text[20];
    char *p = text + sizeof text;
    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    out_bytes(o, p, (size_t)(text + sizeof text - p));
}

void out_i64(struct out *o, int64_t v)
{
    if (v < 0)
        out_char(o, '-');
    out_u64(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void out_hex(struct out *o, uint64_t v, int digits)
{
    char text[16];
    int n = 0;
    do {
        text[15 - n++] = "0123456789ABCDEF"[v & 15];
        v >>= 4;
    } while (n < 16 && (v || n < digits));
    out_bytes(o, text + 16 - n, (size_t)n);
}

void out_fmt(struct out *o, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n < sizeof text) {
        out_bytes(o, text, (size_t)n);
        return;
    }
    char *big = mem_alloc((size_t)n + 1);
    if (!big) {
        o->error = o->error ? o->error : -ENOMEM;
        return;
    }
    va_start(args, fmt);
    vsnprintf(big, (size_t)n + 1, fmt, args);
    va_end(args);
    out_bytes(o, big, (size_t)n);
    mem_free(big);
}
