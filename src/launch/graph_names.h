// SPDX-License-Identifier: MIT
// Which kernels executable graphs run, by name. It is learnt where a graph is made executable or changed: a launch tells nothing.
//
// The calls of the driver that this takes change nothing, hold no lock of ours, and are allowed while anybody captures. Where one
// is missing or fails, less is known.
#ifndef MOAT_LAUNCH_GRAPH_NAMES_H
#define MOAT_LAUNCH_GRAPH_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

enum { GRAPH_NAMES_MOST = 8 };

// Of a graph as it was at some time. Stays as it is until the process ends, whatever becomes of the graph.
struct graph_names {
    const char *name[GRAPH_NAMES_MOST];  // names.h, none twice
    uint32_t count;
    bool others;  // it may run kernels besides
};

// It was made from that graph, or updated by it: what it ran before counts no more.
void graph_names_made(CUgraphExec exec, CUgraph graph);
// A node of it got another kernel, the second where the first is NULL, or another graph. Which it had is not known: it is added.
void graph_names_add_kernel(CUgraphExec exec, CUfunction function, CUkernel kernel);
void graph_names_add_graph(CUgraphExec exec, CUgraph graph);
void graph_names_forget(CUgraphExec exec);

// Never NULL.
const struct graph_names *graph_names_of(CUgraphExec exec);
// The same pointer, if it is one that graph_names_of returned; NULL: it is something else's.
const struct graph_names *graph_names_from(const void *p);

void graph_names_after_fork(void);

#endif
