// SPDX-License-Identifier: MIT
// Calls that the CPU device does not support. This header is apart from cpu.h, because the file of the stubs
// must not see the declarations of the functions that it defines with other types.
#ifndef MOAT_CPU_UNSUPPORTED_H
#define MOAT_CPU_UNSUPPORTED_H

#include "driver/cuda_enums.h"

// Reports the call's name on standard error, once for each name, and to cuLogs* each time. Returns
// CUDA_ERROR_NOT_SUPPORTED. The string must live for ever.
CUresult not_supported(const char *call);
// The same, and calls the callbacks of cuLogs* at once. None of our locks may be held.
CUresult not_supported_notify(const char *call);

#endif
