// SPDX-License-Identifier: MIT
// Private to the files that read descriptions: takes words off a text that may be damaged.
#ifndef MOAT_PASS_PASS_WORDS_H
#define MOAT_PASS_PASS_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

// Takes the text up to the separator, or all that is left.
static inline struct str pass_take(struct str *rest, char separator)
{
    const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct str part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    *rest = str_skip(*rest, part.len + (end != NULL));
    return part;
}

static inline bool pass_take_number(struct str *rest, uint64_t most, uint64_t *number)
{
    struct str word = pass_take(rest, ' ');
    *number = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9' || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(word.ptr[i] - '0'), number))
            return false;
    }
    return word.len && *number <= most;
}

static inline bool pass_take_name(struct str *rest, struct str *name)
{
    *name = pass_take(rest, ' ');
    for (size_t i = 0; i < name->len; i++) {
        char c = name->ptr[i], lower = (char)(c | 32);
        if (!((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%'))
            return false;
    }
    return name->len;
}

#endif
