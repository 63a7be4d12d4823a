// SPDX-License-Identifier: MIT
#include "ring/error_ring.h"

const char error_ring_functions_ptx[] =
#include "ring/error_ring_functions.inc"
    ;
