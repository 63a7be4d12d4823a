// SPDX-License-Identifier: MIT
// The program to run: where it is, and whether libraries can be put before it.
#ifndef MOAT_CLI_TARGET_H
#define MOAT_CLI_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct target {
    char path[PATH_MAX];
    bool foreign_runtime;  // NVIDIA's CUDA runtime is part of the executable, and so are kernels for it
};

// Finds a program as a shell would, by path or in PATH. 0, or a negative code with a sentence in why.
int target_find(struct target *t, const char *name, char *why, size_t size);

// Whether the loader would obey LD_PRELOAD for it: not for a static, setuid or foreign executable. Follows the
// interpreter of a script. 0, or -EACCES with a sentence in why. Sets foreign_runtime.
int target_check(struct target *t, char *why, size_t size);

#endif
