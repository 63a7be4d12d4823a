// SPDX-License-Identifier: MIT
// Messages of the device, for programs that use cuLogs*.
#ifndef MOAT_CPU_LOGS_H
#define MOAT_CPU_LOGS_H

#include <stddef.h>

void logs_add(const char *text, size_t len);  // a line without its newline
// Calls the program's callbacks with the new messages. None of our locks may be held.
void logs_notify(void);

#endif
