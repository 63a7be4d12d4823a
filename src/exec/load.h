// SPDX-License-Identifier: MIT
// The steps of loading a program. Internal to src/exec. Functions report errors and return 0 or one of
// exec_load's negative codes; running out of memory in the program's arena jumps to exec_load.
#ifndef MOAT_EXEC_LOAD_H
#define MOAT_EXEC_LOAD_H

#include "base/vec.h"
#include "exec/exec_program.h"

struct definition {
    struct exec_module *module;
    uint32_t sym;
    uint8_t linkage;
};

struct placed {
    struct exec_module *module;
    const struct ptx_var *var;
    uint64_t address;
};

struct load {
    struct exec_program *program;
    struct diag_sink *sink;
    struct map names;  // symbols visible to other texts, mapped to definitions
    VEC(struct definition) definitions;
    VEC(struct exec_func *) funcs;
    VEC(struct exec_variable) variables, references;
    VEC(struct placed) placed;
    VEC(const struct ptx_loc *) locs;
    struct matrix_map *matrix_maps;  // maps in use, in the program's arena; see decode_matrix.c
};

uint32_t load_align(const struct ptx_var *v);  // returns a power of two
int load_error(struct load *l, const struct exec_module *m, uint32_t pos, int err, const char *what,
               struct str name);

// load_init.c. load_size: bytes of a variable; its initialiser may determine them (0: unknown).
// load_initialise: writes its initial value.
int load_size(struct load *l, const struct exec_module *m, const struct ptx_var *v, uint64_t *size);
int load_initialise(struct load *l, const struct placed *p);

// layout_shared.c: assigns offsets in shared memory
int load_shared(struct load *l);

// layout.c. load_layout: assigns offsets in local memory, and calls load_shared. load_stacks: computes how
// much stack each kernel needs; call it when all functions are decoded.
int load_layout(struct load *l);
int load_stacks(struct load *l);

// decode.c
int decode_func(struct load *l, struct exec_func *f);

#endif
