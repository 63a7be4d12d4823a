// SPDX-License-Identifier: MIT
// The PTX behind the program's modules. A text is copied when its image is loaded and parsed when one
// of its kernels is first looked up; equal texts are kept once. What was parsed stays for the life of
// the process: the report at its end needs the places of accesses.
//
//   plan ──▶ pending image of the thread ──▶ the driver loads it ──▶ image of a handle ──▶ texts
#ifndef MOAT_EXPLAIN_EXPLAIN_TEXT_H
#define MOAT_EXPLAIN_EXPLAIN_TEXT_H

#include <stddef.h>

#include "ptx/ptx.h"
#include "rewrite/rewrite_plan.h"

struct explain_text;

// Reads the texts of an image that the calling thread is about to load.
void explain_text_plan(const struct rewrite_origin *origin);

// The functions below require the lock of explain.c.

// The driver has loaded the calling thread's pending image under this handle.
void explain_text_made(const void *handle);
void explain_text_alias(const void *library, const void *module);  // they have the same texts
void explain_text_gone(const void *handle);

// Finds a kernel with a body in the texts of a handle, and parses them if they were not. Returns NULL
// if there is none. The answer stays valid until the process ends.
const struct ptx_func *explain_text_find(const void *handle, const char *name, const struct ptx_module **m);

#endif
