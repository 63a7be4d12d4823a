// SPDX-License-Identifier: MIT
// Finds out whether there is a driver with a GPU, in a process of its own: a driver opens devices and starts
// threads, and the command that waits for a program must have none.
#ifndef MOAT_CLI_GPU_PROBE_H
#define MOAT_CLI_GPU_PROBE_H

#include <stddef.h>

// Returns 0 with the path of the driver, or a negative code with a sentence in why.
int gpu_probe(char *path, size_t path_size, char *why, size_t why_size);

#endif
