// SPDX-License-Identifier: MIT
// Blocks that the program freed and that wait before they are given back: whoever writes into one of them is found, and so is a
// second free, for certain. A queue for each thread, bounded in blocks and in bytes. Its thread puts and takes; others may
// look at it when the process ends:
//
//   thread:  entry = ...; put++ (release)        taken++; [release]; the block may be used anew
//   other:   look at put, the entry, the block; [acquire]; look at taken: if it has not passed the entry, the block waited
//
// What holds between two operations of the thread:
//   taken <= put <= taken + HEAP_WAIT_BLOCKS; bytes is the sum of heap_wait_cost over the entries [taken, put)
#ifndef MOAT_HEAP_WAIT_H
#define MOAT_HEAP_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAP_WAIT_BLOCKS = 512, HEAP_WAIT_FILLED = 512 };

// What is known of a block that nobody may have written to: not from its head, which somebody may.
struct heap_wait_entry {
    char *block;
    uint64_t packed;  // see block_pack
};

struct heap_wait_slot {
    char *_Atomic block;
    _Atomic uint64_t packed;
};

struct heap_wait {
    struct heap_wait_slot *_Atomic slots;  // HEAP_WAIT_BLOCKS; mapped at the first use
    _Atomic uint64_t put, taken;
    uint64_t bytes;
};

// Whether it fits within `limit` bytes in all, others leaving.
static inline bool heap_wait_takes(uint64_t size, uint64_t limit)
{
    return size <= limit / 4;
}

uint64_t heap_wait_cost(uint64_t packed);  // bytes of the bound that a block takes

int heap_wait_add(struct heap_wait *w, struct heap_wait_entry e);  // -ENOMEM: not added. There must be room.
// Removes the oldest, if there are too many for `limit` and a further block of `room` bytes; false: there are not.
bool heap_wait_oldest(struct heap_wait *w, uint64_t limit, uint64_t room, struct heap_wait_entry *e);
void heap_wait_forget(struct heap_wait *w);

// What a freed block is filled with: its first and last bytes, so that large ones cost no more than small ones.
void heap_wait_fill(void *block, uint64_t size);
// The first byte that is not as it was filled, or -1.
int64_t heap_wait_changed(const void *block, uint64_t size);

// For any thread: the entry with a number, from taken on; false: there is none. Whatever is read of its block counts only if
// it still waits afterwards. heap_wait_copy takes the block's filled bytes, which heap_wait_copied_changed judges.
enum { HEAP_WAIT_COPY = 2 * HEAP_WAIT_FILLED };
bool heap_wait_entry_at(struct heap_wait *w, uint64_t i, struct heap_wait_entry *e);
bool heap_wait_still(struct heap_wait *w, uint64_t i);
bool heap_wait_copy(const void *block, uint64_t size, unsigned char *copy);
int64_t heap_wait_copied_changed(const unsigned char *copy, uint64_t size);

#endif
