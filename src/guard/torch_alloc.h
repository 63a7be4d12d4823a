// SPDX-License-Identifier: MIT
// Frameworks with memory pools: notes on what was done about them, and moat's allocator for PyTorch.
#ifndef MOAT_GUARD_TORCH_ALLOC_H
#define MOAT_GUARD_TORCH_ALLOC_H

#include <sys/types.h>

#include "driver/driver.h"
#include "track/guard_report.h"

// Adds sentences to the report, after the banner.
void torch_alloc_note(void);

// PyTorch calls these once the Python side (sitecustomize.py) has installed them. Each tensor gets a buffer
// of its own, by the calls that moat watches. A free waits for all work, as cuMemFree does: that is more than
// PyTorch expects, and covers the streams that a tensor was recorded on, which are not passed to an allocator
// of this kind.
void *moat_torch_alloc(ssize_t size, int device, CUstream stream);
void moat_torch_free(void *pointer, ssize_t size, int device, CUstream stream);

// Lets what the calling thread allocates from now on be memory of a CUDA graph, which stays until the process
// ends; 0: no longer. For torch.compile, which allocates inputs of a graph before it captures the graph, and
// gives them back after it, since PyTorch's own allocator keeps them with the graph (moat_torch_graphs.py).
void moat_torch_keep(int keep);

// Adds a sentence of the Python side to the report.
void moat_tell_note(const char *text);

// Lets the Python side explain errors (guard_report.h).
void moat_explain_with(guard_report_explain_fn *explain);

#endif
