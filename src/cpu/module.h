// SPDX-License-Identifier: MIT
// Programs in a context, and the libraries, functions and kernels that applications see of them.
//
//   module    one program in one context
//   function  a kernel of a module
//   library   texts, loaded into a context when something of it is first needed there
//   kernel    a kernel of a library, in whichever context is current
//
// Locks, outermost first: that of a library, of a context, of a module.
#ifndef MOAT_CPU_MODULE_H
#define MOAT_CPU_MODULE_H

#include "base/vec.h"
#include "cpu/sources.h"

// Settings of a function; those of a library's kernel hold for all its functions. Any thread may change them.
struct function_settings {
    atomic_int max_dynamic_shared;
    atomic_int carveout;
    atomic_int cluster[3], nonportable_cluster, cluster_policy;
};

struct legacy_call;

struct CUfunc_st {
    _Alignas(16) struct CUmod_st *module;
    const struct exec_kernel *kernel;
    struct function_settings *settings;  // own, or those of the library's kernel
    struct function_settings own;
    char *name;  // NUL-terminated; set when the handle is first given out
    struct legacy_call *legacy;
};

struct CUkern_st {
    _Alignas(16) struct CUlib_st *library;
    unsigned index;  // in each program of the library
    char *name;      // as above
    struct function_settings settings;
    _Atomic(struct CUfunc_st *) recent;  // the function that was last found
};

// Memory of a variable.
struct module_place {
    uint64_t address, size;
    enum exec_variable_kind kind;
    bool tracked;
};

struct CUmod_st {
    struct CUctx_st *ctx;      // NULL: a library's, not bound to a context yet
    struct CUlib_st *library;  // NULL: the application loaded it
    struct exec_program *program;
    struct CUmod_st *next_in_context, *next_in_library;
    pthread_mutex_t lock;         // guards the names of functions
    struct CUfunc_st *functions;  // by kernel
    VEC(struct module_place) places;
    atomic_uint grids;  // launched and not ended
};

struct CUlib_st {
    struct sources source;
    pthread_mutex_t lock;  // guards what follows
    struct CUmod_st *modules;
    struct CUkern_st *kernels;
    unsigned nkernels;
    CUresult failed;  // why loading failed; it is not tried again
};

// Loads a program for a context, or for the first context that adopts it if ctx is NULL. The logs of jit are
// filled, not finished.
CUresult module_new(struct CUctx_st *ctx, const struct sources *s, struct jit *jit, struct CUmod_st **out);
CUresult module_adopt(struct CUmod_st *m, struct CUctx_st *ctx);  // binds a module without a context
void module_free(struct CUmod_st *m);         // waits for its grids; it must be in no context's list
void module_list_remove(struct CUmod_st *m);  // from its context's list

// Returns the function of a kernel and registers its handle. Fails only with CUDA_ERROR_OUT_OF_MEMORY.
CUresult module_function(struct CUmod_st *m, const struct exec_kernel *k, struct CUfunc_st **out);
CUresult module_function_at(struct CUmod_st *m, unsigned index, struct CUfunc_st **out);

// Returns the library's module in a context, loading it if need be.
CUresult library_module(struct CUlib_st *l, struct CUctx_st *ctx, struct CUmod_st **out);
void library_forget(struct CUmod_st *m);  // called when its context ends
CUresult library_function(struct CUkern_st *k, struct CUctx_st *ctx, struct CUfunc_st **out);

// Finds the function of ctx that a launch or a query names by a CUfunction, which may be a CUkernel if
// `kernels` is true. Returns CUDA_ERROR_INVALID_HANDLE if the handle is neither.
CUresult function_get(CUfunction handle, struct CUctx_st *ctx, bool kernels, struct CUfunc_st **out);
void function_settings_init(struct function_settings *s, const struct exec_kernel *k);
void function_free(struct CUfunc_st *f);  // frees what it holds
CUresult function_attribute(const struct exec_kernel *k, const struct function_settings *s,
                            CUfunction_attribute a, int *value);
CUresult function_set(const struct exec_kernel *k, struct function_settings *s, CUfunction_attribute a,
                      int value);

// Returns how many blocks of a kernel fit on a multiprocessor at once; 0: not even one.
unsigned occupancy_blocks(const struct exec_kernel *k, const struct function_settings *s, uint64_t threads,
                          uint64_t dynamic_shared);

#endif
