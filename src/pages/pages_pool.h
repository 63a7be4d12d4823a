// SPDX-License-Identifier: MIT
// Which pools pages mode may replace: pools of one device, without a size limit, that nothing else can
// access.
#ifndef MOAT_PAGES_PAGES_POOL_H
#define MOAT_PAGES_PAGES_POOL_H

#include <stdbool.h>

#include "driver/driver.h"

void pages_pool_made(CUmemoryPool pool, const CUmemPoolProps *props);
void pages_pool_gone(CUmemoryPool pool);

// Other devices were given access: later allocations from the pool are left to the driver.
void pages_pool_opened(CUmemoryPool pool);

// Returns whether the pool may be replaced. If *pool == NULL, it is set to the device's current pool first.
bool pages_pool_usable(CUdevice device, CUmemoryPool *pool);

void pages_pool_after_fork(void);

#endif
