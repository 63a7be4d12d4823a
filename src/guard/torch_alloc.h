// SPDX-License-Identifier: MIT
// Frameworks that keep memory pools: what was done about them, and PyTorch's allocator when it is ours.
#ifndef MOAT_GUARD_TORCH_ALLOC_H
#define MOAT_GUARD_TORCH_ALLOC_H

#include <sys/types.h>

#include "driver/driver.h"

// Sentences for the report, after the banner.
void torch_alloc_note(void);

// What PyTorch calls once the Python side (sitecustomize.py) has installed them. Each tensor gets a buffer of its own, by
// the calls that moat watches. A free waits for all work, as cuMemFree does: that is more than PyTorch expects, and
// covers streams that a tensor was recorded on, of which an allocator of this kind is not told.
void *moat_torch_alloc(ssize_t size, int device, CUstream stream);
void moat_torch_free(void *pointer, ssize_t size, int device, CUstream stream);

// A sentence of the Python side's for the report.
void moat_tell_note(const char *text);

#endif
