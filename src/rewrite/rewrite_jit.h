// SPDX-License-Identifier: MIT
// Which of a program's options for the driver's compiler apply to what moat compiles in its place.
#ifndef MOAT_REWRITE_REWRITE_JIT_H
#define MOAT_REWRITE_REWRITE_JIT_H

#include "rewrite/rewrite.h"

// Options that change code are passed on and are part of the cache's key. Logs, times and hints for choosing
// among images stay with the call that loads the image. Options that bind code to addresses cannot be kept.
enum { REWRITE_JIT_MOST = 32, REWRITE_JIT_LOG = 1024 };

struct rewrite_jit {
    unsigned count;
    CUjit_option options[REWRITE_JIT_MOST];
    void *values[REWRITE_JIT_MOST];
    uint64_t sum;               // 0: no options
    char log[REWRITE_JIT_LOG];  // the compiler's messages
};

// Returns 0, or -ENOTSUP: with such options the program's image must be loaded unchanged. The last two
// options added are for moat's own log.
int rewrite_jit_take(struct rewrite_jit *j, const struct rewrite_options *from);

// Copies options, whose log is then the copy's.
void rewrite_jit_copy(struct rewrite_jit *to, const struct rewrite_jit *from);

// Lets a driver of this version compile kernels on as many threads as the process may use processors, unless
// the options say how many. Returns whether an option was added; it is the last one then, and changes no key.
bool rewrite_jit_threads(struct rewrite_jit *j, int driver);

// Limits the registers that the compiler may use, unless the options limit them more. Returns false if there
// is no room for the option.
bool rewrite_jit_limit(CUjit_option *options, void **values, unsigned *count, unsigned most,
                       unsigned registers);

#endif
