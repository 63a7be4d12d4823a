// SPDX-License-Identifier: MIT
// Messages of the CPU device to the user: rare, one line each, on standard error.
#ifndef MOAT_CPU_SAY_H
#define MOAT_CPU_SAY_H

// Writes "moat: ", the text and a newline in one write. The text is cut at 500 bytes; control characters
// become '?'.
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
