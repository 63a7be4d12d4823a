// SPDX-License-Identifier: MIT
// Reading memory that may be gone: the kernel copies, and stops where nothing is mapped. No signal is raised, so none of the
// program's handlers is needed or in the way. Many pieces in one call: a process writes from scattered places of its own
// memory into one place of its own memory, which is several times quicker than reading piece by piece.
#ifndef MOAT_HEAP_GATHER_H
#define MOAT_HEAP_GATHER_H

#include <stdbool.h>
#include <stddef.h>

enum { GATHER_MOST = 512 };  // pieces of one call

bool gather_works(void);  // whether the kernel lets us

// Copies `size` bytes from each of n addresses to to[0], to[size], ...; read[i]: whether piece i could be read.
void gather_pieces(const char *const *from, size_t n, size_t size, char *to, bool *read);

bool gather_one(const void *from, size_t size, void *to);

#endif
