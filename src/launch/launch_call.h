// SPDX-License-Identifier: MIT
// A launch on its way to the driver, or a kernel node of a graph. Whichever call the program made, modes see
// it here, and may have another kernel launched or additional parameters passed.
//
// The struct holds what the program passed and takes few stores. What costs more is computed on demand:
// parameters as bytes, attributes, clusters. As long as no mode changes anything, the hook passes the
// program's own arguments to the driver.
//
// No memory is allocated: the bytes lie in the hook's frame, LAUNCH_CALL_ROOM of them. That is what CUDA
// allows on all GPUs plus what modes may append; newer GPUs take 32,764. A kernel with more bytes, or whose
// parameters are unknown (kernels_layout), is launched unchanged and counted (GUARD_LAUNCHES_LEFT), and the
// functions below return false.
#ifndef MOAT_LAUNCH_LAUNCH_CALL_H
#define MOAT_LAUNCH_LAUNCH_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/kernels.h"
#include "driver/driver.h"

enum {
    LAUNCH_CALL_MORE = 8,           // most parameters that all modes together can append to a launch ...
    LAUNCH_CALL_MORE_BYTES = 2048,  // ... and their bytes, including padding
    LAUNCH_CALL_ROOM = 4096 + LAUNCH_CALL_MORE_BYTES,
};

// What modes change in a launch. Only the functions below write it.
struct launch_change {
    const void *function;  // launched instead, a CUfunction or CUkernel; NULL: the program's own
    char *room;            // LAUNCH_CALL_ROOM bytes, aligned to 16
    bool left;             // the launch cannot be changed
    CUresult refused;      // the launch is not made, and this is its result; CUDA_SUCCESS: it is made
    bool counted;          // in GUARD_LAUNCHES_LEFT
    bool gathered;         // room holds the program's parameters
    uint8_t count;         // appended parameters: size[i] bytes at more + at[i]
    uint16_t at[LAUNCH_CALL_MORE], size[LAUNCH_CALL_MORE], align[LAUNCH_CALL_MORE];
    uint32_t own;  // if parameters are appended: the program's pointers, or bytes, that come before them
    _Alignas(16) char more[LAUNCH_CALL_MORE_BYTES];
};

// The other arguments of a call that adds or sets a kernel node.
struct launch_node {
    CUgraphNode *made;         // where the driver stores a new node; NULL: an existing node is set
    CUgraphNode node;          // the existing node
    CUgraph graph;             // the graph that a node is added to
    CUgraphExec exec;          // in which a node is set; NULL: in its graph
    const CUgraphNode *after;  // dependencies of a new node, with their edges, which may be NULL
    const CUgraphEdgeData *edges;
    size_t count;
    const void *params;  // as the program passed them
};

// Without padding: the launch hooks fill all members, and do not clear the struct first.
struct launch_call {
    enum driver_id call;  // the call that the program made
    unsigned grid[3], block[3], shared;
    CUfunction function;  // or a CUkernel; NULL: a graph is launched
    CUgraphExec graph;    // NULL: a kernel is launched
    CUstream stream;
    void **parameters, **extra;      // as the program passed them
    const CUlaunchConfig *config;    // of cuLaunchKernelEx
    const struct kernels_old *old;   // of cuLaunch and its kin: what earlier calls have set
    const struct launch_node *node;  // NULL: a launch
    struct launch_change *change;    // NULL: a graph, which cannot be changed
};

// Initialises the change before modes see the launch.
static inline void launch_change_start(struct launch_change *c, char *room)
{
    c->function = NULL;
    c->room = room;
    c->left = c->counted = c->gathered = false;
    c->refused = CUDA_SUCCESS;
    c->count = 0;
}

static inline bool launch_call_is_changed(const struct launch_call *l)
{
    const struct launch_change *c = l->change;
    return __builtin_expect(c->refused || (!c->left && (c->function || c->count)), 0);
}

// Returns whether a stream of NULL means the calling thread's default stream.
static inline bool launch_call_per_thread(const struct launch_call *l)
{
    return driver_calls[l->call].flags & DRIVER_PTSZ;
}

// Returns NULL if the program did not pass the attribute. Attributes of nodes are set by calls of their own,
// and are not seen here.
const CUlaunchAttributeValue *launch_call_attribute(const struct launch_call *l, CUlaunchAttributeID id);
bool launch_call_is_cooperative(const struct launch_call *l);
// Returns whether all blocks of a launch can run at once if a variant is launched.
bool launch_call_fits_together(const struct launch_call *l, const void *variant);
// Returns false, and zeros, if the launch does not request clusters. The kernel may still have been compiled
// or configured for clusters.
bool launch_call_cluster(const struct launch_call *l, unsigned cluster[3]);
// Returns whether the launch becomes a node of a graph that its stream captures.
bool launch_call_is_captured(const struct launch_call *l);

// Provides the program's parameters as the kernel will read them, without those that modes append. They are
// valid until the hook returns.
bool launch_call_parameters(const struct launch_call *l, const void **bytes, size_t *size);

// Provides parameter number i of the layout, which has the size of a pointer, without gathering the others.
// Returns false if it cannot be read.
bool launch_call_word(const struct launch_call *l, const struct kernels_layout *layout, uint32_t i,
                      uint64_t *value);

// Has another kernel launched, which takes the same parameters and the appended ones. Call it from a mode's
// launch or node member; it is valid for that call only. A CUkernel must be known as one (kernels_found). A
// kernel may replace one kernel of the program only (kernels_stands_for), so that cuGraphKernelNodeGetParams
// can return what the program set.
bool launch_call_replace(const struct launch_call *l, const void *function);
// Appends a parameter at the next multiple of its alignment, as in a kernel that declares
// it last. If it returns false, the launch is made unchanged: nothing is replaced or appended. A mode whose
// kernel cannot run without its hidden parameters must keep the program's own kernel loaded, as the function
// that is launched then.
bool launch_call_append(const struct launch_call *l, const void *bytes, size_t size, size_t align);

// Has the driver's call not made: it returns r instead. Graphs cannot be refused.
void launch_call_refuse(const struct launch_call *l, CUresult r);

// Makes the driver's call with the changes, of the same kind as the program's; cuLaunchKernel replaces
// cuLaunch and its kin. For a node it is the call that adds or sets it. Not for
// cuLaunchCooperativeKernelMultiDevice.
CUresult launch_call_go(const struct launch_call *l);
// For hooks: evaluates `call`, with the program's own arguments, unless a mode has changed something.
#define LAUNCH_CALL_GO(l, call) (launch_call_is_changed(l) ? launch_call_go(l) : (call))
// The members that all versions of CUDA_KERNEL_NODE_PARAMS have.
#define LAUNCH_CALL_OF_NODE(p)                                                                \
    .grid = {(p)->gridDimX, (p)->gridDimY, (p)->gridDimZ},                                    \
    .block = {(p)->blockDimX, (p)->blockDimY, (p)->blockDimZ}, .shared = (p)->sharedMemBytes, \
    .parameters = (p)->kernelParams, .extra = (p)->extra

// For cuLaunchCooperativeKernelMultiDevice: stores the pointers to the program's and the appended parameters
// in `to`, at most `most`. Returns how many were stored, or -1 if there is no room.
int launch_call_pointers(const struct launch_call *l, void **to, size_t most);
// Has the launch made unchanged, and counts it, whatever modes have changed.
void launch_call_leave(const struct launch_call *l);

// Replaces the kernel of a graph's node by the one that the program knows. Returns false if they are the
// same, as for most.
bool launch_call_own(const void **handle, enum kernels_kind *kind);

#endif
