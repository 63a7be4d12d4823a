// SPDX-License-Identifier: MIT
// What the files of the CPU device share: handles, contexts, streams and how work is put into them.
//
//   devices ── contexts (a primary one, others) ── streams ── operations, in order
//                                                ── modules ── functions, variables
//   libraries are loaded into each context that uses them
//
// Locks, outermost first: capture_lock (captures and graphs), cpu_context_lock (lists of a context), memory_lock
// (allocations), pool's own. None is held across a call into the application.
#ifndef MOAT_CPU_CPU_H
#define MOAT_CPU_CPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/unsupported.h"
#include "exec/exec.h"

// Exported, and bound inside the library: a library that is put before ours must not catch our own calls. Include
// this header before others that declare the driver API.
#pragma GCC visibility push(protected)
#include "driver/cuda_api.h"
#include "driver/driver_fault.h"
#pragma GCC visibility pop

// --- handles (handle.c): what the application passes is checked before it is followed -------------------------

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

// --- device (device.c) ----------------------------------------------------------------------------------------

CUresult device_init(void);   // what cuInit does; thread-safe
CUresult device_ready(void);  // CUDA_ERROR_NOT_INITIALIZED before cuInit, and in a forked child
unsigned device_count(void);
unsigned device_sm_count(void);
int device_capability(void);                 // 90
uint64_t device_memory(void);                // bytes that each pretends to have
int device_attribute(CUdevice_attribute a);  // that all have alike; -1: no such attribute
CUresult device_check(CUdevice device);      // device_ready, or CUDA_ERROR_INVALID_DEVICE

// --- contexts (cpu_context.c) -------------------------------------------------------------------------------------

enum { PEER_MOST = 8 };  // as many as NVIDIA's driver allows

// One whose life has ended stays as memory, for threads that still have it on their stacks, and is used again.
struct CUctx_st {
    CUdevice device;
    bool primary;
    unsigned flags;
    unsigned long long id;
    atomic_bool alive;         // false: destroyed, or the primary context while nobody retains it
    atomic_uint generation;    // counts its lives; a thread's stack remembers which one it means
    atomic_uint references;    // of cuCtxAttach
    atomic_int error;          // CUresult that sticks: every later call returns it
    struct exec_fault fault;   // what caused it; valid once error is set
    struct driver_fault told;  // the same, with texts of its own: the program may be gone
    pthread_mutex_t lock;      // the lists below
    struct CUstream_st *legacy;
    struct CUstream_st *streams;  // all, the legacy one included, by next_in_context; under the pool's lock
    struct CUmod_st *modules;
    _Atomic size_t limits[16];  // by CUlimit; relaxed, each a number of its own
    CUfunc_cache cache_config;
    atomic_ullong grid_ids;
    atomic_uint pending;                 // what kernels have launched, or are about to, and has not ended
    _Atomic(struct memory_heap *) heap;  // of kernels' malloc; NULL before the first
    atomic_uint capturing, capturing_blocking;  // streams that do; capture.h
    struct coredump *coredump;            // its settings, where they are its own; coredump.c, under its lock
    unsigned long long peers[PEER_MOST];  // ids of contexts that it may access; peer.c, under its lock
    struct CUctx_st *next_free;
};

// The calling thread's current context. Not initialised, no context, or in error: the code that the call must
// return, and *out is NULL (in error: it is set all the same).
CUresult cpu_context_current(struct CUctx_st **out);
// As that, of which no sticky error counts: for what a program may still do, such as destroying.
CUresult cpu_context_current_any(struct CUctx_st **out);
// What the application means by a handle: a context, or the primary one that a green context stands on. NULL: neither.
struct CUctx_st *cpu_context_named(CUcontext handle);
// Of green contexts (green_context.c) no id is used twice, and none is 0. What is to notice that one is destroyed keeps its
// id: the handle may be another one's by then.
unsigned long long cpu_context_green(void);  // the id of the one that is current, 0: none is
// NULL: it is no green context. id: NULL, or where its goes.
struct CUctx_st *green_context_base(CUcontext handle, unsigned long long *id);
CUgreenCtx green_context_of(unsigned long long id);                           // NULL: it is destroyed
void cpu_context_fail(struct CUctx_st *ctx, const struct exec_fault *fault);  // the first one sticks
CUresult cpu_context_error_of(enum exec_fault_kind kind);
// For whoever asks through moat_driver_fault.
void fault_query_keep(struct driver_fault *to, const struct exec_fault *f, CUresult result);

// What the primary context shares with others.
CUresult cpu_context_start(struct CUctx_st *ctx, CUdevice device, unsigned flags);  // a life begins
void cpu_context_end(struct CUctx_st *ctx);  // waits for its work and frees what it holds
bool cpu_context_flags_valid(unsigned flags);
void cpu_context_limits_init(struct CUctx_st *ctx);
CUresult cpu_context_limit(const struct CUctx_st *ctx, CUlimit limit, size_t *value);
static inline size_t cpu_context_limit_now(const struct CUctx_st *ctx, CUlimit limit)
{
    return atomic_load_explicit(&ctx->limits[limit], memory_order_relaxed);
}

// --- streams (stream.c, event.c, pool.c) ------------------------------------------------------------------------

struct CUstream_st;

// What the application's handle means: NULL and CU_STREAM_LEGACY the context's legacy stream (NULL in a per-thread
// call, and CU_STREAM_PER_THREAD, the calling thread's own). Checks the current context and its sticky error.
CUresult stream_get(CUstream handle, bool per_thread, struct CUstream_st **out);

// Puts work at the end of a stream. It runs on a thread of the pool, or on one that waits, when everything before
// it in the stream has ended (and, between the legacy stream and blocking streams, when theirs has). When the
// context is in error, fn is called with run == false: only to release what arg holds. CUDA_SUCCESS or
// CUDA_ERROR_OUT_OF_MEMORY, or that the context has been destroyed: then fn is not called at all.
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while capturing.
typedef void stream_fn(void *arg, bool run);
CUresult stream_push(struct CUstream_st *s, stream_fn *fn, void *arg);
// fn is the application's: called on a thread of the pool that may block.
CUresult stream_push_callback(struct CUstream_st *s, stream_fn *fn, void *arg);
// Runs a grid; done(arg, ...) is called once it has ended or was dropped, after a fault has been made the context's.
typedef void grid_done_fn(void *arg, struct exec_grid *g);
// began: where to note when its first block begins; zeroed, or NULL.
struct grid_clock {
    uint64_t wall, cpu;  // ns, of the monotonic clock and of the process's
};
CUresult stream_push_grid(struct CUstream_st *s, struct exec_grid *g, grid_done_fn *done, void *arg,
                          struct grid_clock *began);
struct grid_clock pool_clock(void);  // now

// Wait, helping with the work; then print what kernels printed. The context's error, if any.
CUresult stream_wait(struct CUstream_st *s);
CUresult cpu_context_wait(struct CUctx_st *ctx);
bool cpu_context_idle(struct CUctx_st *ctx);  // nothing queued or running, a moment ago

CUresult stream_context_init(struct CUctx_st *ctx);  // makes the legacy stream
void stream_context_free(struct CUctx_st *ctx);      // waits for all streams and frees them

// --- memory (memory_*.c) ---------------------------------------------------------------------------------------

// Device memory for our own use (module variables, parameters): zeroed, readable and writable by kernels, of no
// allocation that the application can see; of the calling thread's device. 0 when out of memory. Safe to free when no kernel uses it.
uint64_t memory_internal_alloc(uint64_t size, uint64_t align);
// The same at an address that the host may follow, too: for managed variables.
uint64_t memory_internal_managed(uint64_t size, uint64_t align);
void memory_internal_free(uint64_t addr);
void memory_internal_protect(uint64_t addr, uint64_t size, bool writable);  // whole 4 KiB pages
// Module variables that the application may copy to and query: tracked with their exact bounds.
int memory_track_variable(struct CUctx_st *ctx, uint64_t addr, uint64_t size, bool managed);
void memory_untrack_variable(uint64_t addr);
// In-kernel malloc and free, on a heap of the context's CU_LIMIT_MALLOC_HEAP_SIZE, made at first use.
// As exec_host's.
void memory_heap_alloc(struct CUctx_st *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at);
uint32_t memory_heap_free(struct CUctx_st *ctx, uint32_t lanes, const uint64_t *at);
void memory_context_free(struct CUctx_st *ctx);  // what a destroyed context still holds

// --- output (output.c): printf and assert of kernels -------------------------------------------------------------

void output_append(const char *text, size_t len);  // from any thread
void output_flush(void);                           // to standard output; called where the host waits

// --- modules (module.c, library.c, launch.c) ---------------------------------------------------------------------

struct CUmod_st;  // module.h

void module_context_free(struct CUctx_st *ctx);  // no kernel of it may be running
void coredump_context_free(struct CUctx_st *ctx);

#endif
