// SPDX-License-Identifier: MIT
// Blocks that the program freed and that wait before they are given back: whoever writes into one of them is found, and so is a
// second free, for certain. A queue for each thread, bounded in blocks and in bytes. For the thread that owns it.
#ifndef MOAT_HEAP_WAIT_H
#define MOAT_HEAP_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAP_WAIT_BLOCKS = 512, HEAP_WAIT_FILLED = 512 };

struct heap_wait {
    void **blocks;  // HEAP_WAIT_BLOCKS; mapped at the first use
    uint32_t first, count;
    uint64_t bytes;
};

// Whether it fits within `limit` bytes in all, others leaving.
static inline bool heap_wait_takes(uint64_t size, uint64_t limit)
{
    return size <= limit / 4;
}

int heap_wait_add(struct heap_wait *w, void *block,
                  uint64_t size);  // -ENOMEM: not added. There must be room.
// The oldest, if there are too many for `limit` and a further block of `room` bytes; NULL: there are not.
void *heap_wait_oldest(const struct heap_wait *w, uint64_t limit, uint64_t room);
void heap_wait_drop(struct heap_wait *w, uint64_t size);  // the oldest

// What a freed block is filled with: its first and last bytes, so that large ones cost no more than small ones.
void heap_wait_fill(void *block, uint64_t size);
// The first byte that is not as it was filled, or -1.
int64_t heap_wait_changed(const void *block, uint64_t size);

#endif
