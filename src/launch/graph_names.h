// SPDX-License-Identifier: MIT
// The names of the kernels that executable graphs run. They are collected when a graph is instantiated or
// changed: a launch does not reveal them.
//
// The driver calls needed for this have no side effects, are made with no lock of moat's held, and are
// allowed during any capture. If one is missing or fails, fewer names are known.
#ifndef MOAT_LAUNCH_GRAPH_NAMES_H
#define MOAT_LAUNCH_GRAPH_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

enum { GRAPH_NAMES_MOST = 8 };

// The kernels of a graph at some moment. Never changes, and stays valid until the process ends, also when the
// graph is destroyed.
struct graph_names {
    const char *name[GRAPH_NAMES_MOST];  // kept by names.h, none twice
    uint32_t count;
    bool others;  // it may run other kernels too
};

// Records that `exec` was instantiated from the graph or updated by it: its former kernels no longer count.
void graph_names_made(CUgraphExec exec, CUgraph graph);
// Record that a node of `exec` got another kernel (`kernel` if `function` is NULL) or another child graph.
// The node's former kernels are unknown, so the new ones are added.
void graph_names_add_kernel(CUgraphExec exec, CUfunction function, CUkernel kernel);
void graph_names_add_graph(CUgraphExec exec, CUgraph graph);
void graph_names_forget(CUgraphExec exec);

// Never returns NULL.
const struct graph_names *graph_names_of(CUgraphExec exec);
// Returns p if graph_names_of returned it, otherwise NULL.
const struct graph_names *graph_names_from(const void *p);

void graph_names_after_fork(void);

#endif
