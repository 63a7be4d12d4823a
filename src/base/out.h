// SPDX-License-Identifier: MIT
// Buffered text output to a stream or into memory. The first failure is kept: later calls do nothing, and
// out_close returns it.
#ifndef MOAT_BASE_OUT_H
#define MOAT_BASE_OUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

struct out {
    char *buf;
    size_t len, cap;
    FILE *file;  // NULL: collect in memory
    int error;   // 0 or a negative code
};

int out_to_file(struct out *o, FILE *file);  // file stays open at out_close
int out_to_memory(struct out *o);            // the text is buf[0 .. len), valid until out_close
int out_flush(struct out *o);
int out_close(struct out *o);
void out_bytes_slow(struct out *o, const char *p, size_t n);

static inline void out_bytes(struct out *o, const char *p, size_t n)
{
    if (n > o->cap - o->len) {
        out_bytes_slow(o, p, n);
        return;
    }
    memcpy(o->buf + o->len, p, n);
    o->len += n;
}

static inline void out_char(struct out *o, char c)
{
    out_bytes(o, &c, 1);
}

static inline void out_str(struct out *o, struct str s)
{
    out_bytes(o, s.ptr, s.len);
}

#define out_lit(o, literal) out_bytes((o), (literal), sizeof(literal) - 1)

void out_cstr(struct out *o, const char *s);
void out_clean(struct out *o, struct str s);  // for terminals: bytes that are not printable ASCII become '?'
void out_u64(struct out *o, uint64_t v);
void out_i64(struct out *o, int64_t v);
void out_hex(struct out *o, uint64_t v, int digits);  // upper case, at least `digits` long
void out_fmt(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
