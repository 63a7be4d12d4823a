// SPDX-License-Identifier: MIT
// Kernel nodes of graphs, which several calls add and set.
#ifndef MOAT_HOOK_HOOK_NODE_H
#define MOAT_HOOK_HOOK_NODE_H

#include "hook/hook.h"
#include "launch/launch_call.h"
#include "mode/mode.h"

// An executable graph's child graph got the parameters of another graph.
void hook_graph_child_set(CUgraphExec exec, CUgraphNode node, CUgraph from);

// The body of a function that shows a node to the modes and makes the driver's call with their changes. It is
// separate from the hook, so that a call that no mode sees needs no stack for the parameters' bytes. p: the
// kernel's parameters, in whichever version; handle: its CUfunction or CUkernel. The remaining arguments fill
// the struct launch_node.
#define HOOK_NODE_BODY(symbol, arguments, p, handle, ...)                   \
    _Alignas(16) char room[LAUNCH_CALL_ROOM];                               \
    struct launch_change change;                                            \
    const struct launch_node made_or_set = {__VA_ARGS__};                   \
    const struct launch_call l = {.call = DRIVER_##symbol,                  \
                                  .function = (CUfunction)(handle),         \
                                  .node = &made_or_set,                     \
                                  .change = &change,                        \
                                  LAUNCH_CALL_OF_NODE(p)};                  \
    launch_change_start(&change, room);                                     \
    mode_node(&l);                                                          \
    CUresult r = LAUNCH_CALL_GO(&l, guard.real.symbol arguments);           \
    if (made_or_set.made)                                                   \
        HOOK_TRY_AGAIN(r, LAUNCH_CALL_GO(&l, guard.real.symbol arguments)); \
    if (!r)                                                                 \
        mode_node_set(&l);                                                  \
    return r

#endif
