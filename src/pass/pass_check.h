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
// In a loop without another one inside, the slow copy is one of the whole loop, and does not lead back. A
// segment whose addresses depend on what it loads has further checks in its midst, and its branch behind its
// loads, each of which is made only if no check before has failed (struct check_segment).
//
// A check compares an address with bounds of its root, or an index (pass_check_index.c).
//
// A kernel with accesses that a launch-time proof may cover, and others, has a second copy,
// KCHECK_REST_PREFIX NAME, that checks only the others (pass_check_prove.c).
//
// A kernel that kernels launch has one more copy, KCHECK_CHILD_PREFIX NAME (pass_check_child.c).
//
// A segment ends before an access whose address or guard can be computed neither where the segment starts nor
// before anything but loads was executed, and before any statement that must not be executed twice, or in two
// places by the lanes of a warp.
#ifndef MOAT_PASS_PASS_CHECK_H
#define MOAT_PASS_PASS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

// Bounds that the host computes for the root at `offset` of the program's parameters.
struct pass_check_pair {
    uint32_t offset, span;
    uint32_t align;  // the pair accepts nothing unless the root is a multiple of this
    // 0: a struct kcheck_pair, of addresses that are `at` less than those of the accesses. Else a struct
    // kcheck_index, and eight bytes that are not used, of accesses at root + index * scale + at.
    uint32_t scale;
    bool is_signed;
    int64_t at;
};
// The span of a pair that is the first of KCHECK_MAP_PAIRS in a row, the others have it too: together they
// are the struct kcheck_map of the tensor map at `offset`.
#define PASS_CHECK_MAP UINT32_MAX
enum { PASS_CHECK_MAP_BYTES = 128 };
// Of fenced kernels: the span of a pair that is the handle of a texture or a surface.
#define PASS_CHECK_TEXTURE (UINT32_MAX - 1)
#define PASS_CHECK_SURFACE (UINT32_MAX - 2)
// The span of a pair that is no parameter: the launch must be cooperative.
#define PASS_CHECK_COOPERATIVE (UINT32_MAX - 3)

struct pass_check_param {
    uint32_t offset, size;
};

// A copy of a kernel that checks.
struct pass_check_variant {
    uint32_t hidden_bytes;  // of the struct kcheck_hidden and the pairs
    uint32_t npairs;
    struct pass_check_pair *pairs;
};

// What is launched in place of a kernel if its proof (flow/proof.h) holds for the launch.
enum pass_check_proved {
    PASS_CHECK_FULL,  // the checked kernel all the same: it has no proof, or one that would save nothing
    PASS_CHECK_REST,  // KCHECK_REST_PREFIX name, which checks what the proof does not cover
    PASS_CHECK_BARE,  // the program's own kernel: the proof may cover all that is checked
    // The program's own kernel if the proof says that all accesses are right, and KCHECK_REST_PREFIX name if
    // it says so of those that this one leaves out.
    PASS_CHECK_EITHER,
    PASS_CHECK_PROVED_COUNT
};
static inline bool pass_check_has_rest(enum pass_check_proved proved)
{
    return proved == PASS_CHECK_REST || proved == PASS_CHECK_EITHER;
}
static inline bool pass_check_may_be_bare(enum pass_check_proved proved)
{
    return proved == PASS_CHECK_BARE || proved == PASS_CHECK_EITHER;
}

// What a proof must say of one of its accesses. Not asked for: site is PASS_CHECK_UNASKED.
struct pass_check_asked {
    uint32_t site;   // the access in pass_check.sites
    uint32_t root;   // offset of the parameter that must be its root; PASS_CHECK_ANY_ROOT
    uint32_t align;  // what the address must be a multiple of
    // 1: the address is aligned if its root, a parameter, is; 0: the proof must say so.
    uint32_t follows;
    uint32_t rest;  // 1: the rest variant does not check it; 0: it is asked for the program's kernel alone
};
#define PASS_CHECK_UNASKED UINT32_MAX
#define PASS_CHECK_ANY_ROOT UINT32_MAX

struct pass_check_kernel {
    struct str name;  // the program's; the checked kernel is KCHECK_PREFIX name
    uint32_t hidden;  // offset of the struct kcheck_hidden
    uint32_t nparams;
    struct pass_check_param *params;  // the program's
    struct pass_check_variant full, rest;
    uint8_t proved;    // enum pass_check_proved; what follows is there if it is not FULL
    bool waits;        // it may wait for what another kernel writes: by atomics, volatile loads, or in calls
    struct str proof;  // a proof program, aligned to 8
    uint32_t naccesses;  // of the proof
    struct pass_check_asked *asked;
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

// A variable of the module whose address the host reads from the module's table of them.
struct pass_check_variable {
    struct str name;
    uint64_t size;
    bool needed;  // apart: the variants use it, so its address must be known
};

// The functions that checked kernels call.
extern const struct pass_apart pass_check_apart;

uint64_t pass_check_sum(void);  // hash of the added text: cached modules with another one are stale

struct pass_check {
    uint32_t nkernels, nsites, nfuncs;
    bool foreign;  // its kernels may get memory that no call of the host has made
    uint32_t tag;  // of the text, for KCHECK_SITE: a hash of it
    struct pass_check_kernel *kernels;
    struct pass_check_site *sites;
    struct pass_check_func *funcs;  // those that were rewritten
    bool apart;                     // the text holds the variants alone (pass_variants.h)
    // The table, a variable that holds the addresses of the others, 8 bytes for each in this order. Its name
    // is empty if there are none. Apart: the host fills it with addresses in the program's own module.
    struct str table;
    uint32_t nvariables;
    struct pass_check_variable *variables;
};

#endif
