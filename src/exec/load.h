// SPDX-License-Identifier: MIT
// The steps of loading a program. Internal to src/exec. Functions return 0 or a negative code of exec_load's, after
// a report; running out of memory in the program's arena jumps to exec_load.
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
    struct map names;  // what texts show one another, to definitions
    VEC(struct definition) definitions;
    VEC(struct exec_func *) funcs;
    VEC(struct exec_variable) variables, references;
    VEC(struct placed) placed;
    VEC(const struct ptx_loc *) locs;
    struct matrix_map *matrix_maps;  // those in use, in the program's arena: decode_matrix.c
};

uint32_t load_align(const struct ptx_var *v);  // a power of two
int load_error(struct load *l, const struct exec_module *m, uint32_t pos, int err, const char *what,
               struct str name);

// load_init.c: the bytes of a variable, which its initialiser may have to tell (0: nobody knows), and its initial
// value
int load_size(struct load *l, const struct exec_module *m, const struct ptx_var *v, uint64_t *size);
int load_initialise(struct load *l, const struct placed *p);

// layout_shared.c: offsets in shared memory
int load_shared(struct load *l);

// layout.c: offsets in local memory, and in shared memory with it; and how much stack a kernel needs, once all is decoded
int load_layout(struct load *l);
int load_stacks(struct load *l);

// decode.c
int decode_func(struct load *l, struct exec_func *f);

#endif
