// SPDX-License-Identifier: MIT
// The pass behind --mode=check: every access of a kernel is compared with the bounds of the buffer, or of the
// variable, that its root points into (flow/roots.h). kcheck/kcheck.h says what kernels and the host share.
//
// Each kernel NAME stays as it was, and gets a copy KCHECK_PREFIX NAME that checks, with one more
// parameter. Functions get copies that checked code calls; one whose address is taken is changed in place,
// since indirect calls reach it. The copy, or changed function, looks like this:
//
//   block:  checks of a segment of the block, all at its start; one branch
//           the segment, as it was
//   back:   ...
//   at the end of the function, for each segment:
//   slow:   the segment again: each access first asks KCHECK_ACCESS, which may have it skipped
//           bra back
//
// A segment ends before an access whose address or guard cannot be computed where the segment starts, and
// before any statement that must not be executed twice, or in two places by the lanes of a warp.
#ifndef MOAT_PASS_PASS_CHECK_H
#define MOAT_PASS_PASS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

// Bounds that the host computes for the root at `offset` of the program's parameters.
struct pass_check_pair {
    uint32_t offset, span;
};

struct pass_check_param {
    uint32_t offset, size;
};

struct pass_check_kernel {
    struct str name;                // the program's; the checked kernel is KCHECK_PREFIX name
    uint32_t hidden, hidden_bytes;  // offset of the struct kcheck_hidden, and its size with the pairs
    uint32_t nparams, npairs;
    struct pass_check_param *params;  // the program's
    struct pass_check_pair *pairs;
};

// What the bounds of an access come from; the paper's figure 8 counts these.
enum pass_check_root {
    PASS_CHECK_PARAM,     // a parameter of the kernel
    PASS_CHECK_VARIABLE,  // a variable, of any space
    PASS_CHECK_LOADED,    // a pointer that was loaded, returned or passed to a function
    PASS_CHECK_WEB,       // one of several of these
    PASS_CHECK_OWN,       // the address itself
    PASS_CHECK_ROOTS
};
extern const char *const pass_check_root_names[PASS_CHECK_ROOTS];

// Where the memory is that an access was meant for.
enum pass_check_space {
    PASS_CHECK_IN_GLOBAL,  // or anywhere, by a generic address
    PASS_CHECK_IN_SHARED,
    PASS_CHECK_IN_LOCAL,
    PASS_CHECK_IN_CONST,
    PASS_CHECK_IN_PARAM,
    PASS_CHECK_SPACES
};

// A place in the source, innermost first: inlined functions, then the function itself.
struct pass_check_frame {
    struct str function, file;  // empty if not known
    uint32_t line;
    bool inlined;
};
enum { PASS_CHECK_FRAMES = 16 };

// An access that is checked. Its number is its index.
struct pass_check_site {
    struct str function;  // of the program
    struct str text;      // of the instruction
    uint32_t line;        // in the PTX text; 0: not known
    uint32_t width;
    uint8_t flags;        // enum kcheck_flags: READS, WRITES, ATOMIC, GENERIC
    uint8_t root;         // enum pass_check_root
    uint8_t space;        // enum pass_check_space
    struct str variable;  // VARIABLE: its name and size; 0: of dynamic shared memory
    uint64_t size;
    uint32_t nframes;
    struct pass_check_frame *frames;
};

// Why an access of a rewritten function is not checked. The first three: it is not known to which variable
// the address belongs.
enum pass_check_left {
    PASS_CHECK_SHARED,
    PASS_CHECK_LOCAL,
    PASS_CHECK_ELSEWHERE,   // another space, or a generic address of memory that is known not to be global
    PASS_CHECK_COLLECTIVE,  // matrices
    PASS_CHECK_ASYNC,
    PASS_CHECK_UNSIZED,  // a register or a tensor map has the size, or it is not known
    PASS_CHECK_LEFTS
};
extern const char *const pass_check_left_names[PASS_CHECK_LEFTS];

struct pass_check_func {
    struct str name;
    uint32_t left[PASS_CHECK_LEFTS];
};

uint64_t pass_check_sum(void);  // hash of the added text: cached modules with another one are stale

struct pass_check {
    uint32_t nkernels, nsites, nfuncs;
    struct pass_check_kernel *kernels;
    struct pass_check_site *sites;
    struct pass_check_func *funcs;  // those that were rewritten
};

#endif
