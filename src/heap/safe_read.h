// SPDX-License-Identifier: MIT
// Reading memory that may be gone: the kernel copies, and stops where nothing is mapped. No signal is raised, so none of the
// program's handlers is needed or in the way. Many pieces in one call: a process writes from scattered places of its own
// memory into one place of its own memory, which is several times quicker than reading piece by piece.
#ifndef MOAT_HEAP_SAFE_READ_H
#define MOAT_HEAP_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>

enum { SAFE_READ_MOST = 512 };  // pieces of one call

bool safe_read_works(void);  // whether the kernel lets us

// Something to be read, and what was: `bytes` at `at`, from `from` on. Fewer than were asked for: there is nothing behind them.
struct safe_read_piece {
    const char *from, *at;
    size_t bytes;
};
// Reads at least `least` bytes of each piece, into `to`, which has room for one at least. Pieces that follow each other closely
// are read as one, which is many times quicker where there are few bytes in between. How many pieces were dealt with.
size_t safe_read_near(struct safe_read_piece *pieces, size_t n, size_t least, char *to, size_t room);

// Copies `size` bytes from each of n addresses to to[0], to[size], ...; read[i]: whether piece i could be read.
void safe_read_pieces(const char *const *from, size_t n, size_t size, char *to, bool *read);

bool safe_read_one(const void *from, size_t size, void *to);

#endif
