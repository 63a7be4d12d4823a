// SPDX-License-Identifier: MIT
//
// The CUDA driver API as libcuda exports it, declared for code that must build without NVIDIA's
// headers. Every function goes by its symbol: cuMemAlloc is the call of CUDA 2.0, cuMemAlloc_v2 the
// one that a program compiled today means by that name. Not to be mixed with cuda.h in one file.
#ifndef MOAT_DRIVER_CUDA_API_H
#define MOAT_DRIVER_CUDA_API_H

#include "driver/cuda_enums.h"
#include "driver/cuda_structs.h"
#include "driver/cuda_types.h"

#define CALL(symbol, base, since, flags, result, parameters) result symbol parameters;
#include "driver/calls.def"

#endif
