// SPDX-License-Identifier: MIT
#include "report/utf8.h"

size_t utf8_length(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    if (n > s.len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool surrogate = (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF4 && p[1] > 0x8F);
    return overlong || surrogate ? 0 : n;
}

size_t utf8_put(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; --i > 0; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3F));
    to[0] = (char)((0xF00 >> n) | c);
    return n;
}

bool utf8_is_control(struct str s, size_t length)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if (length == 1)
        return p[0] < 0x20 || p[0] == 0x7F;
    return length == 2 && p[0] == 0xC2 && p[1] < 0xA0;
}
