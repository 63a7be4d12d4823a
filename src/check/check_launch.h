// SPDX-License-Identifier: MIT
// Launches of --mode=check: the checked variant of a kernel is launched with the bounds of the buffers that
// its parameters point into (kcheck.h). If a proof (check_prove.h) covers all checks, the program's own
// kernel is launched instead, and if it covers some, the variant that makes the others.
//
// A kernel that has no variant, or whose parameters cannot be read, runs as it is and is counted. Kernels in
// graphs, whose buffers may change before they run, are passed no bounds and look up every root, until
// check_graph.h gives them some.
#ifndef MOAT_CHECK_CHECK_LAUNCH_H
#define MOAT_CHECK_CHECK_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "prove/check_prove.h"
#include "driver/driver.h"

struct launch_call;

int check_launch_start(void);  // 0 or -ENOMEM
void check_launch_after_fork(void);
void check_launch_summarise(void);  // before the guard's counts are read

void check_launch_found(const void *handle, const void *owner, const char *name);
void check_launch_function_of(CUfunction function, CUkernel kernel);
void check_launch(const struct launch_call *l);
// Returns the n-th variant, from 0, that may be launched where the program launches this kernel; NULL: there
// are no more.
const void *check_launch_variant(const void *handle, unsigned n);

// Returns the host's call stack of a launch by its number, and the call; 0: no longer known.
uint32_t check_launch_stack(uint64_t number, enum driver_id *call);
const char *check_launch_kernel(uint64_t number);  // NULL: no longer known
// Returns how many blocks had been freed before a launch; UINT64_MAX: no longer known.
uint64_t check_launch_frees(uint64_t number);
// What a launch was made with.
enum { CHECK_LAUNCH_BYTES = 256 };
struct check_launch_saved {
    uint32_t grid[3], block[3], shared;
    uint32_t size;  // of the program's parameters
    _Alignas(8) char bytes[CHECK_LAUNCH_BYTES];
};
// Returns false if it is no longer known, had more parameters, or is part of a graph.
bool check_launch_saved(uint64_t number, struct check_launch_saved *out);

// Reports what a launch is certain to do wrong, before it is made. NULL: nothing is reported. The launch is
// known by its number, with the bytes of its parameters.
struct check_kernel;
typedef void check_launch_foretell_fn(const struct launch_call *l, const struct check_kernel *k,
                                      const struct check_certain *c, uint64_t number, const void *bytes,
                                      size_t size);
extern check_launch_foretell_fn *check_launch_foretells;

// Finds what was known of the access at a site before the launch: that it is outside of its buffer. Stores
// one row. Returns false if nothing was known.
bool check_launch_was_certain(uint64_t number, uint32_t site, struct check_certain *out);
// Sets what was proved of a launch that is made with all checks.
void check_launch_set_proved(uint64_t number, const struct check_prove *proof, enum check_proved proved);
// Returns whether a launch was made with all checks though it was proved that the access at a site is right.
bool check_launch_was_proved(uint64_t number, uint32_t site);

#endif
