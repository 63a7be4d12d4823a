// SPDX-License-Identifier: MIT
// Whether the proofs of a kernel's launches are worth the time of their evaluation.
//
// Most launches are answered from memory or by a closed form, in a tenth of a microsecond. The others are
// evaluated, which takes large kernels, as sorts, a quarter of a millisecond: more than the checks take that
// a proof may spare. So each kernel has a credit, which evaluations spend and launches that are proved raise.
// While there is none, only one of so many launches is evaluated. The rest run with all checks, so that this
// decides about speed alone.
//
// Credit is counted in instructions of a proof program, of which each takes some 70 ns to evaluate.
#ifndef MOAT_PROVE_WORTH_H
#define MOAT_PROVE_WORTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    WORTH_FIRST = 1 << 16,  // of a kernel that nothing is known of: 5 ms
    WORTH_MOST = 1 << 18,
    WORTH_AGAIN = 512,     // launches of which one is evaluated without credit
    WORTH_ACCESSES = 1024  // of threads, whose checks take as long as the evaluation of one instruction
};

struct worth {
    int64_t credit;
    uint32_t refused;  // launches since the last one that was evaluated
    // Won without a lock since the last launch that was looked at; several threads may lose some. Relaxed,
    // always: it stands alone.
    _Atomic int64_t aside;
};

static inline struct worth worth_first(void)
{
    return (struct worth){.credit = WORTH_FIRST};
}

// Returns whether a launch may be evaluated.
bool worth_evaluating(const struct worth *w);
// Notes that a launch was not evaluated, or that the program of so many instructions was.
void worth_refused(struct worth *w);
void worth_spent(struct worth *w, uint32_t ninsns);
// Notes that a launch of so many threads runs without the checks of some of its `accesses`.
void worth_won(struct worth *w, uint64_t threads, uint32_t accesses);
// As worth_won, for a launch that is known to be proved. It may run beside all other functions; what it adds
// counts after the next worth_settle.
void worth_won_aside(struct worth *w, uint64_t threads, uint32_t accesses);
void worth_settle(struct worth *w);

#endif
