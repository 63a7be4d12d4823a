// SPDX-License-Identifier: MIT
#ifndef MOAT_RUNTIME_RT_MISSING_H
#define MOAT_RUNTIME_RT_MISSING_H

#include <stdbool.h>

#include "runtime/cudart_types.h"

// Returns cudaErrorNotSupported; reports once on standard error that the runtime lacks the call.
cudaError_t rt_missing(const char *symbol, bool *said);

#endif
