// SPDX-License-Identifier: MIT
// A small cache in front of a map, for keys of at most 16 bytes: such a key is two words and its length, so a
// lookup takes no call. It suits only maps from which nothing is removed.
#ifndef MOAT_PTX_QUICK_H
#define MOAT_PTX_QUICK_H

#include "base/map.h"

enum { QUICK_BITS = 8 };

struct quick_slot {
    uint64_t head, tail;  // first and last bytes of the key; they may overlap
    uint32_t len, value;  // len 0: empty
};

struct quick {
    struct quick_slot slots[1 << QUICK_BITS];
};

// Packs a key. Returns false if it is empty or too long.
static inline bool quick_key(struct str s, struct quick_slot *out)
{
    *out = (struct quick_slot){.len = (uint32_t)s.len};
    if (s.len - 1 >= 16)
        return false;
    if (s.len >= 8) {
        memcpy(&out->head, s.ptr, 8);
        memcpy(&out->tail, s.ptr + s.len - 8, 8);
    } else if (s.len >= 4) {
        memcpy(&out->head, s.ptr, 4);
        memcpy(&out->tail, s.ptr + s.len - 4, 4);
    } else {
        out->head = (uint8_t)s.ptr[0];
        out->tail = (uint64_t)(uint8_t)s.ptr[s.len / 2] << 8 | (uint8_t)s.ptr[s.len - 1];
    }
    return true;
}

// Returns what map_get would.
static inline uint32_t quick_get(struct quick *q, const struct map *m, struct str key)
{
    struct quick_slot k;
    if (!quick_key(key, &k))
        return map_get(m, key);
    uint64_t hash = (k.head ^ (k.tail << 7 | k.tail >> 57)) * 0x9E3779B97F4A7C15u;
    struct quick_slot *slot = &q->slots[hash >> (64 - QUICK_BITS)];
    if (slot->len == k.len && slot->head == k.head && slot->tail == k.tail)
        return slot->value;
    k.value = map_get(m, key);
    if (k.value != MAP_NONE)
        *slot = k;
    return k.value;
}

#endif
