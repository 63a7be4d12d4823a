// SPDX-License-Identifier: MIT
// Pools of stream-ordered memory, for the files that implement them.
#ifndef MOAT_CPU_MEMORY_POOL_H
#define MOAT_CPU_MEMORY_POOL_H

#include "cpu/memory.h"

struct CUmemPoolHandle_st {
    struct memory_slabs slabs;
    CUmemPoolProps props;
    cuuint64_t threshold, used, used_high;
    int reuse[3];         // from CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES on
    unsigned references;  // the application's, and one for each block and each free on its way
    bool built_in, destroyed;
    bool
        imported;  // of another process: its pieces are addresses of ours, with parts of its file behind them
    unsigned access;          // a bit for each device that may use it
    struct memory_file file;  // what its chunks are cut from, if others may open it; imported: theirs
    struct memory_pending *pending;
    struct CUmemPoolHandle_st *next;
};

// With memory_lock held, all of them.
CUresult memory_pool_add(struct CUmemPoolHandle_st *p, const CUmemPoolProps *props);
void memory_pool_take(struct CUmemPoolHandle_st *p, struct memory_block *b, uint64_t base, uint64_t size);
bool memory_pool_known(CUmemoryPool p);
CUresult memory_pool_share_make(struct CUmemPoolHandle_st *p);  // its file, where handles are asked for
void memory_pool_share_give(struct memory_range *place);        // a piece of an imported pool

#endif
