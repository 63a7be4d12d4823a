// SPDX-License-Identifier: MIT
// What the device has to say, for programs that ask (cuLogs*).
#ifndef MOAT_CPU_LOGS_H
#define MOAT_CPU_LOGS_H

#include <stddef.h>

void logs_add(const char *text, size_t len);  // a line without its end
void logs_tell(void);  // calls the program's callbacks with what is new: no lock of ours may be held

#endif
