// SPDX-License-Identifier: MIT
// The judge's functions as the CPU device can execute them in C: base/native_rows.h.
#ifndef MOAT_KCHECK_KCHECK_NATIVE_H
#define MOAT_KCHECK_KCHECK_NATIVE_H

#include "base/native_rows.h"

enum { KCHECK_NATIVE = 3 };
extern const struct native_row kcheck_native[KCHECK_NATIVE];

#endif
