// SPDX-License-Identifier: MIT
// Handles, contexts, streams, memory and modules of the CPU device, as its files share them.
//
//   devices ── contexts (a primary one, others) ── streams ── operations, in order
//                                                ── modules ── functions, variables
//   libraries are loaded into each context that uses them
//
// Locks, outermost first: capture_lock (captures and graphs), the lock of a context (its lists), memory_lock
// (allocations), the pool's own lock. None of them is held across a call into the application.
#ifndef MOAT_CPU_CPU_H
#define MOAT_CPU_CPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/unsupported.h"
#include "exec/exec.h"

// The driver API is exported and yet bound inside the library: a library that is loaded before ours must not
// intercept our own calls. Include this header before others that declare the driver API.
#pragma GCC visibility push(protected)
#include "driver/cuda_api.h"
#include "driver/driver_fault.h"
#pragma GCC visibility pop

// --- handles (handle.c): a pointer from the application is checked before it is followed -------------------

enum handle_kind {
    HANDLE_CONTEXT = 1,
    HANDLE_MODULE,
    HANDLE_LIBRARY,
    HANDLE_FUNCTION,  // CUfunction
    HANDLE_KERNEL,    // CUkernel
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_POOL,  // CUmemoryPool
    HANDLE_LINK,  // CUlinkState
    HANDLE_GRAPH,
    HANDLE_GRAPH_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_USER_OBJECT,
    HANDLE_IMAGE,  // arrays, and references to textures and surfaces: array.h
};
int handle_add(const void *p, enum handle_kind kind);  // 0 or -ENOMEM
bool handle_is(const void *p, enum handle_kind kind);  // lock-free
void handle_remove(const void *p);

// --- device (device.c) -------------------------------------------------------------------------------------

CUresult device_init(void);   // does the work of cuInit; thread-safe
CUresult device_ready(void);  // CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child
unsigned device_count(void);
unsigned device_sm_count(void);
int device_capability(void);                 // 90
uint64_t device_memory(void);                // bytes that each device claims to have
int device_attribute(CUdevice_attribute a);  // the same on all devices; -1: no such attribute
CUresult device_check(CUdevice device);      // the error of device_ready, or CUDA_ERROR_INVALID_DEVICE

// --- contexts (cpu_context.c) ------------------------------------------------------------------------------

enum { PEER_MOST = 8 };  // NVIDIA's driver has the same limit

// A context is used for several lives. After one has ended its memory stays valid, because threads may still
// have the context on their stacks, and serves a later context.
struct CUctx_st {
    CUdevice device;
    bool primary;
    unsigned flags;
    unsigned long long id;
    atomic_bool alive;                 // false: destroyed, or a primary context that nobody retains
    atomic_uint generation;            // number of its lives; an entry of a thread's stack means one of them
    atomic_uint references;            // counted by cuCtxAttach
    atomic_int error;                  // sticky CUresult: every later call returns it
    struct exec_fault fault;           // cause of the error; valid once error is set
    struct driver_fault fault_report;  // the fault with copies of its texts: the program may be unloaded
    pthread_mutex_t lock;              // guards the lists below
    struct CUstream_st *legacy;
    struct CUstream_st *streams;  // all, including the legacy one, by next_in_context; under the pool's lock
    struct CUmod_st *modules;
    _Atomic size_t limits[16];  // by CUlimit; relaxed: each is independent of the others
    CUfunc_cache cache_config;
    atomic_ullong grid_ids;
    atomic_uint launching;  // calls inside cpu_context_enter
    atomic_uint pending;    // operations that kernels launched, or are about to, and that have not ended
    _Atomic(struct memory_heap *) heap;         // heap of in-kernel malloc; NULL before the first malloc
    atomic_uint capturing, capturing_blocking;  // streams (blocking streams) that are captured; capture.h
    struct coredump *coredump;  // its own settings, or NULL; coredump.c, under that file's lock
    // Ids of contexts that this one may access; peer.c, under the context's lock.
    unsigned long long peers[PEER_MOST];
    struct CUctx_st *next_free;
};

// Stores the calling thread's current context in *out. Returns CUDA_SUCCESS, or the error that the API call
// must return: not initialised, no current context, a destroyed one (*out is NULL), or the sticky error of
// the context (*out is set).
CUresult cpu_context_current(struct CUctx_st **out);
// The same, but the sticky error is ignored: for calls that a program may make after an error, such as
// destroying.
CUresult cpu_context_current_any(struct CUctx_st **out);
// Returns the context that a handle of the application names: the context itself, or the primary context
// below a green context. Returns NULL if the handle is neither.
struct CUctx_st *cpu_context_named(CUcontext handle);
// Ids of green contexts (green_context.c) are never 0 and never used twice. Code that must notice the
// destruction of a green context keeps the id, as the handle may belong to another one by then.
unsigned long long cpu_context_green(void);  // id of the current green context; 0: none is current
// Returns the primary context below a green context, NULL if the handle is no green context. id: receives the
// green context's id; may be NULL.
struct CUctx_st *green_context_base(CUcontext handle, unsigned long long *id);
CUgreenCtx green_context_of(unsigned long long id);                           // NULL: it is destroyed
void cpu_context_fail(struct CUctx_st *ctx, const struct exec_fault *fault);  // the first error sticks
CUresult cpu_context_error_of(enum exec_fault_kind kind);
// Copies a fault and its texts for moat_driver_fault.
void fault_query_keep(struct driver_fault *to, const struct exec_fault *f, CUresult result);
void fault_query_skipped(void *owner, const struct exec_fault *f);  // keeps it for moat_driver_skipped

// Used for primary contexts and for those of cuCtxCreate.
// A call that uses modules of the context is between these two: the context's end waits for it. Returns the
// error of a call in a destroyed context; then the call is not inside. The context may be in error.
CUresult cpu_context_enter(struct CUctx_st *ctx);
void cpu_context_leave(struct CUctx_st *ctx);

CUresult cpu_context_start(struct CUctx_st *ctx, CUdevice device, unsigned flags);  // begins a life
void cpu_context_end(struct CUctx_st *ctx);  // waits for the context's work and frees all it holds
bool cpu_context_flags_valid(unsigned flags);
void cpu_context_limits_init(struct CUctx_st *ctx);
CUresult cpu_context_limit(const struct CUctx_st *ctx, CUlimit limit, size_t *value);
static inline size_t cpu_context_limit_now(const struct CUctx_st *ctx, CUlimit limit)
{
    return atomic_load_explicit(&ctx->limits[limit], memory_order_relaxed);
}

// --- streams (stream.c, event.c, pool.c) -------------------------------------------------------------------

struct CUstream_st;

// Finds the stream that a handle names: NULL and CU_STREAM_LEGACY name the context's legacy stream;
// CU_STREAM_PER_THREAD, and NULL in a per-thread call, name the calling thread's own stream. Checks the
// current context and its sticky error.
CUresult stream_get(CUstream handle, bool per_thread, struct CUstream_st **out);

// Appends an operation to a stream. It runs on a thread of the pool, or on a host thread that waits, after
// everything before it in the stream has ended (and after the operations that the rules of the legacy stream
// put before it). If the context is in error, fn is called with run == false and must only release what arg
// holds. Returns CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_CONTEXT_IS_DESTROYED; or the error of
// capture_refuse while the stream is captured. fn is not called after an error.
typedef void stream_fn(void *arg, bool run);
CUresult stream_push(struct CUstream_st *s, stream_fn *fn, void *arg);
// The same for a function of the application: it is called on the pool's callback thread, where it may block.
CUresult stream_push_callback(struct CUstream_st *s, stream_fn *fn, void *arg);
// Appends a grid to a stream, with the errors of stream_push. done(arg, g) is called once, after the grid has
// ended or was dropped; a fault of the grid has become the context's error by then. began: NULL, or a zeroed
// clock that receives the time when the first block begins.
typedef void grid_done_fn(void *arg, struct exec_grid *g);
struct grid_clock {
    uint64_t wall, cpu;  // ns of the monotonic clock and of the process's CPU clock
};
CUresult stream_push_grid(struct CUstream_st *s, struct exec_grid *g, grid_done_fn *done, void *arg,
                          struct grid_clock *began);
struct grid_clock pool_clock(void);  // the time now

// Wait for the stream's or the context's work, running operations meanwhile, then flush the output of
// kernels. Return the context's error, if any.
CUresult stream_wait(struct CUstream_st *s);
CUresult cpu_context_wait(struct CUctx_st *ctx);
bool cpu_context_idle(struct CUctx_st *ctx);  // whether nothing was queued or running a moment ago

CUresult stream_context_init(struct CUctx_st *ctx);  // makes the legacy stream
void stream_context_free(struct CUctx_st *ctx);      // waits for all streams and frees them

// --- memory (memory_*.c) -----------------------------------------------------------------------------------

// Device memory for internal use (module variables, parameters): zeroed, readable and writable by kernels, in
// no allocation that the application can see, charged to the calling thread's device. Returns 0 if out of
// memory. No kernel may use it when it is freed.
uint64_t memory_internal_alloc(uint64_t size, uint64_t align);
// The same at an address that the host can dereference too: for managed variables.
uint64_t memory_internal_managed(uint64_t size, uint64_t align);
void memory_internal_free(uint64_t addr);
void memory_internal_protect(uint64_t addr, uint64_t size, bool writable);  // whole 4 KiB pages
// Module variables that the application may copy to and query are tracked with their exact bounds.
int memory_track_variable(struct CUctx_st *ctx, uint64_t addr, uint64_t size, bool managed);
void memory_untrack_variable(uint64_t addr);
// In-kernel malloc and free, called as exec_host calls them. The context's heap is made at the first use and
// has the size of CU_LIMIT_MALLOC_HEAP_SIZE.
void memory_heap_alloc(struct CUctx_st *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at);
uint32_t memory_heap_free(struct CUctx_st *ctx, uint32_t lanes, const uint64_t *at);
// Returns whether a pointer that could not be freed is where a block was before: it was freed twice. A place
// for a block that was never allocated counts too.
bool memory_heap_was_block(struct CUctx_st *ctx, uint64_t at);
bool memory_heap_place(struct CUctx_st *ctx, uint64_t *base, uint64_t *size);  // false: there is no heap yet
void memory_context_free(struct CUctx_st *ctx);  // frees what a destroyed context still holds

// --- output (output.c): printf and assert of kernels ---------------------------------------------------

void output_append(const char *text, size_t len);  // from any thread
void output_flush(void);                           // writes to standard output; called where the host waits

// --- modules (module.c, library.c, launch.c) ---------------------------------------------------------------

struct CUmod_st;  // module.h

void module_context_free(struct CUctx_st *ctx);  // none of its kernels may be running
void coredump_context_free(struct CUctx_st *ctx);

#endif
