// SPDX-License-Identifier: MIT
// For calls that the CPU device does not have. Apart from cpu.h, because the stubs' file must not see the
// declarations of what it defines under other types.
#ifndef MOAT_CPU_UNSUPPORTED_H
#define MOAT_CPU_UNSUPPORTED_H

#include "driver/cuda_enums.h"

// Says the name on standard error, once for each, and to cuLogs* each time; returns CUDA_ERROR_NOT_SUPPORTED. call lives
// for ever.
CUresult not_supported(const char *call);
// And callbacks of cuLogs* hear it at once: no lock of ours may be held.
CUresult not_supported_told(const char *call);

#endif
