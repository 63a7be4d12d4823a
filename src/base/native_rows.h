// SPDX-License-Identifier: MIT
// Functions of PTX texts that the CPU device executes in C instead: what whoever wrote such a text offers
// (native_row), and what such a function gets and returns (native_call).
//
// The offer never changes what a program computes. It counts only for a function whose text, and that of all
// functions that it calls, is word for word the one that the offer names; and a native function may decline
// any lane, whose call is then executed as PTX. So a native function can leave out all that is rare.
#ifndef MOAT_BASE_NATIVE_ROWS_H
#define MOAT_BASE_NATIVE_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum { NATIVE_LANES = 32, NATIVE_ARGUMENTS = 4, NATIVE_VARIABLES = 2 };

enum native_right { NATIVE_READ = 1, NATIVE_WRITE = 2 };

// What kernels may access. Rights are bytes of enum native_right: coarse[] has one per 2 MiB, or NATIVE_FINE;
// then fine[] has one per 4 KiB.
enum { NATIVE_FINE = 128, NATIVE_BITS = 47, NATIVE_COARSE_BITS = 21, NATIVE_FINE_BITS = 12 };
struct native_space {
    const uint8_t *coarse, *fine;
    uint64_t device_base, device_size, alias;  // bytes of device memory lie at address + alias
    uint64_t window, window_size;              // generic addresses of shared and local memory
};

struct native_range {
    uint64_t at, size;
};

// A call that lanes of one warp make together. Arguments are those of the lanes in mask, zero-extended.
struct native_call {
    uint32_t mask;
    uint32_t smid;
    uint64_t grid;
    uint32_t block[3], blocks[3], threads[3];  // %ctaid, %nctaid, %ntid
    const uint32_t (*thread)[NATIVE_LANES];    // %tid, by dimension and lane
    const uint64_t *variables;                 // addresses of the row's variables
    const struct native_range *constants;      // where the program's .const variables lie
    uint32_t nconstants;
    uint64_t argument[NATIVE_ARGUMENTS][NATIVE_LANES];
    uint64_t result[NATIVE_LANES];  // set for the lanes that are returned
};

// Returns the lanes of c->mask whose calls are done. The calls of the others must have had no effect, unless
// they met memory that they may not access: as PTX they will meet it, too.
typedef uint32_t native_fn(struct native_call *c);

struct native_row {
    const char *name;  // of a .func with at most NATIVE_ARGUMENTS parameters and one result, of 4 or 8 bytes
    const char *text;  // PTX text that defines it and what it calls
    const char *variables[NATIVE_VARIABLES];  // .global or .const variables of its module; NULL: no more
    native_fn *fn;
};

#endif
