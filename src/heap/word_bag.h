// SPDX-License-Identifier: MIT
// A multiset of words, for one thread. 0 is not a word.
//
// What holds between two operations (word_bag_valid):
//   room is 0 or a power of two; 2 count <= room; count slots are not 0
//   from the slot of a word's hash to the one where it is, no slot is 0
#ifndef MOAT_HEAP_WORD_BAG_H
#define MOAT_HEAP_WORD_BAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct word_bag {
    uint64_t *slots;
    size_t room, count;
};

int word_bag_add(struct word_bag *b, uint64_t word);    // 0 or -ENOMEM
bool word_bag_take(struct word_bag *b, uint64_t word);  // removes one; returns whether there was one
bool word_bag_has(const struct word_bag *b, uint64_t word);
void word_bag_free(struct word_bag *b);

bool word_bag_valid(const struct word_bag *b);

#endif
