// SPDX-License-Identifier: MIT
// Clusters: blocks that one thread runs together, and that reach each other's shared memory. Internal to src/exec.
//
// A block's own shared memory lies at 0 in the window of shared memory, and again, as that of every block of the
// cluster, at (rank + 1) * CLUSTER_STEP. mapa makes the latter addresses. A grid without clusters has clusters of one
// block.
#ifndef MOAT_EXEC_CLUSTER_H
#define MOAT_EXEC_CLUSTER_H

#include "exec/warp.h"

enum { CLUSTER_STEP = 1 << 24, CLUSTER_MOST = 16 };  // MOST: blocks

// arrived == lanes that have arrived at barrier.cluster and not ended: those in `arrived` of the cluster's warps
struct exec_cluster {
    uint32_t size, arrived;
    struct exec_block *blocks[];  // by rank
};

// The block whose shared memory an offset in the window is in; *offset becomes an offset there. NULL: of none, or of
// one that has ended.
struct exec_block *cluster_block(const struct exec_warp *w, uint64_t *offset);

uint32_t cluster_rank(const struct exec_warp *w, uint64_t offset);  // of such an offset
uint64_t cluster_address(uint64_t offset, uint32_t rank);  // an offset of the same place in another block

// `mask` of the warp's lanes have ended.
void cluster_threads_ended(struct exec_warp *w, uint32_t mask);

exec_fn cluster_arrive, cluster_wait;            // barrier.cluster
exec_fn cluster_mapa;                            // d, a: address, b: rank
exec_fn cluster_getctarank;                      // d, a
enum { CLUSTER_WIDE = 1, CLUSTER_GENERIC = 2 };  // flags: addresses have 64 bits; are generic

#endif
