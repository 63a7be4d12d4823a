// SPDX-License-Identifier: MIT
// What the user asked of the CPU device, from the variable MOAT_OPTIONS that `moat` sets.
#ifndef MOAT_CPU_CONFIG_H
#define MOAT_CPU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

enum { CONFIG_DEVICES = 16 };  // as cpu-devices in options.def says

struct config {
    int capability;     // 90 for sm_90
    unsigned devices;   // from 1 to CONFIG_DEVICES
    unsigned threads;   // that run blocks, of all devices; at least 1
    uint64_t memory;    // bytes that each device pretends to have; a multiple of 2 MiB
    const char *lanes;  // for exec_lanes_force; NULL: the best that the processor has
    bool stats, times;
};

// Read at the first call; the environment as it was then counts. Thread-safe, never NULL. A value that is wrong, or
// an option that there is not, is named in one line on standard error, and the default holds.
const struct config *config_get(void);

// As config_get reads it, from a text. Complaints go to `complain`, one line each without its newline.
void config_parse(struct config *c, const char *text, void (*complain)(void *ctx, const char *line),
                  void *ctx);

#endif
