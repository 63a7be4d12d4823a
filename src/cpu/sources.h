// SPDX-License-Identifier: MIT
// The PTX of a program, taken out of what an application gives us to load.
#ifndef MOAT_CPU_SOURCES_H
#define MOAT_CPU_SOURCES_H

#include "cpu/jit.h"

// Texts that belong together: one, or one for each object of a program that was linked on the device's side.
struct sources {
    unsigned count;
    struct exec_text *texts;  // names and texts are its own; a NUL follows each text
};

// PTX up to its NUL, a fatbin, a wrapper around one or several, or what cuLinkComplete made.
CUresult sources_from_memory(struct sources *s, const void *image, struct jit *jit);
// Of a length that is known: as above but no wrapper, and host files with exactly one module too.
CUresult sources_from_bytes(struct sources *s, const char *name, const void *bytes, size_t len,
                            struct jit *jit);
CUresult sources_from_file(struct sources *s, const char *path, struct jit *jit);
void sources_free(struct sources *s);

CUresult sources_add(struct sources *s, const char *name, struct str text);  // copies both
// Appends what `from` has, which is empty then.
CUresult sources_append(struct sources *s, struct sources *from);

// What cuLinkComplete gives out: *size bytes, to be freed with mem_free. NULL when out of memory.
void *sources_pack(const struct sources *s, size_t *size);

#endif
