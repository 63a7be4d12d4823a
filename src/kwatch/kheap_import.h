// SPDX-License-Identifier: MIT
// Finds out whether an image calls malloc or free inside kernels. Every image that a program loads in canary
// mode is checked, so nothing is parsed. If the device would run machine code, its symbol table decides,
// which names the functions that the driver has to provide; otherwise the declarations in the PTX, which can
// only call functions that it declares.
#ifndef MOAT_KWATCH_KHEAP_IMPORT_H
#define MOAT_KWATCH_KHEAP_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

// For a device of architecture `arch` (90 for sm_90): an image of which only the address is known, one of
// known length, and a file. They return false for what cannot be read: the driver will report that.
bool kheap_import_memory(const void *image, unsigned arch);
bool kheap_import_bytes(const void *bytes, size_t size, unsigned arch);
bool kheap_import_file(const char *path, unsigned arch);

// The same for a cubin and for a PTX text.
bool kheap_import_cubin(struct str cubin);
bool kheap_import_ptx(struct str text);

#endif
