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
#include "base/native_rows.h"
#include "base/str.h"

// --- programs ----------------------------------------------------------------------------------------------

enum exec_variable_kind { EXEC_GLOBAL, EXEC_CONST, EXEC_MANAGED, EXEC_TEXREF, EXEC_SURFREF };

// What a program asks of its loader. Every function may be called from any thread.
struct exec_host {
    void *ctx;
    // Allocates zeroed memory for a module variable and returns its device address, or 0 when out of memory.
    // Kernels may read and write it (EXEC_CONST: read it). The loader frees it after exec_program_free.
    uint64_t (*place)(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align);
    // malloc for a warp: for each bit i set in lanes, allocates sizes[i] bytes and sets at[i] to the address,
    // or to 0 when out of memory.
    void (*heap_alloc)(void *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at);
    // free for a warp, as if called lane by lane from the lowest. Freeing 0 does nothing. Returns the lanes
    // whose pointer did not come from malloc.
    uint32_t (*heap_free)(void *ctx, uint32_t lanes, const uint64_t *at);
    // Prints text of printf or of a failed assert.
    void (*print)(void *ctx, const char *text, size_t len);
    // Returns whether a pointer that heap_free has refused was that of a block; NULL: unknown.
    bool (*heap_was_block)(void *ctx, uint64_t at);
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
    uint32_t nparams, param_size;  // param_size: bytes of all parameters, padding included
    const struct exec_param *params;
    uint32_t shared_size;          // static, padding included; starts after the system's reserved bytes
    uint32_t local_size;           // bytes per thread for the kernel and its callees, without recursion
    uint32_t nregs;                // estimate of what a GPU's compiler would use; 16 to 255
    uint32_t max_registers;        // what .maxnreg, .minnctapersm and .maxntid leave a thread; 16 to 255
    uint32_t max_threads;          // from .maxntid or .reqntid, else 1024
    uint32_t required_block[3];    // from .reqntid; 0: any
    uint32_t required_cluster[3];  // from .reqnctapercluster; 0: any
    bool needs_cluster;            // .explicitcluster: must be launched with clusters
    uint32_t const_size;
    int ptx_version;  // from .target: 90 for sm_90
    bool recursive;   // the stack size it needs is not known
};

struct exec_variable {
    struct str name;
    uint64_t address, size;
    uint8_t kind;  // enum exec_variable_kind
};

struct exec_program;

// Parses, links, checks and decodes the texts. A symbol that one text declares .extern may be defined by
// another. Errors are reported to sink with their position. Returns 0, or
//   -EINVAL   malformed PTX                            -ENOTSUP  an instruction that the executor lacks
//   -ENOENT   a symbol without a definition            -EEXIST   a symbol that two texts define
//   -ENOMEM
int exec_load(const struct exec_text *texts, unsigned ntexts, const struct exec_host *host,
              struct diag_sink *sink, struct exec_program **out);
void exec_program_free(struct exec_program *p);  // no grid of p may be left

unsigned exec_kernel_count(const struct exec_program *p);
const struct exec_kernel *exec_kernel(const struct exec_program *p, unsigned i);
const struct exec_kernel *exec_find_kernel(const struct exec_program *p, struct str name);  // NULL if absent
unsigned exec_variable_count(const struct exec_program *p);
const struct exec_variable *exec_variable(const struct exec_program *p, unsigned i);
const struct exec_variable *exec_find_variable(const struct exec_program *p, struct str name);
// Returns a .texref or .surfref, or NULL if absent. It is no variable for the host, but memory that holds a
// texture.h handle, 0 at first.
const struct exec_variable *exec_find_reference(const struct exec_program *p, struct str name);
// Returns the name of a function of the device's runtime that a function of the program calls, and that none
// of the texts defines; empty if there is none.
struct str exec_runtime_call(const struct exec_program *p);

// Offers functions in C for functions of programs that are loaded from now on. The rows are kept for ever and
// must not change; a second offer of the same rows does nothing. Sets *space to what kernels may access,
// which is valid for ever. Returns 0, or -ENOMEM if there is no address space.
int exec_native_add(const struct native_row *rows, unsigned n, struct native_space *space);

// --- launches ----------------------------------------------------------------------------------------------

// A copy or fill that a kernel asks for: `depth` slices of `height` rows of `width` bytes.
struct exec_copy {
    uint64_t to, to_pitch, to_slice;  // pitch: bytes from row to row; slice: bytes from slice to slice
    uint64_t from, from_pitch, from_slice;
    uint64_t width, height, depth;
    bool fill;  // fill with the byte in `from`; nothing is copied
};

enum exec_question {
    EXEC_ASK_DEVICE,   // the device's ordinal
    EXEC_ASK_DEVICES,  // the number of devices
    EXEC_ASK_VERSION,  // the driver API's version
    EXEC_ASK_LIMIT,    // the limit `which`, numbered as in the driver API
    EXEC_ASK_CACHE_CONFIG,
    EXEC_ASK_SHARED_CONFIG,
};

// Errors that a kernel receives are the runtime API's: the numbers that the driver API shares, and these.
enum {
    EXEC_INVALID_PITCH = 12,
    EXEC_TOO_MANY_PENDING = 69,
    EXEC_INVALID_FUNCTION = 98,
};

// Handles of streams and events created by kernels are multiples of this.
enum { EXEC_HANDLE_STEP = 16 };

// What a kernel may ask of whoever launched it. The functions are called with the launch's owner, from any
// thread. block: the number in its grid of the calling block; stream: a handle as in the device runtime's
// API.
struct exec_children {
    // Allocates memory for the parameters of a kernel to be launched with this configuration.
    int (*prepare)(void *owner, const struct exec_kernel *k, const uint32_t grid[3], const uint32_t block[3],
                   uint32_t shared, uint64_t *params);
    // Launches what was prepared.
    int (*launch)(void *owner, uint64_t params, uint64_t stream, uint64_t block);
    int (*launch_graph)(void *owner, uint64_t graph, uint64_t stream);
    uint64_t (*current_graph)(void *owner);  // the graph that the kernel is a node of; 0: none
    int (*copy)(void *owner, const struct exec_copy *c, uint64_t stream, uint64_t block);
    // record: the event captures the work that is in the stream now. await: the stream waits for the event's
    // work.
    int (*record)(void *owner, uint64_t event, uint64_t stream, uint64_t block);
    int (*await)(void *owner, uint64_t event, uint64_t stream, uint64_t block);
    int (*ask)(void *owner, enum exec_question question, int which, uint64_t *value);
    int (*attribute)(void *owner, int which, int device, int *value);
    // function: a kernel's attribute `which`, numbered as in the driver API. occupancy: how many of its
    // blocks a multiprocessor takes.
    int (*function)(void *owner, const struct exec_kernel *k, int which, int *value);
    int (*occupancy)(void *owner, const struct exec_kernel *k, int threads, uint64_t shared, int *blocks);
    uint64_t (*error_text)(void *owner, int error, bool name);  // a string's device address; 0: out of memory
};

struct exec_fault;

struct exec_launch {
    // NULL: a fault ends the grid. Otherwise a load, store or atomic that would fault is skipped: it reads 0
    // and writes nothing, and the function is called, once for each instruction of the grid.
    void (*skipped)(void *owner, const struct exec_fault *fault);
    const struct exec_children *children;  // NULL: the kernel cannot launch anything
    void *owner;
    const struct exec_kernel *kernel;
    uint32_t grid[3], block[3];  // checked by the caller: nonzero, block within the device's limits
    uint32_t cluster[3];         // 0: none; each divides the grid's; at most 16 blocks
    uint32_t dynamic_shared;
    uint32_t stack_size;  // bytes of local memory per thread for recursion and alloca (CU_LIMIT_STACK_SIZE)
    bool cooperative;
    uint64_t grid_id;
    uint64_t params;  // device address of kernel->param_size bytes; the caller keeps them until the grid ends
    uint64_t workspace;      // cooperative: device address of 64 zeroed bytes for grid barriers, else 0
    uint32_t sm_count;       // %nsmid
    uint32_t most_resident;  // blocks that may be in progress at once; cooperative: at least all blocks
};

enum exec_fault_kind {
    EXEC_NO_FAULT,
    EXEC_ILLEGAL_ADDRESS,        // 700
    EXEC_ASSERT,                 // 710
    EXEC_MISALIGNED_ADDRESS,     // 716
    EXEC_INVALID_ADDRESS_SPACE,  // 717
    EXEC_INVALID_PC,             // 718: an indirect call to an address without a function
    EXEC_ILLEGAL_INSTRUCTION,    // 715
    EXEC_LAUNCH_FAILED,          // 719: trap
    EXEC_OUT_OF_MEMORY,          // 2: the executor ran out of memory
};

// A thread's position in one function; frames are listed innermost first. An inlined frame has a name only if
// the debug information has one, in PTX's spelling of bytes: read it with ptx_debug_text.
struct exec_fault_frame {
    struct str function, file;
    uint32_t line;
    bool inlined;
};
enum { EXEC_FAULT_FRAMES = 16 };

struct exec_fault {
    enum exec_fault_kind kind;
    uint64_t address;  // generic address of the access
    uint32_t size;
    bool write;
    const char *space;  // "global", "shared", ...
    const struct exec_kernel *kernel;
    uint32_t block[3], thread[3];
    const char *module;      // name of the text
    uint32_t line, column;   // in the PTX text
    struct str instruction;  // the PTX text of it; lives as long as the program
    struct str source_file;  // from .loc; empty if unknown
    uint32_t source_line;
    uint32_t nframes;  // calls and inlined code; the outermost are dropped if there are too many
    struct exec_fault_frame frames[EXEC_FAULT_FRAMES];
};

// Counters of a grid, kept if exec_grid_new was given a place for them.
struct exec_stats {
    uint64_t warp_insns, thread_insns;  // issued by warps; the same times active lanes
    uint64_t loads[8], stores[8];       // warp accesses: generic, global, shared, local, param, const
    uint64_t transactions;              // 32-byte sectors touched by warps in global memory
    uint64_t branches, divergent;       // branches executed; those that split a warp
};

struct exec_grid;
struct exec_runner;

struct exec_runner *exec_runner_new(void);  // NULL when out of memory
void exec_runner_free(struct exec_runner *r);

// Returns NULL when out of memory. stats: NULL to count nothing.
struct exec_grid *exec_grid_new(const struct exec_launch *launch, struct exec_stats *stats);
void exec_grid_free(struct exec_grid *g);

// Starts a block of the grid or resumes a suspended one, and runs it for a while. Any number of threads may
// call this for the same grid at once.
enum exec_step {
    EXEC_RAN,    // more work may be ready now
    EXEC_SPUN,   // the block that ran only waits for others: let something else use the core first
    EXEC_EMPTY,  // other threads hold all the blocks
    EXEC_DONE,   // the grid has ended or faulted; every later call returns this too
};
enum exec_step exec_grid_step(struct exec_grid *g, struct exec_runner *r);

// Returns how many more threads could find work in the grid now; a hint.
unsigned exec_grid_parallelism(struct exec_grid *g);

// Returns what ended the grid; valid after EXEC_DONE. kind is EXEC_NO_FAULT if the grid ran to completion.
const struct exec_fault *exec_grid_fault(const struct exec_grid *g);

// Makes running and waiting blocks end soon, as after a fault of that kind.
void exec_grid_cancel(struct exec_grid *g, enum exec_fault_kind kind);

// Returns the instruction set that lanes run on: "avx512", "avx2" or "plain".
const char *exec_lanes_name(void);
// Chooses the instruction set; NULL means the best. Call it before the first load. Returns 0, -EINVAL if the
// name is unknown, or -ENOTSUP if this build or this CPU lacks it.
int exec_lanes_force(const char *name);

#endif
