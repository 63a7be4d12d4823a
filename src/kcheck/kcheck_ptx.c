// SPDX-License-Identifier: MIT
#include "kcheck/kcheck.h"

const char kcheck_functions_ptx[] =
#include "kcheck/kcheck_functions.inc"
    ;
