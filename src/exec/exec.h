// SPDX-License-Identifier: MIT
// Executes PTX on the CPU.
//
//   program ── PTX modules, linked: kernels, functions, variables; decoded once, read by all threads
//   grid    ── one launch: blocks that are waiting, running or suspended
//   runner  ── a thread that runs blocks: what it keeps from block to block
//
// Nothing here knows of streams, contexts or the driver API: src/cpu does.
#ifndef MOAT_EXEC_EXEC_H
#define MOAT_EXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/str.h"

// --- programs -----------------------------------------------------------------------------------------------

enum exec_variable_kind { EXEC_GLOBAL, EXEC_CONST, EXEC_MANAGED, EXEC_TEXREF, EXEC_SURFREF };

// What a program asks of whoever loads it. All may be called from any thread.
struct exec_host {
    void *ctx;
    // Memory for a module variable: its device address, readable and writable by kernels (EXEC_CONST: readable),
    // zeroed; 0 when out of memory. It stays until the loader frees it after exec_program_free.
    uint64_t (*place)(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align);
    // malloc and free of a warp: bit i of lanes tells whether element i is asked for. at[i] becomes 0 when out of memory.
    void (*heap_alloc)(void *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at);
    // As if lane by lane, from the lowest. Frees of 0 do nothing. Returns the lanes whose pointer malloc did not give.
    uint32_t (*heap_free)(void *ctx, uint32_t lanes, const uint64_t *at);
    // Text of printf and of a failed assert.
    void (*print)(void *ctx, const char *text, size_t len);
};

struct exec_text {
    const char *name;  // for messages
    struct str ptx;    // need not outlive exec_load
};

struct exec_param {
    uint32_t offset, size, align;
};

struct exec_kernel {
    struct str name;
    struct exec_program *program;
    uint32_t nparams, param_size;  // param_size: bytes of all, padding included
    const struct exec_param *params;
    uint32_t shared_size;          // static, with alignment; starts behind what the system reserves
    uint32_t local_size;           // bytes per thread of the kernel and what it calls, without recursion
    uint32_t nregs;                // as a GPU's compiler might have used; 16 to 255
    uint32_t max_registers;        // that .maxnreg, .minnctapersm and .maxntid leave a thread; 16 to 255
    uint32_t max_threads;          // from .maxntid or .reqntid, else 1024
    uint32_t required_block[3];    // from .reqntid; 0: any
    uint32_t required_cluster[3];  // from .reqnctapercluster; 0: any
    bool needs_cluster;            // .explicitcluster: it is launched with clusters only
    uint32_t const_size;
    int ptx_version;  // 90 for sm_90: of .target
    bool recursive;   // needs a stack of a size that nobody knows
};

struct exec_variable {
    struct str name;
    uint64_t address, size;
    uint8_t kind;  // enum exec_variable_kind
};

struct exec_program;

// Parses, links (by name: what one text declares .extern another defines), checks and decodes. Reports what is
// wrong to sink with its place. 0, or
//   -EINVAL   malformed PTX                            -ENOTSUP  an instruction that we do not execute
//   -ENOENT   a symbol that nothing defines            -EEXIST   a symbol that two texts define
//   -ENOMEM
int exec_load(const struct exec_text *texts, unsigned ntexts, const struct exec_host *host,
              struct diag_sink *sink, struct exec_program **out);
void exec_program_free(struct exec_program *p);  // no grid of it may be left

unsigned exec_kernel_count(const struct exec_program *p);
const struct exec_kernel *exec_kernel(const struct exec_program *p, unsigned i);
const struct exec_kernel *exec_find_kernel(const struct exec_program *p, struct str name);  // NULL if absent
unsigned exec_variable_count(const struct exec_program *p);
const struct exec_variable *exec_variable(const struct exec_program *p, unsigned i);
const struct exec_variable *exec_find_variable(const struct exec_program *p, struct str name);
// A .texref or .surfref: no variable for the host, but memory that holds a handle of texture.h, 0 at first.
const struct exec_variable *exec_find_reference(const struct exec_program *p, struct str name);

// --- launches -----------------------------------------------------------------------------------------------

// A box of bytes that a kernel has copied or filled: rows of width bytes, height of them in a slice, depth slices.
struct exec_copy {
    uint64_t to, to_pitch, to_slice;  // from row to row, and from slice to slice
    uint64_t from, from_pitch, from_slice;
    uint64_t width, height, depth;
    bool fill;  // with the byte that `from` is
};

enum exec_question {
    EXEC_ASK_DEVICE,   // the device's number
    EXEC_ASK_DEVICES,  // how many there are
    EXEC_ASK_VERSION,  // of the driver API
    EXEC_ASK_LIMIT,    // which: as the driver API counts limits
    EXEC_ASK_CACHE_CONFIG,
    EXEC_ASK_SHARED_CONFIG,
};

// Errors that a kernel gets are the runtime API's: numbers that the driver API has too, and these.
enum {
    EXEC_INVALID_PITCH = 12,
    EXEC_TOO_MANY_PENDING = 69,
    EXEC_INVALID_FUNCTION = 98,
};

// Handles of streams and events that kernels make are multiples of this.
enum { EXEC_HANDLE_STEP = 16 };

// What a kernel may ask of whoever launched it. Called with the launch's owner, from any thread. block: the number in its
// grid of the block that asks; stream: as the device's API has it.
struct exec_children {
    // Memory for the parameters of a kernel that is to be launched like that.
    int (*prepare)(void *owner, const struct exec_kernel *k, const uint32_t grid[3], const uint32_t block[3],
                   uint32_t shared, uint64_t *params);
    int (*launch)(void *owner, uint64_t params, uint64_t stream, uint64_t block);  // what was prepared
    int (*launch_graph)(void *owner, uint64_t graph, uint64_t stream);
    uint64_t (*current_graph)(void *owner);  // that the kernel is a node of; 0: none
    int (*copy)(void *owner, const struct exec_copy *c, uint64_t stream, uint64_t block);
    // The event stands for what is in the stream now; or the stream waits for what the event stands for.
    int (*record)(void *owner, uint64_t event, uint64_t stream, uint64_t block);
    int (*await)(void *owner, uint64_t event, uint64_t stream, uint64_t block);
    int (*ask)(void *owner, enum exec_question question, int which, uint64_t *value);
    int (*attribute)(void *owner, int which, int device, int *value);
    // Of a kernel: as the driver API counts attributes; and how many of its blocks a multiprocessor takes.
    int (*function)(void *owner, const struct exec_kernel *k, int which, int *value);
    int (*occupancy)(void *owner, const struct exec_kernel *k, int threads, uint64_t shared, int *blocks);
    uint64_t (*error_text)(void *owner, int error, bool name);  // the address of a string; 0: no memory
};

struct exec_launch {
    const struct exec_children *children;  // NULL: it can launch nothing
    void *owner;
    const struct exec_kernel *kernel;
    uint32_t grid[3], block[3];  // checked by the caller: not 0, block within the device's limits
    uint32_t cluster[3];         // 0: none. Each divides the grid's; at most 16 blocks
    uint32_t dynamic_shared;
    uint32_t stack_size;  // bytes of local memory per thread for recursion and alloca (the limit STACK_SIZE)
    bool cooperative;
    uint64_t grid_id;
    uint64_t params;  // device address of kernel->param_size bytes; the caller keeps them until the grid ends
    uint64_t workspace;      // cooperative: device address of 64 zeroed bytes for grid barriers, else 0
    uint32_t sm_count;       // %nsmid
    uint32_t most_resident;  // blocks that may be in progress at once; cooperative: at least all
};

enum exec_fault_kind {
    EXEC_NO_FAULT,
    EXEC_ILLEGAL_ADDRESS,        // 700
    EXEC_ASSERT,                 // 710
    EXEC_MISALIGNED_ADDRESS,     // 716
    EXEC_INVALID_ADDRESS_SPACE,  // 717
    EXEC_INVALID_PC,             // 718: an indirect call to what is no function
    EXEC_ILLEGAL_INSTRUCTION,    // 715
    EXEC_LAUNCH_FAILED,          // 719: trap
    EXEC_OUT_OF_MEMORY,          // 2: ours
};

// Where a thread was in one function, innermost first. What was inlined into the next frame has a name only if the
// debug information has one, and that as PTX spells bytes: read it with ptx_debug_text.
struct exec_fault_frame {
    struct str function, file;
    uint32_t line;
    bool inlined;
};
enum { EXEC_FAULT_FRAMES = 16 };

struct exec_fault {
    enum exec_fault_kind kind;
    uint64_t address;  // of the access, generic
    uint32_t size;
    bool write;
    const char *space;  // "global", "shared", ...
    const struct exec_kernel *kernel;
    uint32_t block[3], thread[3];
    const char *module;      // name of the text
    uint32_t line, column;   // in the PTX
    struct str instruction;  // as in the PTX; lives as long as the program
    struct str source_file;  // from .loc; empty if unknown
    uint32_t source_line;
    uint32_t nframes;  // of calls and inlined code; the outermost are left out where they are too many
    struct exec_fault_frame frames[EXEC_FAULT_FRAMES];
};

// Counters of a grid, if they were asked for.
struct exec_stats {
    uint64_t warp_insns, thread_insns;  // issued, and times active lanes
    uint64_t loads[8], stores[8];       // warp accesses: generic, global, shared, local, param, const
    uint64_t transactions;              // 32-byte sectors touched by warps in global memory
    uint64_t branches, divergent;       // executed, and split
};

struct exec_grid;
struct exec_runner;

struct exec_runner *exec_runner_new(void);  // NULL when out of memory
void exec_runner_free(struct exec_runner *r);

// NULL when out of memory.
struct exec_grid *exec_grid_new(const struct exec_launch *launch, struct exec_stats *stats);
void exec_grid_free(struct exec_grid *g);

// Runs a block of the grid for a while: starts one, or resumes one that was suspended. Any number of threads may
// be inside for the same grid.
enum exec_step {
    EXEC_RAN,    // there may be more to do at once
    EXEC_SPUN,   // what was run only waits for others: let something else have the core first
    EXEC_EMPTY,  // all blocks are in other threads' hands
    EXEC_DONE,   // the grid has ended, well or not; every later call says so too
};
enum exec_step exec_grid_step(struct exec_grid *g, struct exec_runner *r);

// How many more threads could find work in it now; a hint.
unsigned exec_grid_parallelism(struct exec_grid *g);

// After EXEC_DONE: what ended the grid. kind is EXEC_NO_FAULT if it ran to its end.
const struct exec_fault *exec_grid_fault(const struct exec_grid *g);

// Makes running and waiting blocks end soon, as if by a fault of that kind.
void exec_grid_cancel(struct exec_grid *g, enum exec_fault_kind kind);

// The instruction set that lanes run on: "avx512", "avx2" or "plain". force: NULL for the best.
const char *exec_lanes_name(void);
int exec_lanes_force(const char *name);  // before the first load; -EINVAL if unknown, -ENOTSUP if not here

#endif
