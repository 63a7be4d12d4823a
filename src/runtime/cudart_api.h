// SPDX-License-Identifier: MIT
//
// The CUDA runtime API as libcudart exports it.
#ifndef MOAT_RUNTIME_CUDART_API_H
#define MOAT_RUNTIME_CUDART_API_H

#include "runtime/cudart_types.h"

// In the archive, what is hidden becomes local to it: these stay.
#define CALL(symbol, result, parameters) __attribute__((visibility("default"))) result symbol parameters;
#include "runtime/runtime_calls.def"

#endif
