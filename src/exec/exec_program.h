// SPDX-License-Identifier: MIT
// A program as the engine keeps it. Internal to src/exec.
#ifndef MOAT_EXEC_EXEC_PROGRAM_H
#define MOAT_EXEC_EXEC_PROGRAM_H

#include "base/arena.h"
#include "base/map.h"
#include "exec/exec.h"
#include "exec/warp.h"
#include "ptx/ptx.h"

enum {
    EXEC_RESERVED_SHARED = 1024,  // the system's, at offset 0
    // What a GPU gives at most: to a block, with what is reserved; to a thread; to a kernel.
    EXEC_MOST_SHARED = 228 << 10,
    EXEC_MOST_LOCAL = 512 << 10,
    EXEC_MOST_PARAMS = 32764,
};

// What a symbol of a module stands for, once everything has its place.
enum exec_symbol_kind {
    EXEC_SYM_NONE,
    EXEC_SYM_ADDRESS,  // value: of a .global or .const variable
    EXEC_SYM_SHARED,   // value: offset, once its kernel is laid out
    EXEC_SYM_DYNAMIC,  // .extern .shared: behind all else
    EXEC_SYM_LOCAL,    // value: offset in the frame: .local, and .param of functions
    EXEC_SYM_PARAM,    // value: offset in a kernel's parameters
    EXEC_SYM_FUNC,
    EXEC_SYM_TABLE,  // table: of a .branchtargets list, once something jumps by it
};

struct exec_symbol {
    uint8_t kind;
    bool placed;
    uint64_t value;
    union {
        struct exec_func *func;  // FUNC
        uint32_t number;         // SHARED: among those in use, from 1; see layout_shared.c
        struct control_table *table;
    };
};

struct exec_module {
    struct ptx_module *ptx;
    struct exec_symbol *symbols;  // by symbol of ptx
    const char *name;
    char *text;
};

struct exec_const {
    uint32_t slot;
    uint8_t bits;  // 1, 16, 32, 64
    uint64_t value;
};

// Where a parameter lies in the local memory of a function's frame, or in a kernel's parameters.
struct exec_place {
    uint32_t offset, size;
};

struct exec_func {
    struct str name;
    struct exec_program *program;
    struct exec_module *module;
    const struct ptx_func *ptx;
    uint32_t id;  // in its program
    uint64_t code_address;
    exec_fn *intrinsic;  // implemented here rather than in PTX
    struct exec_insn *code;
    uint32_t ncode;
    uint32_t *pos;       // by instruction: offset in the module's text
    uint32_t *loc;       // by instruction: index of the .loc before it in locs, or PTX_NONE
    uint32_t first_loc;  // in locs: the function's own, in the order of the text
    uint32_t regs_size;
    uint32_t nconsts;
    struct exec_const *consts;
    uint32_t local_size;
    uint32_t nparams, nrets;
    struct exec_place *params, *rets;
    // what it calls, for the size of the stack
    uint32_t ncallees;
    struct exec_func **callees;
    bool calls_unknown, has_alloca;
    uint32_t stack_size;  // with callees; UINT32_MAX while not known
    uint8_t visiting;
    struct exec_kernel *kernel;  // of an entry
};

struct exec_program {
    struct arena arena;
    struct exec_host host;
    unsigned nmodules;
    struct exec_module *modules;
    uint32_t nfuncs, nkernels, nvariables, nreferences, nlocs;
    struct exec_func **funcs;
    struct exec_kernel *kernels;
    struct exec_func **entries;  // by kernel
    struct exec_variable *variables, *references;
    struct map kernel_names, variable_names;
    const struct ptx_loc **locs;
    uint32_t most_stack;  // of the functions whose address may be taken
};

static inline struct exec_func *program_entry(const struct exec_kernel *k)
{
    return k->program->entries[k - k->program->kernels];
}

// --- code.c: addresses of functions, over all programs --------------------------------------------------------

uint64_t code_add(const struct exec_func *f);  // 0 when out of memory
void code_remove(uint64_t address);
const struct exec_func *code_find(uint64_t address);  // NULL if there is none

// --- intrinsic.c ----------------------------------------------------------------------------------------------

exec_fn *intrinsic_find(struct str name);  // vprintf, __assertfail, malloc, free; NULL if it is none

#endif
