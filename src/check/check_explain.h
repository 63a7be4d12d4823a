// SPDX-License-Identifier: MIT
// Says where the address of a wrong access came from: the proof program of the kernel (flow/proof.h) in words
// (flow/access_words.h), with the numbers of the thread and of the launch (flow/access_thread.h). Nothing is
// said unless these numbers give exactly the address that the thread has used.
#ifndef MOAT_CHECK_CHECK_EXPLAIN_H
#define MOAT_CHECK_CHECK_EXPLAIN_H

#include <stdint.h>

#include "pass/pass_check.h"

enum { CHECK_EXPLAIN_NOTE = 1000 };

struct check_explain {
    uint64_t launch, address;
    uint64_t root;        // address of the variable that was left; 0: none
    uint64_t base, size;  // of the buffer or variable
    const uint32_t *block, *thread;
    // Sentences; empty if there is nothing to say.
    char index[CHECK_EXPLAIN_NOTE];
    char guards[CHECK_EXPLAIN_NOTE];
};

// number: of the site.
void check_explain(const struct pass_check *checks, uint32_t number, struct check_explain *e);

#endif
