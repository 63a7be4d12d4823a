// SPDX-License-Identifier: MIT
// A map from strings to small numbers: open addressing, linear probing, never more than 3/4 full. Keys are
// not copied: they must outlive the map.
#ifndef MOAT_BASE_MAP_H
#define MOAT_BASE_MAP_H

#include <stdint.h>

#include "base/str.h"

#define MAP_NONE UINT32_MAX

struct map_slot {
    const char *key;  // NULL: empty
    uint32_t len;
    uint32_t hash;
    uint32_t value;
};

struct map {
    struct map_slot *slots;
    uint32_t count, mask;  // mask + 1 slots, a power of two, or 0 before the first insertion
};

uint32_t map_hash(struct str key);
uint32_t map_get(const struct map *m, struct str key);       // MAP_NONE if absent
int map_put(struct map *m, struct str key, uint32_t value);  // replaces; 0 or -ENOMEM
void map_free(struct map *m);

#endif
