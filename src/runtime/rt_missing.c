// SPDX-License-Identifier: MIT
// A weak definition of every call, for those that nothing else defines. They use no arguments and so declare
// none; cudart_api.h, which declares the real parameters, must not be included here.
#include "runtime/rt_missing.h"

#define STUB(symbol)                                                       \
    __attribute__((weak, visibility("default"))) cudaError_t symbol(void); \
    cudaError_t symbol(void)                                               \
    {                                                                      \
        static bool said;                                                  \
        return rt_missing(#symbol, &said);                                 \
    }
#define CALL(symbol, result, parameters) STUB(symbol)
#define BARE(symbol) STUB(symbol)
#include "runtime/runtime_calls.def"
