// SPDX-License-Identifier: MIT
// Proofs at launches: whether all accesses of a launch that the kernel's proof may cover lie inside the
// buffers that their pointers point into (flow/proof.h). Then the checks of these accesses are not needed.
// --mode=fence asks the same of another kind of buffer: the partition.
//
// A proof holds against the buffers as they are at the launch. A buffer that the program frees while the
// kernel may run is not seen by the kernel then, as its bounds in registers would not change either.
#ifndef MOAT_CHECK_CHECK_PROVE_H
#define MOAT_CHECK_CHECK_PROVE_H

#include <stdbool.h>
#include <stddef.h>

#include "flow/proof.h"
#include "pass/pass_check.h"
#include "track/track.h"

struct launch_call;
struct judge_buffer;

// What pointers among a launch's parameters point into, if it is not the program's own buffer (NULL, as it is
// at first). Sets *lasts to false if a later launch must ask again. Set before the first launch.
extern struct judge_buffer (*check_prove_buffer)(uint64_t pointer, bool *lasts);

// A kernel's proof, made ready for launches. It stays for the life of the process: modules that are loaded
// again find theirs.
struct check_prove;

// Returns NULL if a proof would save nothing, or out of memory.
const struct check_prove *check_prove_found(const struct pass_check_kernel *kernel);

// Returns whether the kernel accesses nothing that is checked.
bool check_prove_is_idle(const struct check_prove *p);

// What a proof says of a launch: nothing; that the accesses are right which the rest variant leaves out; that
// all are.
enum check_proved { CHECK_PROVED_NOTHING, CHECK_PROVED_REST, CHECK_PROVED_ALL };

const struct proof *check_prove_proof(const struct check_prove *p);

// Accesses of a launch that is not proved which some thread is certain to make outside of the buffer or
// variable, if it comes that far; the first ones. check_certain.h reports them.
enum { CHECK_CERTAIN = 4 };
struct check_certain_row {
    uint32_t site;
    uint32_t access;         // in the proof; PROOF_NONE: the judge knows better
    uint32_t kind;           // enum kcheck_kind
    uint64_t before, needs;  // of judge.h
    uint64_t base, size;     // of the buffer; base is 0 for variables
    uint64_t pointer;        // the root's value, 0 for variables
    struct proof_bound bound;
};
struct check_certain {
    uint32_t n;
    struct check_certain_row at[CHECK_CERTAIN];
};
// Returns whether an access by way of a pointer into such memory is wrong wherever it leaves its block.
bool check_prove_has_end(enum track_family family);

// bytes: the program's parameters. certain: NULL if not wanted. lasts: set to whether a launch with the same
// shape and parameters gets the same answer as long as the buffers do not change; NULL if not wanted.
enum check_proved check_prove_holds(const struct check_prove *p, const struct launch_call *l,
                                    const void *bytes, size_t size, struct check_certain *certain,
                                    bool *lasts);
// Notes a launch that is proved as check_prove_holds has said of an equal one. Takes no lock.
void check_prove_again(const struct check_prove *p, const struct launch_call *l);

// Returns whether a proof that said so much of a launch said that the access at a site is right.
bool check_prove_says(const struct check_prove *p, enum check_proved proved, uint32_t site);

void check_prove_after_fork(void);

#endif
