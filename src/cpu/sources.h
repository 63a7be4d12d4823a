// SPDX-License-Identifier: MIT
// The PTX of a program, extracted from an image that an application loads.
#ifndef MOAT_CPU_SOURCES_H
#define MOAT_CPU_SOURCES_H

#include "cpu/jit.h"

// Texts that belong together: one, or one for each object of a program that was linked for the device.
struct sources {
    unsigned count;
    struct exec_text *texts;  // owns names and texts; a NUL follows each text
};

// Reads an image without a length: PTX up to its NUL, a fatbin, a wrapper around one or several fatbins, or
// the result of cuLinkComplete.
CUresult sources_from_memory(struct sources *s, const void *image, struct jit *jit);
// Reads an image with a length: as above except for wrappers, and also host files with exactly one module.
CUresult sources_from_bytes(struct sources *s, const char *name, const void *bytes, size_t len,
                            struct jit *jit);
CUresult sources_from_file(struct sources *s, const char *path, struct jit *jit);
void sources_free(struct sources *s);

// Returns whether bytes, or the file at `name` if bytes is NULL, hold the device's runtime as machine code
// that can be linked. The CPU device executes its calls itself.
bool sources_have_runtime(const char *name, const void *bytes, size_t len);

CUresult sources_add(struct sources *s, const char *name, struct str text);  // copies name and text
// Appends the texts of `from`, which is empty afterwards.
CUresult sources_append(struct sources *s, struct sources *from);

// Packs the texts into the result of cuLinkComplete: *size bytes, to be freed with mem_free. Returns NULL if
// out of memory.
void *sources_pack(const struct sources *s, size_t *size);

#endif
