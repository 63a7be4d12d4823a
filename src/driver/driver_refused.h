// SPDX-License-Identifier: MIT
// A transfer to or from a variable that our CUDA runtime refuses by itself, because it would leave the
// variable. No driver call follows, so the runtime tells the guard, which has DRIVER_REFUSED_SYMBOL.
#ifndef MOAT_DRIVER_DRIVER_REFUSED_H
#define MOAT_DRIVER_DRIVER_REFUSED_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_types.h"

#define DRIVER_REFUSED_SYMBOL "moat_runtime_refused"
typedef void driver_refused_fn(CUdeviceptr variable, size_t offset, size_t bytes, bool writes);

#endif
