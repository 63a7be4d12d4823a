// SPDX-License-Identifier: MIT
// Buffers of --mode=fence: pieces of the memory of their device's partition.
//
// A buffer that the program frees in the order of a stream waits in a list until the stream has reached the
// free. All others are free once the kernels that were launched before have ended, as with cuMemFree.
#ifndef MOAT_FENCE_FENCE_MEMORY_H
#define MOAT_FENCE_FENCE_MEMORY_H

#include "fence/fence_partition.h"
#include "flow/judge.h"
#include "mode/mode.h"

void fence_memory_after_fork(void);

// As the members of struct mode.
bool fence_memory_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r);
bool fence_memory_free(const struct mode_free *f, CUresult *r);
enum mode_what fence_memory_ask(uint64_t address, struct mode_answer *answer);
void fence_memory_poll(void);
void fence_memory_context_gone(CUcontext context);
uint64_t fence_memory_held(void);
uint64_t fence_memory_bytes(void);  // device memory that the partitions hold; no lock

// Returns the partition of ctx's device, which is made when it is first needed; NULL if there is none. ctx is
// current.
const struct fence_partition *fence_memory_partition(struct context *ctx);
bool fence_memory_has(uint64_t address);  // whether it is in a partition
// What a pointer points into: the partition of the current context's device, or a block of managed or pinned
// memory outside of it; for these sets *lasts to false.
struct judge_buffer fence_memory_judged(uint64_t pointer, bool *lasts);
// Returns a number by which launches are remembered (launch_memo.h): as long as it is the same,
// fence_memory_judged gives the same answers, but for those that do not last.
uint64_t fence_memory_version(void);
// Returns the partition of the current context's device; NULL if there is none.
const struct fence_partition *fence_memory_here(void);

// Launches wait here while memory replaces sinks. Called before the driver's call of a launch.
void fence_memory_gate(void);

#endif
