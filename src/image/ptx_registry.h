// SPDX-License-Identifier: MIT
// The PTX that machine code was compiled from, by the hash of the machine code.
//
// Compilers at run time (Triton, NVRTC, nvJitLink) pass only machine code to the driver. Whoever sees both
// adds the pair here before the driver sees the machine code; image.c then lists the PTX behind a module that
// is known, so that the CPU device executes it and the modes that rewrite work on it. Entries stay until the
// process ends, because a program may load a module again at any time.
//
// Every function may be called by several threads at once.
#ifndef MOAT_IMAGE_PTX_REGISTRY_H
#define MOAT_IMAGE_PTX_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define PTX_REGISTRY_BYTES ((uint64_t)1 << 30)  // of all texts together

// Copies the text. Machine code that was linked from several texts has all of them, with a NUL between two;
// what follows a NUL and does not begin as PTX is left out. A second call for the same code is ignored.
// Returns 0; -EINVAL if code is no ELF file or ptx does not begin as PTX; -ENOSPC if the texts would take
// more than PTX_REGISTRY_BYTES; or -ENOMEM.
int ptx_registry_add(struct str code, struct str ptx);

// Finds the texts of a module's machine code, also in the store on disk (ptx_store.h). They stay valid until
// the process ends, and a NUL follows the last. Returns false if they are not known.
bool ptx_registry_find(struct str code, struct str *ptx);

// Takes the first text off `rest`, which is as ptx_registry_find has returned it. Returns false at its end.
bool ptx_registry_next(struct str *rest, struct str *text);

uint32_t ptx_registry_count(void);

// For tests: removes all entries, whose texts become invalid.
void ptx_registry_forget(void);

#endif
