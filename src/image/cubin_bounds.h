// SPDX-License-Identifier: MIT
// How many threads a kernel may be launched with, as its machine code and its PTX say.
//
// Libraries choose the size of blocks by the GPU they run on, and carry PTX for another one. Where both say something else of a
// kernel, what its host code launches is not what the PTX was made for.
#ifndef MOAT_IMAGE_CUBIN_BOUNDS_H
#define MOAT_IMAGE_CUBIN_BOUNDS_H

#include <stdbool.h>

#include "base/str.h"

// A kernel of the cubin whose bounds the text has otherwise; empty: there is none. Kernels that are in one of them only do
// not count. Neither is trusted: what is damaged has no kernels from there on. The name lies in the cubin.
struct str cubin_bounds_differ(struct str cubin, struct str ptx);

#endif
