// SPDX-License-Identifier: MIT
// Whether an image calls the malloc or free of kernels. It is asked of every image that a program loads in canary mode, so
// nothing is parsed for it: where the device would run machine code its table of symbols tells, which names what is left
// for the driver to fill in; else the declarations in the PTX, which cannot call a function that they do not have.
#ifndef MOAT_KWATCH_KHEAP_IMPORT_H
#define MOAT_KWATCH_KHEAP_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

// For a device of architecture `arch`, 90 for sm_90: an image of which only the address is known, one of known length, and a
// file. What cannot be read calls nothing: the driver will say so.
bool kheap_import_memory(const void *image, unsigned arch);
bool kheap_import_bytes(const void *bytes, size_t size, unsigned arch);
bool kheap_import_file(const char *path, unsigned arch);

// The same of a cubin and of a PTX text.
bool kheap_import_cubin(struct str cubin);
bool kheap_import_ptx(struct str text);

#endif
