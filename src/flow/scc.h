// SPDX-License-Identifier: MIT
// Strongly connected components: u and v share one if and only if each leads to the other.
//
//   component[v] < ncomponents for every node, reached from the entry or not
//   u -> v implies component[v] <= component[u]: components are numbered against the edges
#ifndef MOAT_FLOW_SCC_H
#define MOAT_FLOW_SCC_H

#include "flow/graph.h"

struct scc {
    struct arena arena;
    uint32_t n, ncomponents;
    uint32_t *component;  // by node
    uint32_t *size;       // by component: its nodes
};

// Linear. 0 or -ENOMEM. Keeps nothing of the graph.
int scc_build(const struct graph *g, struct scc **out);
void scc_free(struct scc *s);

#endif
