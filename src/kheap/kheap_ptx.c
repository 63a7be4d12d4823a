// SPDX-License-Identifier: MIT
#include "kheap/kheap.h"

const char kheap_functions_ptx[] =
#include "kheap/kheap_functions.inc"
    ;

const char kheap_scan_ptx[] =
#include "kheap/kheap_scan.inc"
    ;
