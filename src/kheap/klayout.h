// SPDX-License-Identifier: MIT
// The layout of the heap's parts, for its own files: the device's code and the host's planning.
//
// The pool is cut into chunks of 64 KiB. A chunk is free, or a slab of blocks of one class, or part of a run
// of chunks that is one large block. Blocks begin with 16 bytes of ours, so that the program's buffers are
// aligned to 16:
//
//     head canary 8 | encrypted size 8 | the buffer, n bytes | tail canary 8, right behind it | rest
//
// All bookkeeping lies outside of the pool.
#ifndef MOAT_KHEAP_KLAYOUT_H
#define MOAT_KHEAP_KLAYOUT_H

#include <stdint.h>

#define KLAYOUT_MAGIC 0x6d6f61744b486531u

enum {
    KLAYOUT_HEAD = 16,
    KLAYOUT_TAIL = 8,
    KLAYOUT_CHUNK = 65536,
    KLAYOUT_CHUNKS_MORE = 128,
    KLAYOUT_BLOCK_LEAST = 32,
    KLAYOUT_BLOCKS = KLAYOUT_CHUNK / KLAYOUT_BLOCK_LEAST,  // of a chunk, at most
    KLAYOUT_BITMAP = KLAYOUT_BLOCKS / 64,                  // words of a chunk's bitmap
    KLAYOUT_BUCKETS_MOST = 128,
    KLAYOUT_SLAB_MOST = KLAYOUT_CHUNK / 2,  // larger blocks are runs of chunks
};

// The use of a chunk: the low half of its state.
enum {
    KLAYOUT_FREE,
    KLAYOUT_CLASS_FIRST = 1,
    KLAYOUT_CLASSES = 36,
    KLAYOUT_CLAIMED = 64,  // a thread is gathering chunks for a run
    KLAYOUT_RUN,           // the first chunk of a run
    KLAYOUT_BODY,          // the other chunks of a run
};

// Byte arrays. An entry is an address of 8 bytes and a header of 1. A segment has the addresses first, then
// the headers. Tests that try every interleaving use smaller ones.
#ifndef KLAYOUT_GROUP_SIZE
#define KLAYOUT_GROUP_SIZE 32
#define KLAYOUT_FIRST_ENTRIES 2272
#endif
enum {
    KLAYOUT_GROUP = KLAYOUT_GROUP_SIZE,  // entries that are scanned together
    KLAYOUT_ENTRIES = KLAYOUT_FIRST_ENTRIES,
    KLAYOUT_SEGMENT_BYTES = 20480,
    KLAYOUT_LEVELS = 24,
};
_Static_assert(KLAYOUT_ENTRIES % KLAYOUT_GROUP == 0 && KLAYOUT_ENTRIES * 9 <= KLAYOUT_SEGMENT_BYTES,
               "20 KB at first");

struct klayout_array {
    uint64_t control;  // ticket << 32 | entries in use
    uint32_t level;    // it has KLAYOUT_ENTRIES << level entries
    uint32_t growing;  // a thread is adding the next level
    // [i]: the entries that level i added; [0] is unused: those lie in `entries`.
    uint64_t segment[KLAYOUT_LEVELS];
    uint64_t unused[6];
};
_Static_assert(sizeof(struct klayout_array) == 256, "two lines");

#endif
