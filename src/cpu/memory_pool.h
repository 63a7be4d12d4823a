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
    unsigned references;  // of the application, plus one for each block and each pending free
    bool built_in, destroyed;
    // Imported from another process: its pieces are addresses of this process, mapped to parts of that
    // process's file.
    bool imported;
    unsigned access;          // one bit for each device that may use it
    struct memory_file file;  // chunks are cut from it if others may open it; imported: the other process's
    struct memory_pending *pending;
    struct CUmemPoolHandle_st *next;
};

// memory_lock must be held for these.
CUresult memory_pool_add(struct CUmemPoolHandle_st *p, const CUmemPoolProps *props);
void memory_pool_take(struct CUmemPoolHandle_st *p, struct memory_block *b, uint64_t base, uint64_t size);
bool memory_pool_known(CUmemoryPool p);
CUresult memory_pool_share_make(struct CUmemPoolHandle_st *p);  // makes its file, if handles were requested
void memory_pool_share_give(struct memory_range *place);        // frees a piece of an imported pool

#endif
