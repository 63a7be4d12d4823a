// SPDX-License-Identifier: MIT
// Reads memory that may be unmapped: the kernel copies, and stops where nothing is mapped. No signal is
// raised, so the program's handlers neither help nor interfere. Many pieces are read in one call: the process
// writes from scattered places of its own memory into one place of its own memory, which is several times
// faster than reading piece by piece.
#ifndef MOAT_HEAP_SAFE_READ_H
#define MOAT_HEAP_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>

enum { SAFE_READ_MOST = 512 };  // pieces per call

bool safe_read_works(void);  // whether the kernel allows it

// A piece to be read from `from`, and the result: `bytes` bytes at `at`. Fewer than requested: the rest is
// unreadable.
struct safe_read_piece {
    const char *from, *at;
    size_t bytes;
};
// Reads at least `least` bytes of each piece into `to`, which has room for at least one. Pieces that lie
// close together are read as one, which is many times faster where few bytes are in between. Returns how many
// pieces were processed.
size_t safe_read_near(struct safe_read_piece *pieces, size_t n, size_t least, char *to, size_t room);

// Copies `size` bytes from each of n addresses to to[0], to[size], ...; sets read[i] to whether piece i was
// readable.
void safe_read_pieces(const char *const *from, size_t n, size_t size, char *to, bool *read);

bool safe_read_one(const void *from, size_t size, void *to);

#endif
