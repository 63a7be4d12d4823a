// SPDX-License-Identifier: MIT
// Texts in reports come from binaries and may be any bytes; what is written must be UTF-8.
#ifndef MOAT_REPORT_UTF8_H
#define MOAT_REPORT_UTF8_H

#include <stdint.h>

#include "base/str.h"

// Bytes of the character that s, which is not empty, begins with; 0 if it begins with none.
size_t utf8_length(struct str s);

// Writes a character, 1 to 4 bytes, and returns how many.
size_t utf8_put(char *to, uint32_t character);

// As for a terminal or a document: a character that controls rather than shows.
bool utf8_is_control(struct str s, size_t length);

#endif
