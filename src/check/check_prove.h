// SPDX-License-Identifier: MIT
// Proofs at launches: whether all accesses of a launch that the kernel's proof may cover lie inside the
// buffers that their pointers point into (flow/proof.h). Then the checks of these accesses are not needed.
//
// A proof holds against the buffers as they are at the launch. A buffer that the program frees while the
// kernel may run is not seen by the kernel then, as its bounds in registers would not change either.
#ifndef MOAT_CHECK_CHECK_PROVE_H
#define MOAT_CHECK_CHECK_PROVE_H

#include <stdbool.h>
#include <stddef.h>

#include "flow/proof.h"
#include "pass/pass_check.h"

struct launch_call;

// A kernel's proof, made ready for launches. It stays for the life of the process: modules that are loaded
// again find theirs.
struct check_prove;

// Returns NULL if a proof would save nothing, or out of memory.
const struct check_prove *check_prove_found(const struct pass_check_kernel *kernel);

// Returns whether the launch is proved. bytes: the program's parameters.
bool check_prove_holds(const struct check_prove *p, const struct launch_call *l, const void *bytes,
                       size_t size);

const struct proof *check_prove_proof(const struct check_prove *p);

// Returns whether a proof that holds says that the access at a site is right.
bool check_prove_says(const struct check_prove *p, uint32_t site);

void check_prove_after_fork(void);

#endif
