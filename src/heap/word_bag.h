// SPDX-License-Identifier: MIT
// A bag of words: the same one may be in it several times. For one thread. 0 is no word.
#ifndef MOAT_HEAP_WORD_BAG_H
#define MOAT_HEAP_WORD_BAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct word_bag {
    uint64_t *slots;
    size_t room, count;  // room: 0 or a power of two; count <= room / 2
};

int word_bag_add(struct word_bag *b, uint64_t word);    // 0 or -ENOMEM
bool word_bag_take(struct word_bag *b, uint64_t word);  // removes one; whether there was one
bool word_bag_has(const struct word_bag *b, uint64_t word);
void word_bag_free(struct word_bag *b);

#endif
