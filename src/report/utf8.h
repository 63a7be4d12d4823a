// SPDX-License-Identifier: MIT
// UTF-8. Texts in reports come from binaries and may be any bytes; what is written must be UTF-8.
#ifndef MOAT_REPORT_UTF8_H
#define MOAT_REPORT_UTF8_H

#include <stdint.h>

#include "base/str.h"

// Returns the length of the character at the beginning of s, which must not be empty; 0 if that is not valid
// UTF-8.
size_t utf8_length(struct str s);

// Writes a character, 1 to 4 bytes, and returns their number.
size_t utf8_put(char *to, uint32_t character);

// Returns whether a character controls a terminal or document rather than being shown.
bool utf8_is_control(struct str s, size_t length);

#endif
