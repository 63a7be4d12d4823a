// SPDX-License-Identifier: MIT
// A stub for every call of the driver API. The stubs are weak: a definition elsewhere replaces them, so that
// nobody keeps a list of what is implemented. A stub takes no parameters, whatever its callers pass: in the
// ABIs we build for, the caller removes them.
//
// Weak definitions and archives do not mix by themselves: the linker takes a symbol from the first member
// that has it and looks no further. So a program that links the archive includes whole.h, which refers to
// api.c, which refers to all symbols: api.c comes first in the archive of this folder, and this file comes
// last.
#include "cpu/unsupported.h"

#define CALL(symbol, ...) STUB(symbol)
#define BARE(symbol, base) STUB(symbol)
#define STUB(symbol)                                                      \
    CUresult symbol(void) __attribute__((weak, visibility("protected"))); \
    CUresult symbol(void)                                                 \
    {                                                                     \
        return not_supported_notify(#symbol);                             \
    }
#include "driver/calls.def"
