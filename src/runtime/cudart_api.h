// SPDX-License-Identifier: MIT
//
// The CUDA runtime API as libcudart exports it.
#ifndef MOAT_RUNTIME_CUDART_API_H
#define MOAT_RUNTIME_CUDART_API_H

#include "runtime/cudart_types.h"

// The archive makes hidden symbols local: these stay visible.
#define CALL(symbol, result, parameters) __attribute__((visibility("default"))) result symbol parameters;
#include "runtime/runtime_calls.def"

#endif
