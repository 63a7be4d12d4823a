// SPDX-License-Identifier: MIT
#include "kfence/kfence.h"

const char kfence_functions_ptx[] =
#include "kfence/kfence_functions.inc"
    ;
