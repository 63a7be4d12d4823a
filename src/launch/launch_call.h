// SPDX-License-Identifier: MIT
// A launch on its way to the driver, or a kernel node of a graph: whichever call of the program's it is,
// modes see it here, and may have another kernel launched, or more parameters passed than the program knows
// of.
//
// The struct is what the program said and takes few stores. What costs more is found out when somebody asks:
// parameters as bytes, attributes, clusters. As long as nobody changes anything the hook passes the program's
// own arguments to the driver.
//
// No memory is taken: bytes lie in the hook's frame, LAUNCH_CALL_ROOM of them. That is what CUDA allows on
// all GPUs and what modes may append; newer GPUs take 32,764. A kernel with more bytes, or whose parameters
// nobody knows (kernels_layout), is launched as the program said, is counted (GUARD_LAUNCHES_LEFT), and the
// functions below return false.
#ifndef MOAT_LAUNCH_LAUNCH_CALL_H
#define MOAT_LAUNCH_LAUNCH_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/kernels.h"
#include "driver/driver.h"

enum {
    LAUNCH_CALL_MORE = 8,          // parameters that modes can append to a launch, all together ...
    LAUNCH_CALL_MORE_BYTES = 128,  // ... and their bytes, with what aligns them
    LAUNCH_CALL_ROOM = 4096 + LAUNCH_CALL_MORE_BYTES,
};

// What modes make of a launch. Only the functions below write it.
struct launch_change {
    const void *function;  // launched instead, a CUfunction or CUkernel; NULL: the program's own
    char *room;            // LAUNCH_CALL_ROOM bytes, aligned to 16
    bool left;             // it cannot be changed
    bool counted;          // in GUARD_LAUNCHES_LEFT
    bool gathered;         // room has the program's parameters
    uint8_t count;         // appended parameters: size[i] bytes at more + at[i]
    uint8_t at[LAUNCH_CALL_MORE], size[LAUNCH_CALL_MORE], align[LAUNCH_CALL_MORE];
    uint32_t own;  // where some are appended: the program's pointers, or bytes, that come before them
    _Alignas(16) char more[LAUNCH_CALL_MORE_BYTES];
};

// Of a kernel node that is added or set: the rest of the call's arguments.
struct launch_node {
    CUgraphNode *made;         // where the driver stores the new node; NULL: one that there is, is set
    CUgraphNode node;          // that one
    CUgraph graph;             // to which one is added
    CUgraphExec exec;          // in which one is set; NULL: in its graph
    const CUgraphNode *after;  // of one that is added, with their edges, which may be NULL
    const CUgraphEdgeData *edges;
    size_t count;
    const void *params;  // as the call has them
};

// Without gaps: the launch hooks fill all members, and nothing is cleared before.
struct launch_call {
    enum driver_id call;  // which way it came
    unsigned grid[3], block[3], shared;
    CUfunction function;  // or a CUkernel; NULL: a graph is launched
    CUgraphExec graph;    // NULL: a kernel is launched
    CUstream stream;
    void **parameters, **extra;      // as the program passes them
    const CUlaunchConfig *config;    // of cuLaunchKernelEx
    const struct kernels_old *old;   // of cuLaunch and its kin: what was set before
    const struct launch_node *node;  // NULL: it is launched
    struct launch_change *change;    // NULL: it is a graph, and cannot be changed
};

// Before anybody is told of the launch.
static inline void launch_change_start(struct launch_change *c, char *room)
{
    c->function = NULL;
    c->room = room;
    c->left = c->counted = c->gathered = false;
    c->count = 0;
}

static inline bool launch_call_is_changed(const struct launch_call *l)
{
    return __builtin_expect(!l->change->left && (l->change->function || l->change->count), 0);
}

// A stream of NULL is the calling thread's own.
static inline bool launch_call_per_thread(const struct launch_call *l)
{
    return driver_calls[l->call].flags & DRIVER_PTSZ;
}

// NULL: the program gave none. Attributes of nodes are set by calls of their own, and are not seen here.
const CUlaunchAttributeValue *launch_call_attribute(const struct launch_call *l, CUlaunchAttributeID id);
bool launch_call_is_cooperative(const struct launch_call *l);
// False, and zeros: the launch asks for no clusters. The kernel may have been compiled or set for some.
bool launch_call_cluster(const struct launch_call *l, unsigned cluster[3]);
// The launch becomes a node of a graph that its stream captures.
bool launch_call_is_captured(const struct launch_call *l);

// The program's parameters as the kernel will read them, valid until the hook returns; without those that
// modes append.
bool launch_call_parameters(const struct launch_call *l, const void **bytes, size_t *size);

// From the mode's launch or node member, for that call only. Another kernel is launched, which takes the same
// parameters and those that are appended. One that is a CUkernel must be known as such (kernels_found). It
// may stand for one kernel of the program's only (kernels_stands_for): by that cuGraphKernelNodeGetParams
// gives back what the program set.
bool launch_call_replace(const struct launch_call *l, const void *function);
// One more parameter behind all others, at the next multiple of its alignment, as a kernel has it that
// declares it last. At most 64 bytes. False: the launch goes on as the program said it, and replaced or
// appended is nothing. Who cannot have a kernel run without its hidden parameters must have kept the
// program's own, and leave that as the function.
bool launch_call_append(const struct launch_call *l, const void *bytes, size_t size, size_t align);

// The driver's call with what was changed, of the same kind as the program's; by cuLaunchKernel for cuLaunch
// and its kin. Of a node: the call that adds or sets it. Not for cuLaunchCooperativeKernelMultiDevice.
CUresult launch_call_go(const struct launch_call *l);
// In a hook: `call` with the program's own arguments, unless a mode has changed something.
#define LAUNCH_CALL_GO(l, call) (launch_call_is_changed(l) ? launch_call_go(l) : (call))
// The members that CUDA_KERNEL_NODE_PARAMS has, in whichever version.
#define LAUNCH_CALL_OF_NODE(p)                                                                \
    .grid = {(p)->gridDimX, (p)->gridDimY, (p)->gridDimZ},                                    \
    .block = {(p)->blockDimX, (p)->blockDimY, (p)->blockDimZ}, .shared = (p)->sharedMemBytes, \
    .parameters = (p)->kernelParams, .extra = (p)->extra

// For cuLaunchCooperativeKernelMultiDevice: the pointers to the parameters with those appended, in `to`,
// which has room for so many. Returns how many were written, -1 if there is no room.
int launch_call_point(const struct launch_call *l, void **to, size_t most);
// It goes on as the program said, and is counted, whatever modes have changed.
void launch_call_leave(const struct launch_call *l);

// What the program knows instead of a kernel that a graph's node has: the kernel itself for most. True: it is
// another.
bool launch_call_own(const void **handle, enum kernels_kind *kind);

#endif
