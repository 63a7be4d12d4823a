// SPDX-License-Identifier: MIT
// What the CPU device tells the person at the terminal: rare, one line each, on standard error.
#ifndef MOAT_CPU_SAY_H
#define MOAT_CPU_SAY_H

// "moat: ", the text and a newline in one write. Cut at 500 bytes; control characters become '?'.
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
