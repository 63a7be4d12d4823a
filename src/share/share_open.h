// SPDX-License-Identifier: MIT
// What other processes share through share.h, in this one: opened, known by its pointer, closed.
#ifndef MOAT_SHARE_SHARE_OPEN_H
#define MOAT_SHARE_SHARE_OPEN_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

typedef CUresult share_open_fn(CUdeviceptr *, CUipcMemHandle, unsigned);

// open: the driver's own call, for memory that it has a handle for. *size: of the buffer.
CUresult share_open(CUdeviceptr *pointer, size_t *size, const CUipcMemHandle *handle, unsigned flags,
                    share_open_fn *open);
// False: the pointer is not from share_open. *last: it is closed as often as it was opened.
bool share_close(CUdeviceptr pointer, CUresult *r, bool *last);
void share_open_after_fork(void);

#endif
