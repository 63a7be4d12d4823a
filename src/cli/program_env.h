// SPDX-License-Identifier: MIT
// Sets the environment of a program so that moat's libraries are loaded before its own.
#ifndef MOAT_CLI_PROGRAM_ENV_H
#define MOAT_CLI_PROGRAM_ENV_H

#include <stdbool.h>

#include "base/option.h"

struct program_env {
    const char *folder;   // of our libraries
    bool guard;           // libmoat.so
    bool heap;            // libmoat-heap.so
    bool cpu;             // the CPU device and our runtime
    const char *driver;   // the libcuda below the guard; NULL: as the options say
    const char *channel;  // socket for reports; NULL: none
};

// Sets LD_PRELOAD, LD_LIBRARY_PATH, MOAT_OPTIONS and the channel. Returns 0 or a negative code.
int program_env_set(const struct program_env *p, const struct options *options);

#endif
