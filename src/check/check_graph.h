// SPDX-License-Identifier: MIT
// Kernels in executable graphs under --mode=check.
//
// A graph that the program makes, or captures, holds the variants that check everything, without bounds. When
// it is instantiated, each kernel node of the executable graph is set anew, as a launch would be made then:
// to the program's own kernel if a proof covers all checks, to the variant that makes the others if it covers
// some, and else to the variant that checks everything, with the bounds of its parameters. That holds as long
// as no pointer has lost its buffer (track_losses). When the graph is launched after one has, all nodes are
// looked at again.
//
// A node of an executable graph can only be set by the handle of the node that it was made from. So a graph
// that the program destroys stays with the driver until the executable ones that were made from it are gone.
//
// An executable graph that is updated from another graph has the kernels of that one, which then are set anew
// in the same way. Which of them a node has is known if both graphs have the same nodes and dependencies in
// the same order (check_graph_list.h), as a program's that makes them by the same code; else they are left.
//
// Left as they were, with lookups of every root: nodes of conditional nodes' graphs, those that kernels may
// update, and executable graphs that kernels may launch. Nodes that are cooperative or have clusters get no
// variant that checks a part, which may need more room than their kernels do.
#ifndef MOAT_CHECK_CHECK_GRAPH_H
#define MOAT_CHECK_CHECK_GRAPH_H

#include <stdbool.h>

#include "driver/driver.h"

struct launch_call;

// Members of the mode, see mode.h.
void check_graph_made(CUgraphExec exec, CUgraph graph, unsigned long long flags);
void check_graph_updated(CUgraphExec exec, CUgraphNode child, CUgraph from);
bool check_graph_ends(CUgraph graph, CUresult *r);
CUgraph check_graph_exec_ends(CUgraphExec exec);
void check_graph_node_set(const struct launch_call *l);
void check_graph_node_ends(CUgraphNode node);
void check_graph_after_fork(void);

// Called when a kernel of a library is captured, by the program's handle.
void check_graph_captured(const void *kernel);

// Called before a graph is launched: sets nodes whose proof or bounds do not hold any more.
void check_graph_launch(CUgraphExec exec);

// Returns whether the node of the executable graph is kept up to date, so that it may be set as a kernel is
// launched.
bool check_graph_keeps(CUgraphExec exec, CUgraphNode node);

#endif
