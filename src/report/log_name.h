// SPDX-License-Identifier: MIT
// Names of log files: %p stands for the number of the process that a file is about, %h for the host's name,
// %% for a percent sign.
#ifndef MOAT_REPORT_LOG_NAME_H
#define MOAT_REPORT_LOG_NAME_H

#include <stdbool.h>
#include <stddef.h>

// Expands a template. Returns 0, -EINVAL if another character follows a percent sign, or -ENAMETOOLONG. Uses
// no heap, no stdio.
int log_name_expand(const char *template, int pid, char *name, size_t size);

// Returns whether each process has a file of its own.
bool log_name_per_process(const char *template);

#endif
