// SPDX-License-Identifier: MIT
// Open addressing, linear probing; removal closes the gap, so that lookups end at the first empty slot.
#include "heap/word_bag.h"

#include <errno.h>

#include "base/checked.h"
#include "heap/guarded.h"

enum { LEAST_ROOM = 1024 };

// Returns the slot where the search for a word starts: the upper bits of a product, which all bits of the
// word reach, as words of one address differ in their upper bits only.
static size_t first_slot(const struct word_bag *b, uint64_t word)
{
    return word * 0x9e3779b97f4a7c15u >> (64 - __builtin_ctzll(b->room));
}

static void put(struct word_bag *b, uint64_t word)
{
    size_t i = first_slot(b, word);
    while (b->slots[i])
        i = (i + 1) & (b->room - 1);
    b->slots[i] = word;
}

static int grow(struct word_bag *b)
{
    struct word_bag larger = {.room = b->room ? b->room * 2 : LEAST_ROOM, .count = b->count};
    larger.slots = guarded_map(larger.room * sizeof *larger.slots);
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < b->room; i++)
        if (b->slots[i])
            put(&larger, b->slots[i]);
    guarded_unmap(b->slots, b->room * sizeof *b->slots);
    *b = larger;
    checked_assert(word_bag_valid(b));
    return 0;
}

int word_bag_add(struct word_bag *b, uint64_t word)
{
    checked_assert(word);
    if ((b->count + 1) * 2 > b->room && grow(b))
        return -ENOMEM;
    put(b, word);
    b->count++;
    return 0;
}

static size_t find(const struct word_bag *b, uint64_t word)
{
    size_t i = first_slot(b, word);
    while (b->slots[i] && b->slots[i] != word)
        i = (i + 1) & (b->room - 1);
    return i;
}

bool word_bag_has(const struct word_bag *b, uint64_t word)
{
    return b->count && b->slots[find(b, word)];
}

bool word_bag_take(struct word_bag *b, uint64_t word)
{
    if (!b->count)
        return false;
    size_t hole = find(b, word);
    if (!b->slots[hole])
        return false;
    for (size_t i = hole;;) {
        i = (i + 1) & (b->room - 1);
        if (!b->slots[i])
            break;
        // A word may move back to the hole unless its first slot lies behind the hole.
        if (((i - first_slot(b, b->slots[i])) & (b->room - 1)) >= ((i - hole) & (b->room - 1))) {
            b->slots[hole] = b->slots[i];
            hole = i;
        }
    }
    b->slots[hole] = 0;
    b->count--;
    return true;
}

bool word_bag_valid(const struct word_bag *b)
{
    size_t words = 0;
    if (b->room & (b->room - 1) || b->count * 2 > b->room)
        return false;
    for (size_t i = 0; i < b->room; i++) {
        if (!b->slots[i])
            continue;
        words++;
        for (size_t on_way = first_slot(b, b->slots[i]); on_way != i; on_way = (on_way + 1) & (b->room - 1))
            if (!b->slots[on_way])
                return false;
    }
    return words == b->count;
}

void word_bag_free(struct word_bag *b)
{
    guarded_unmap(b->slots, b->room * sizeof *b->slots);
    *b = (struct word_bag){0};
}
