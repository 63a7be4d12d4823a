// SPDX-License-Identifier: MIT
// Compares the kernels of machine code and of PTX: whether the PTX has them all, and how many threads they
// may be launched with.
//
// Libraries choose the size of blocks by the GPU they run on, and carry PTX for another one. Where the two
// differ for a kernel, the launches of its host code do not fit the PTX.
#ifndef MOAT_IMAGE_CUBIN_BOUNDS_H
#define MOAT_IMAGE_CUBIN_BOUNDS_H

#include <stdbool.h>

#include "base/str.h"

// Returns the name of a kernel whose bounds differ between cubin and PTX, empty if there is none. Kernels
// that only one of them has do not count. Neither input is trusted: reading ends at the first damage. The
// name lies in the cubin.
struct str cubin_bounds_differ(struct str cubin, struct str ptx);

// Returns the name of a kernel of the cubin that the PTX does not have, empty if there is none; as above.
struct str cubin_bounds_missing(struct str cubin, struct str ptx);

#endif
