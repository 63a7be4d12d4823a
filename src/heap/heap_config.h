// SPDX-License-Identifier: MIT
// The options of the heap, from MOAT_OPTIONS.
#ifndef MOAT_HEAP_CONFIG_H
#define MOAT_HEAP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/site.h"

struct heap_config {
    bool lazy, leaks, halt, signals;
    int exitcode;  // the status with halt
    uint64_t quarantine_bytes;
    unsigned share, monitors;
    enum site_depth depth;
    char log_file[512];
};

void heap_config_read(struct heap_config *c);

#endif
