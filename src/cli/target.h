// SPDX-License-Identifier: MIT
// The program to run: finds it, and checks whether libraries can be preloaded.
#ifndef MOAT_CLI_TARGET_H
#define MOAT_CLI_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct target {
    char path[PATH_MAX];
    bool foreign_runtime;  // the executable contains NVIDIA's CUDA runtime and kernels for it
    bool sanitizer;        // it needs a sanitizer's runtime as a shared library, which takes malloc's place
};

// Finds a program as a shell would, by path or in PATH. Returns 0, or a negative code with a sentence in why.
int target_find(struct target *t, const char *name, char *why, size_t size);

// Checks whether the loader would obey LD_PRELOAD for it: not for a static, setuid or foreign executable.
// Follows the interpreter of a script. Returns 0, or -EACCES with a sentence in why. Sets foreign_runtime and
// sanitizer.
int target_check(struct target *t, char *why, size_t size);

#endif
