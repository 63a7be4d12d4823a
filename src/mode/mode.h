// SPDX-License-Identifier: MIT
// A mode is a table of functions, one for each event that it may observe or decide. The hooks (src/hook) call
// the mode_* functions below, which call every mode that is on; the hooks name no mode.
//
// A mode is a folder with a `const struct mode SYMBOL_mode` and a row in base/modes.def. Every member may be
// NULL: the mode is not interested. Members are called on the program's threads, with no lock of moat's held
// unless a comment says so.
#ifndef MOAT_MODE_MODE_H
#define MOAT_MODE_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/context.h"
#include "driver/driver.h"
#include "rewrite/rewrite.h"

struct launch_call;

// An allocation that the program requests. The stream of MODE_POOL is not being captured.
enum mode_kind { MODE_PLAIN, MODE_PITCH, MODE_MANAGED, MODE_HOST, MODE_POOL };
struct mode_alloc {
    enum mode_kind kind;
    size_t size;            // for all kinds but MODE_PITCH
    size_t width, height;   // for MODE_PITCH
    size_t *pitch;          // for MODE_PITCH: where the mode stores the pitch
    unsigned element;       // for MODE_PITCH
    const unsigned *flags;  // for MODE_MANAGED and MODE_HOST; NULL: cuMemAllocHost
    CUmemoryPool pool;      // for MODE_POOL; NULL: the device's current pool
    CUstream stream;        // for MODE_POOL
    bool per_thread;        // for MODE_POOL: the handle means the calling thread's stream
};

// A free that the program requests.
enum mode_way { MODE_FREE, MODE_FREE_HOST, MODE_FREE_IN_ORDER };
struct mode_free {
    enum mode_way way;
    uint64_t pointer;
    enum driver_id call;
    CUstream stream;  // for MODE_FREE_IN_ORDER
    bool per_thread;
    bool captured;  // the free becomes part of a graph
};

// What calls say of the order of streams.
enum mode_order {
    MODE_ORDER_RECORD,    // of an event
    MODE_ORDER_EVENT,     // a stream or the host waits for an event, or knows that it has happened
    MODE_ORDER_ALL,       // nothing is known of it: all work so far may be in order with all later work
    MODE_ORDER_GRAPHICS,  // the same, and memory of a graphics API comes or goes
    MODE_ORDER_ENDED,     // all work so far has ended
    MODE_ORDER_NEVER,     // later work too may be in any order: a stream waits for words in memory
};

// What an address is: inside a buffer that a mode placed, in the surroundings of one, or neither.
enum mode_what { MODE_NOT_OURS, MODE_BUFFER, MODE_AROUND };
struct mode;
struct mode_answer {
    const struct mode *mode;  // the mode that placed it; NULL: none
    uint64_t base, size;      // of the buffer
    bool mapped;              // the driver knows it as mapped memory: context, pool and shareable are valid
    CUcontext context;
    CUmemoryPool pool;
    bool shareable;  // by cuIpcGetMemHandle
};

// What kernels use by a handle.
enum mode_object { MODE_TEXTURE, MODE_SURFACE };
// The tensor that a map was encoded for. The box of a map by columns is channels, pixels, 1, 1, 1, and its
// steps are NULL.
struct mode_tensor {
    CUtensorMapDataType type;
    uint32_t rank;
    uint64_t address;
    const cuuint64_t *dims, *strides;
    const cuuint32_t *box, *steps;
    bool by_columns;
    bool replaced;  // only the address, the bytes and the box are known
    uint32_t span;  // bytes between two rows of the box in shared memory, if they are longer
};

struct mode {
    bool checks_kernels;  // errors that kernels make with memory are found
    // It rewrites modules, but the program's own kernels in them need no `launch` of the mode.
    bool keeps_kernels;

    // The process. start is called when the options are read and the driver is open; it returns false if the
    // mode cannot work, and has reported why.
    bool (*start)(void);
    void (*after_fork)(void);  // in the child, which has one thread; initialises locks anew
    void (*end)(void);         // the process ends, and the driver is unloaded
    void (*aborts)(void);      // the program calls abort: a last scan, which must not wait for ever

    // Memory. alloc and free return false if the driver's own call must be made; if they return true, *r is
    // the program's result.
    bool (*alloc)(const struct mode_alloc *a, uint64_t *pointer, CUresult *r);
    void (*made_elsewhere)(void);  // the program has memory that no mode can place
    bool (*free)(const struct mode_free *f, CUresult *r);
    enum mode_what (*ask)(uint64_t address, struct mode_answer *answer);
    // Called when the driver is out of memory. Releases what the mode holds, without waiting for kernels if
    // `at_once`. Returns true if the call should be tried again.
    bool (*reclaim)(bool at_once);
    uint64_t (*held)(void);  // bytes of the current context that reclaim would release
    // cuIpcGetMemHandle: share for a pointer that `ask` has answered for, shares_plain for any other.
    CUresult (*share)(const struct mode_answer *answer, CUdeviceptr pointer, CUipcMemHandle *handle);
    void (*shares_plain)(void);
    // A device was given access to the memory of ctx's context, which is current.
    void (*peer)(struct context *ctx, const CUmemAccessDesc *desc);
    void (*pool_made)(CUmemoryPool pool, const CUmemPoolProps *props);
    void (*pool_ends)(CUmemoryPool pool);  // before the driver's call
    void (*pool_gone)(CUmemoryPool pool);  // after it
    void (*pool_opened)(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count);

    // Contexts. context_last_look: the context will end, as far as is known; no lock is held, so a mode may
    // wait for its kernels. The others are called with LOCK_CONTEXT_ENDS held: context_ends before the
    // driver's call, and after it context_stays or context_gone.
    void (*context_last_look)(CUcontext context);
    void (*context_ends)(CUcontext context, enum driver_id call);
    void (*context_stays)(CUcontext context);
    void (*context_gone)(CUcontext context);
    void (*limit_set)(CUlimit limit);  // in the current context
    // Returns whether the current context has another limit than the program has set, which is then stored.
    bool (*limit)(CUlimit limit, size_t *value);

    // Handles. object: one was made in the current context, or the driver is about to destroy it.
    void (*object)(enum mode_object what, uint64_t handle, bool made);
    void (*tensor)(const CUtensorMap *map, const struct mode_tensor *tensor);

    // Modules and libraries. plan decides whether, and how, an image is rewritten (rewrite.h). module_loaded:
    // it was. module_left: the plan wanted it, but the image runs unchanged.
    void (*plan)(const struct rewrite_origin *origin, struct rewrite_plan *plan);
    void (*input_left)(const struct rewrite_origin *origin);  // an input of a link is linked unchanged
    void (*module_loaded)(const struct rewrite_module *module);
    void (*module_left)(const struct rewrite *r);
    // The driver has loaded a module or library, rewritten or not. The same thread's last plan was for
    // its image, if there was one.
    void (*module_made)(const void *handle);
    void (*module_ends)(const void *handle);   // before the driver's call
    void (*module_stays)(const void *handle);  // after it, if the driver refused
    void (*module_gone)(const void *handle);   // after it
    // the current context; module may be NULL
    void (*library_in_context)(const void *library, CUmodule module);
    void (*function_found)(const void *handle, const void *owner, const char *name);
    void (*function_of)(CUfunction function, CUkernel kernel);  // cuKernelGetFunction
    // Returns the n-th kernel, from 0, that the mode may launch in place of this one; NULL: no more.
    const void *(*variant)(const void *handle, unsigned n);

    // Launches and waits.
    // Called before the driver's call; they may change the launch (launch_call.h).
    void (*launch)(const struct launch_call *launch);  // kernels, also captured ones, and graphs
    void (*node)(const struct launch_call *node);      // a kernel node of a graph is added or set
    void (*node_set)(const struct launch_call *node);  // it was, with the changes
    void (*node_ends)(CUgraphNode node);               // before the driver's call
    // Executable graphs. graph_made: one was instantiated. graph_updated: all its nodes were set from another
    // graph, or those of a child node's graph; child is NULL for all. graph_ends: the program destroys a
    // graph; returns true if the mode needs it for an executable one, and then *r is the program's result.
    // exec_ends: before an executable graph is destroyed; returns a graph to be destroyed after it, or NULL.
    void (*graph_made)(CUgraphExec exec, CUgraph graph, unsigned long long flags);
    void (*graph_updated)(CUgraphExec exec, CUgraphNode child, CUgraph from);
    bool (*graph_ends)(CUgraph graph, CUresult *r);
    CUgraph (*exec_ends)(CUgraphExec exec);
    void (*poll)(void);  // the program launches, waits or queries: a chance for deferred work
    // ended: launches known to have ended; 0: not all have
    void (*waited)(enum driver_id call, uint64_t ended);

    // A call may give the work of streams an order, or let the host know that work has ended. Called before
    // or after the driver's call, or both, also if it fails.
    void (*order)(enum mode_order what);

    void (*summarise)(void);  // adds to the guard's counts before the summary is sent
};

struct mode_row {
    const struct mode *mode;
    unsigned option;  // OPTION_MODE_*: the bit that turns the mode on
};

// Starts the modes that the options name, in the order of the rows.
void mode_start(const struct mode_row *rows, unsigned count);
extern bool mode_any;       // a mode is on; set by mode_start
bool mode_allocates(void);  // a mode that is on places buffers
bool mode_checks_kernels(void);
bool mode_can_pause(void);  // kernels that are launched without mode_launch do what the program wants

// Each calls the member of that name in every mode that is on; for a member that returns a decision, the
// first mode that answers decides.
void mode_after_fork(void);
void mode_end(void);
void mode_aborts(void);
bool mode_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r);
void mode_made_elsewhere(void);
bool mode_free(const struct mode_free *f, CUresult *r);
enum mode_what mode_ask(uint64_t address, struct mode_answer *answer);
bool mode_reclaim(bool at_once);
uint64_t mode_held(void);
void mode_shares_plain(void);
void mode_peer(struct context *ctx, const CUmemAccessDesc *desc);
void mode_pool_made(CUmemoryPool pool, const CUmemPoolProps *props);
void mode_pool_ends(CUmemoryPool pool);
void mode_pool_gone(CUmemoryPool pool);
void mode_pool_opened(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count);
void mode_context_last_look(CUcontext context);
void mode_context_ends(CUcontext context, enum driver_id call);
void mode_context_stays(CUcontext context);
void mode_context_gone(CUcontext context);
void mode_limit_set(CUlimit limit);
bool mode_limit(CUlimit limit, size_t *value);
void mode_object(enum mode_object what, uint64_t handle, bool made);
void mode_tensor(const CUtensorMap *map, const struct mode_tensor *tensor);
void mode_module_made(const void *handle);
void mode_module_ends(const void *handle);
void mode_module_stays(const void *handle);
void mode_module_gone(const void *handle);
void mode_library_in_context(const void *library, CUmodule module);
void mode_function_found(const void *handle, const void *owner, const char *name);
void mode_function_of(CUfunction function, CUkernel kernel);
const void *mode_variant(const void *handle, unsigned n);
void mode_launch(const struct launch_call *launch);
void mode_node(const struct launch_call *node);
void mode_node_set(const struct launch_call *node);
void mode_node_ends(CUgraphNode node);
void mode_graph_made(CUgraphExec exec, CUgraph graph, unsigned long long flags);
void mode_graph_updated(CUgraphExec exec, CUgraphNode child, CUgraph from);
bool mode_graph_ends(CUgraph graph, CUresult *r);
CUgraph mode_exec_ends(CUgraphExec exec);
void mode_poll(void);
void mode_waited(enum driver_id call, uint64_t ended);
extern bool mode_orders;  // a mode that is on is interested in the order of streams; set by mode_start
void mode_order_all(enum mode_order what);
static inline void mode_order(enum mode_order what)
{
    if (__builtin_expect(mode_orders, 0))
        mode_order_all(what);
}
void mode_summarise(void);

#endif
