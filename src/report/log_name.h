// SPDX-License-Identifier: MIT
// Names of log files: %p stands for the number of the process that a file is about, %h for the host's name and %% for
// a percent sign.
#ifndef MOAT_REPORT_LOG_NAME_H
#define MOAT_REPORT_LOG_NAME_H

#include <stdbool.h>
#include <stddef.h>

// 0, -EINVAL: a percent sign before something else, or -ENAMETOOLONG. No heap, no stdio.
int log_name_expand(const char *template, int pid, char *name, size_t size);

// Whether each process has a file of its own.
bool log_name_per_process(const char *template);

#endif
