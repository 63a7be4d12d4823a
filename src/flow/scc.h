// SPDX-License-Identifier: MIT
// Strongly connected components: u and v share one if and only if each leads to the other.
//
//   component[v] < ncomponents for every node, reachable from the entry or not
//   u -> v implies component[v] <= component[u]: components are numbered against the edges
#ifndef MOAT_FLOW_SCC_H
#define MOAT_FLOW_SCC_H

#include "flow/graph.h"

struct scc {
    struct arena arena;
    uint32_t n, ncomponents;
    uint32_t *component;  // by node
    uint32_t *size;       // by component: number of its nodes
};

// Takes linear time and keeps no pointer to the graph. Returns 0 or -ENOMEM.
int scc_build(const struct graph *g, struct scc **out);
void scc_free(struct scc *s);

#endif
