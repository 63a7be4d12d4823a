// SPDX-License-Identifier: MIT
// Options of the CPU device, from the variable MOAT_OPTIONS, which `moat` sets.
#ifndef MOAT_CPU_CONFIG_H
#define MOAT_CPU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

enum { CONFIG_DEVICES = 16 };  // as cpu-devices in options.def says

struct config {
    int capability;     // 90 for sm_90
    unsigned devices;   // from 1 to CONFIG_DEVICES
    unsigned threads;   // that run blocks, for all devices together; at least 1
    uint64_t memory;    // bytes that each device claims to have; a multiple of 2 MiB
    const char *lanes;  // for exec_lanes_force; NULL: the best of the processor
    bool stats, times;
    bool skip;    // accesses that fault are skipped
    bool native;  // functions that are offered in C are executed in C
};

// Returns the options, read from the environment at the first call. Thread-safe, never NULL. A wrong value or
// an unknown option is reported in one line on standard error, and the default holds.
const struct config *config_get(void);

// Parses a text as config_get does. Complaints go to `complain`, one line each without its newline.
void config_parse(struct config *c, const char *text, void (*complain)(void *ctx, const char *line),
                  void *ctx);

#endif
