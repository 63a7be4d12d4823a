// SPDX-License-Identifier: MIT
// Which pools of stream-ordered memory pages mode may take the place of: those of a device, without a limit, that can be
// reached from nowhere else.
#ifndef MOAT_PAGES_PAGES_POOL_H
#define MOAT_PAGES_PAGES_POOL_H

#include <stdbool.h>

#include "driver/driver.h"

void pages_pool_made(CUmemoryPool pool, const CUmemPoolProps *props);
void pages_pool_gone(CUmemoryPool pool);

// Other devices were given access: what is allocated from now on is left to the driver.
void pages_pool_opened(CUmemoryPool pool);

// *pool NULL: becomes the device's current one.
bool pages_pool_usable(CUdevice device, CUmemoryPool *pool);

void pages_pool_after_fork(void);

#endif
