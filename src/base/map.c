// SPDX-License-Identifier: MIT
#include "base/map.h"

#include <assert.h>
#include <errno.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

uint32_t map_hash(struct str key)
{
    return (uint32_t)XXH3_64bits(key.ptr, key.len);
}

static struct map_slot *find_slot(const struct map *m, struct str key, uint32_t hash)
{
    for (uint32_t i = hash & m->mask;; i = (i + 1) & m->mask) {
        struct map_slot *s = &m->slots[i];
        if (!s->key)
            return s;
        if (s->hash == hash && s->len == key.len && memcmp(s->key, key.ptr, key.len) == 0)
            return s;
    }
}

uint32_t map_get(const struct map *m, struct str key)
{
    if (!m->slots)
        return MAP_NONE;
    const struct map_slot *s = find_slot(m, key, map_hash(key));
    return s->key ? s->value : MAP_NONE;
}

static int grow(struct map *m)
{
    struct map bigger = {.mask = m->slots ? m->mask * 2 + 1 : 63, .count = m->count};
    bigger.slots = mem_zalloc((size_t)bigger.mask + 1, sizeof *bigger.slots);
    if (!bigger.slots)
        return -ENOMEM;
    for (uint32_t i = 0; m->slots && i <= m->mask; i++) {
        const struct map_slot *s = &m->slots[i];
        if (s->key)
            *find_slot(&bigger, (struct str){s->key, s->len}, s->hash) = *s;
    }
    mem_free(m->slots);
    *m = bigger;
    return 0;
}

int map_put(struct map *m, struct str key, uint32_t value)
{
    assert(key.ptr && key.len <= UINT32_MAX);
    if (!m->slots || m->count >= m->mask / 4 * 3) {
        int err = grow(m);
        if (err)
            return err;
    }
    uint32_t hash = map_hash(key);
    struct map_slot *s = find_slot(m, key, hash);
    if (!s->key)
        m->count++;
    *s = (struct map_slot){key.ptr, (uint32_t)key.len, hash, value};
    return 0;
}

void map_free(struct map *m)
{
    mem_free(m->slots);
    *m = (struct map){0};
}
