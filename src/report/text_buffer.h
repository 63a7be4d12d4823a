// SPDX-License-Identifier: MIT
// Composes text without heap or stdio, inside somebody else's process. Text that does not fit is cut, and
// `cut` is set; all text before the cut is complete.
#ifndef MOAT_REPORT_TEXT_BUFFER_H
#define MOAT_REPORT_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_buffer {
    char *text;
    size_t len, cap;  // len <= cap
    bool cut;
};

void text_buffer_init(struct text_buffer *b, char *memory, size_t cap);
void text_buffer_bytes(struct text_buffer *b, const char *p, size_t n);
void text_buffer_cstr(struct text_buffer *b, const char *s);
void text_buffer_char(struct text_buffer *b, char c);
void text_buffer_u64(struct text_buffer *b, uint64_t v);
void text_buffer_hex(struct text_buffer *b, uint64_t v);  // 0x..., lower case
// Supports %s %d %u %lu %llu %x %lx %c %%, nothing else: for messages.
void text_buffer_fmt(struct text_buffer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
