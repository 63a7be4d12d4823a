// SPDX-License-Identifier: MIT
#include "kcheck/kcheck.h"

const char kcheck_functions_ptx[] =
#include "kcheck/kcheck_functions.inc"
    ;

_Static_assert(sizeof(struct kcheck_module) == 48, "the variable has its size");
const char kcheck_extern_ptx[] = ".weak .const .align 8 .b8 " KCHECK_VARIABLE "[48];\n"
                                 ".extern .func (.param .b32 r) " KCHECK_ACCESS
                                 "(.param .b64 a, .param .b64 b, .param .b64 c, .param .b64 d);\n"
                                 ".extern .func (.param .b64 r) " KCHECK_BOUNDS "(.param .b64 a);\n"
                                 ".extern .func " KCHECK_ENTER "(.param .b64 a);\n";
