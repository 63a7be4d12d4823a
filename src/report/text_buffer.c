// SPDX-License-Identifier: MIT
#include "report/text_buffer.h"

#include <stdarg.h>
#include <string.h>

void text_buffer_init(struct text_buffer *b, char *memory, size_t cap)
{
    *b = (struct text_buffer){.text = memory, .cap = cap};
}

// Nothing is appended after a cut: a text with a gap would read like a whole one.
void text_buffer_bytes(struct text_buffer *b, const char *p, size_t n)
{
    if (b->cut)
        return;
    if (n > b->cap - b->len) {
        n = b->cap - b->len;
        b->cut = true;
    }
    if (n)
        memcpy(b->text + b->len, p, n);
    b->len += n;
}

void text_buffer_cstr(struct text_buffer *b, const char *s)
{
    text_buffer_bytes(b, s, strlen(s));
}

void text_buffer_char(struct text_buffer *b, char c)
{
    text_buffer_bytes(b, &c, 1);
}

static void put_number(struct text_buffer *b, uint64_t v, unsigned base)
{
    char text[20];
    char *p = text + sizeof text;
    do {
        *--p = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    text_buffer_bytes(b, p, (size_t)(text + sizeof text - p));
}

void text_buffer_u64(struct text_buffer *b, uint64_t v)
{
    put_number(b, v, 10);
}

void text_buffer_hex(struct text_buffer *b, uint64_t v)
{
    text_buffer_bytes(b, "0x", 2);
    put_number(b, v, 16);
}

static void put_signed(struct text_buffer *b, long long v)
{
    if (v < 0)
        text_buffer_char(b, '-');
    put_number(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10);
}

void text_buffer_fmt(struct text_buffer *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    for (const char *p = fmt; *p; p++) {
        if (*p != '%') {
            text_buffer_char(b, *p);
            continue;
        }
        int longs = 0;
        while (*++p == 'l')
            longs++;
        if (*p == 's')
            text_buffer_cstr(b, va_arg(args, const char *));
        else if (*p == 'c')
            text_buffer_char(b, (char)va_arg(args, int));
        else if (*p == 'd')
            put_signed(b, longs > 1 ? va_arg(args, long long)
                          : longs   ? va_arg(args, long)
                                    : va_arg(args, int));
        else if (*p == 'u' || *p == 'x')
            put_number(b,
                       longs > 1 ? va_arg(args, unsigned long long)
                       : longs   ? va_arg(args, unsigned long)
                                 : va_arg(args, unsigned),
                       *p == 'u' ? 10 : 16);
        else if (*p == '%')
            text_buffer_char(b, '%');
        else
            break;
    }
    va_end(args);
}
