// SPDX-License-Identifier: MIT
// --api-errors: calls that fail, and not as usual (usual_failures.def), are reported.
#ifndef MOAT_HOOK_API_ERROR_H
#define MOAT_HOOK_API_ERROR_H

#include <stdbool.h>

#include "driver/driver.h"

bool api_error_wanted(void);
void api_error_seen(enum driver_id call, CUresult r);

#endif
