// SPDX-License-Identifier: MIT
// Clusters: blocks that one thread runs together and that access each other's shared memory. Internal to
// src/exec.
//
// The window has the shared memory of the block of rank r at r * CLUSTER_STEP, for all blocks of the cluster
// and for the block itself: the address of a variable in shared memory differs from block to block, as ptxas
// makes it for sm_90. Accesses that spell .shared, not .shared::cluster, reach the block's own memory alone.
// A grid without clusters has clusters of one block.
#ifndef MOAT_EXEC_CLUSTER_H
#define MOAT_EXEC_CLUSTER_H

#include "exec/warp.h"

// CLUSTER_MOST: the most blocks
enum { CLUSTER_STEP = 1 << 24, CLUSTER_MOST = 16 };

// arrived == lanes that have arrived at barrier.cluster and not ended == the sum of popcount(arrived) over
// the cluster's warps
struct exec_cluster {
    uint32_t size, arrived;
    struct exec_block *blocks[];  // by rank
};

// Returns the block that holds an offset in the window, and makes *offset relative to its shared memory.
// Returns NULL if no block holds it, or if that block has ended.
struct exec_block *cluster_block(const struct exec_warp *w, uint64_t *offset);

// Returns the rank of the block that holds the offset.
uint32_t cluster_rank(uint64_t offset);
// Returns the offset of the same place in the block with that rank.
uint64_t cluster_address(uint64_t offset, uint32_t rank);

// The warp's lanes in `mask` have ended.
void cluster_threads_ended(struct exec_warp *w, uint32_t mask);

exec_fn cluster_arrive, cluster_wait;            // barrier.cluster
exec_fn cluster_mapa;                            // d, a: address, b: rank
exec_fn cluster_getctarank;                      // d, a
enum { CLUSTER_WIDE = 1, CLUSTER_GENERIC = 2 };  // flags: addresses have 64 bits; addresses are generic

#endif
