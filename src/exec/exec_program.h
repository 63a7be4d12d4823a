// SPDX-License-Identifier: MIT
// A loaded program: modules, functions, kernels, variables. Internal to src/exec.
#ifndef MOAT_EXEC_EXEC_PROGRAM_H
#define MOAT_EXEC_EXEC_PROGRAM_H

#include "base/arena.h"
#include "base/map.h"
#include "exec/exec.h"
#include "exec/warp.h"
#include "ptx/ptx.h"

enum {
    EXEC_RESERVED_SHARED = 1024,  // the system's bytes, at offset 0
    // A GPU's limits: shared memory of a block with the reserved bytes, local memory of a thread, parameters
    // of a kernel.
    EXEC_MOST_SHARED = 228 << 10,
    EXEC_MOST_LOCAL = 512 << 10,
    EXEC_MOST_PARAMS = 32764,
};

// What a module's symbol stands for, once it has been placed.
enum exec_symbol_kind {
    EXEC_SYM_NONE,
    EXEC_SYM_ADDRESS,  // value: device address of a .global or .const variable
    EXEC_SYM_SHARED,   // value: offset, once its kernel is laid out
    EXEC_SYM_DYNAMIC,  // .extern .shared: after all static shared memory
    EXEC_SYM_LOCAL,    // value: offset in the frame's local memory: .local, and .param of functions
    EXEC_SYM_PARAM,    // value: offset in a kernel's parameters
    EXEC_SYM_FUNC,
    EXEC_SYM_TABLE,  // table: of a .branchtargets list, once a brx uses it
};

struct exec_symbol {
    uint8_t kind;
    bool placed;
    uint64_t value;
    union {
        struct exec_func *func;  // FUNC
        uint32_t number;         // SHARED: number among the variables in use, from 1; see layout_shared.c
        struct control_table *table;
    };
};

struct exec_module {
    struct ptx_module *ptx;
    struct exec_symbol *symbols;  // indexed by ptx's symbols
    const char *name;
    char *text;
};

struct exec_const {
    uint32_t slot;
    uint8_t bits;  // 1, 16, 32, 64, 128
    uint64_t value;
};

// A parameter's offset in the local memory of a function's frame, or in a kernel's parameters.
struct exec_place {
    uint32_t offset, size;
};

struct exec_func {
    struct str name;
    struct exec_program *program;
    struct exec_module *module;
    const struct ptx_func *ptx;
    uint32_t id;  // index in its program
    uint64_t code_address;
    exec_fn *intrinsic;                 // set if the function is implemented in C rather than PTX
    const struct native_bound *native;  // NULL: nobody offers it in C (native.h)
    struct exec_insn *code;
    uint32_t ncode;
    uint32_t *pos;       // per instruction: offset in the module's text
    uint32_t *loc;       // per instruction: index in locs of the preceding .loc, or PTX_NONE
    uint32_t first_loc;  // index in locs of the function's first .loc; they follow in text order
    uint32_t regs_size;
    uint32_t nconsts;
    struct exec_const *consts;
    uint32_t local_size;
    uint32_t nparams, nrets;
    struct exec_place *params, *rets;
    // callees, for the stack size
    uint32_t ncallees;
    struct exec_func **callees;
    bool calls_unknown, has_alloca;
    uint32_t stack_size;  // callees included; UINT32_MAX while not known
    uint8_t visiting;
    struct exec_kernel *kernel;  // if the function is an entry
};

struct exec_program {
    struct arena arena;
    struct exec_host host;
    unsigned nmodules;
    struct exec_module *modules;
    uint32_t nfuncs, nkernels, nvariables, nreferences, nlocs;
    struct exec_func **funcs;
    struct exec_kernel *kernels;
    struct exec_func **entries;  // indexed like kernels
    struct exec_variable *variables, *references;
    struct map kernel_names, variable_names;
    const struct ptx_loc **locs;
    struct native_range *constants;  // for native functions; NULL: none is bound
    uint32_t nconstants;
    uint32_t most_stack;  // sum of local_size over all functions, at most 1 MiB: for calls through pointers
};

static inline struct exec_func *program_entry(const struct exec_kernel *k)
{
    return k->program->entries[k - k->program->kernels];
}

// --- code.c: addresses of functions, over all programs -----------------------------------------------------

uint64_t code_add(const struct exec_func *f);  // a new code address; 0 when out of memory
void code_remove(uint64_t address);
const struct exec_func *code_find(uint64_t address);  // NULL if no function has it

// --- intrinsic.c -------------------------------------------------------------------------------------------

// Returns the function for vprintf, __assertfail, malloc, free, cudaGraphSetConditional or a function of the
// device runtime; NULL if the name is none of them.
exec_fn *intrinsic_find(struct str name);

#endif
