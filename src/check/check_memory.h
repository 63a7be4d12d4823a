// SPDX-License-Identifier: MIT
// Where --mode=check places buffers, so that freed addresses are not used again: large ones as --mode=pages
// does (pages.h), small ones in slabs (check_slab.h). Stream-ordered memory of pools, managed memory and host
// memory are the driver's, and so is what neither can serve.
#ifndef MOAT_CHECK_CHECK_MEMORY_H
#define MOAT_CHECK_CHECK_MEMORY_H

#include "mode/mode.h"

void check_memory_start(void);
void check_memory_after_fork(void);

// Members of struct mode.
bool check_memory_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r);
bool check_memory_free(const struct mode_free *f, CUresult *r);
enum mode_what check_memory_ask(uint64_t address, struct mode_answer *answer);
bool check_memory_reclaim(bool at_once);
CUresult check_memory_share(const struct mode_answer *answer, CUdeviceptr pointer, CUipcMemHandle *handle);
void check_memory_shares_plain(void);
void check_memory_peer(struct context *ctx, const CUmemAccessDesc *desc);
void check_memory_context_gone(CUcontext context);

// Returns whether the address lies in memory that this mode placed, where nothing else can be.
bool check_memory_owns(uint64_t address);

#endif
