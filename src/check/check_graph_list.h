// SPDX-License-Identifier: MIT
// The nodes of a graph and of the graphs in its child nodes, as one list: each graph's in the order in which
// they were made, and those of a child graph behind its node.
//
// Two graphs whose lists are equal have the same nodes with the same dependencies in the same order, and so
// the driver pairs the nodes at equal places when it updates an executable graph made of one from the other.
#ifndef MOAT_CHECK_CHECK_GRAPH_LIST_H
#define MOAT_CHECK_CHECK_GRAPH_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

enum { CHECK_GRAPH_LIST_MOST = 1 << 14 };  // a graph with more nodes has no list

struct check_graph_node {
    CUgraphNode handle;
    CUgraphNodeType type;
    size_t below;  // nodes of its child graph, which follow
};

struct check_graph_list {
    size_t count, room;
    struct check_graph_node *nodes;
};

// Returns false if the driver refuses, the graph has too many nodes, or out of memory; then the list is
// empty. It must be freed otherwise.
bool check_graph_list(CUgraph graph, struct check_graph_list *out);
void check_graph_list_free(struct check_graph_list *list);

// Returns whether a and b, lists of graphs as they are now, have the same nodes and dependencies.
bool check_graph_list_equal(const struct check_graph_list *a, const struct check_graph_list *b);

#endif
