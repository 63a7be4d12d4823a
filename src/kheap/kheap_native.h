// SPDX-License-Identifier: MIT
// The heap's functions as the CPU device can execute them in C: base/native_rows.h.
#ifndef MOAT_KHEAP_KHEAP_NATIVE_H
#define MOAT_KHEAP_KHEAP_NATIVE_H

#include "base/native_rows.h"

// What such functions may access, for these and all others over kprim.h. Whoever offers them sets it.
extern struct native_space kprim_native_space;

enum { KHEAP_NATIVE = 3 };
extern const struct native_row kheap_native[KHEAP_NATIVE];

#endif
