// SPDX-License-Identifier: MIT
// The PTX of a program, taken out of what an application gives us to load.
#ifndef MOAT_CPU_SOURCE_H
#define MOAT_CPU_SOURCE_H

#include "cpu/jit.h"

// Texts that belong together: one, or one for each object of a program that was linked on the device's side.
struct source {
    unsigned count;
    struct exec_text *texts;  // names and texts are the source's own; a NUL follows each text
};

// PTX up to its NUL, a fatbin, a wrapper around one or several, or what cuLinkComplete made.
CUresult source_from_memory(struct source *s, const void *image, struct jit *jit);
// Of a length that is known: as above but no wrapper, and host files with exactly one module too.
CUresult source_from_bytes(struct source *s, const char *name, const void *bytes, size_t len,
                           struct jit *jit);
CUresult source_from_file(struct source *s, const char *path, struct jit *jit);
void source_free(struct source *s);

CUresult source_add(struct source *s, const char *name, struct str text);  // copies both
// Appends what `from` has, which is empty then.
CUresult source_append(struct source *s, struct source *from);

// What cuLinkComplete gives out: *size bytes, to be freed with mem_free. NULL when out of memory.
void *source_pack(const struct source *s, size_t *size);

#endif
