// SPDX-License-Identifier: MIT
// The device's runtime, which kernels that launch kernels call: NVIDIA's machine code, which moat does not
// ship. Programs bring it in a fatbin of their own; for one that does not, it is looked for in the toolkits
// of the machine.
#ifndef MOAT_REWRITE_REWRITE_RUNTIME_H
#define MOAT_REWRITE_REWRITE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "rewrite/rewrite_source.h"

// Adds the machine code that the texts of the source are linked with. Returns the driver's result.
CUresult rewrite_runtime_add(CUlinkState link, const struct rewrite_source *s, struct diag_sink *sink);

// Adds the library of an installed toolkit: below CUDA_HOME or CUDA_PATH, beside the CUDA runtime that the
// process has loaded, or in /usr/local/cuda. Adds nothing if there is none.
CUresult rewrite_runtime_add_installed(CUlinkState link);

// Writes the path of that library. Returns false if there is none.
bool rewrite_runtime_find(char *path, size_t size);

#endif
