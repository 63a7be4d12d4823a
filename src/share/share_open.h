// SPDX-License-Identifier: MIT
// Memory that other processes share through share.h, opened in this one.
#ifndef MOAT_SHARE_SHARE_OPEN_H
#define MOAT_SHARE_SHARE_OPEN_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

typedef CUresult share_open_fn(CUdeviceptr *, CUipcMemHandle, unsigned);

// Opens a handle. open: the driver's own call, for memory that has a handle of the driver's. *size is the
// buffer's size.
CUresult share_open(CUdeviceptr *pointer, size_t *size, const CUipcMemHandle *handle, unsigned flags,
                    share_open_fn *open);
// Returns false if the pointer is not from share_open. *last is set if it is now closed as often as it was
// opened.
bool share_close(CUdeviceptr pointer, CUresult *r, bool *last);
void share_open_after_fork(void);

#endif
