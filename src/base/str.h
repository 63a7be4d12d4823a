// SPDX-License-Identifier: MIT
// A slice of text that somebody else owns. It is not NUL-terminated.
#ifndef MOAT_BASE_STR_H
#define MOAT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).len, (s).ptr

static inline struct str str_from(const char *cstr)
{
    return (struct str){cstr, strlen(cstr)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static inline struct str str_skip(struct str s, size_t n)
{
    return (struct str){s.ptr + n, s.len - n};
}

#endif
