// SPDX-License-Identifier: MIT
// A program's options for the driver's compiler: which of them hold for what we compile in its place.
#ifndef MOAT_REWRITE_REWRITE_JIT_H
#define MOAT_REWRITE_REWRITE_JIT_H

#include "rewrite/rewrite.h"

// Options that change code are passed on and are part of the cache's key. Logs, times and hints for choosing among
// images stay with the call that loads the image. What ties code to addresses cannot be kept.
enum { REWRITE_JIT_MOST = 32, REWRITE_JIT_LOG = 1024 };

struct rewrite_jit {
    unsigned count;
    CUjit_option options[REWRITE_JIT_MOST];
    void *values[REWRITE_JIT_MOST];
    uint64_t sum;               // 0: no options
    char log[REWRITE_JIT_LOG];  // what the compiler has to say
};

// 0, or -ENOTSUP: with such options the program's image must be loaded as it is. The last two are for our own log.
int rewrite_jit_take(struct rewrite_jit *j, const struct rewrite_options *from);

// The compiler may use so many registers at most, unless the options say something of that themselves. False: there is no room.
bool rewrite_jit_limit(CUjit_option *options, void **values, unsigned *count, unsigned most,
                       unsigned registers);

#endif
