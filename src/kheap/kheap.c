// SPDX-License-Identifier: MIT
#include "kheap/kheap.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "kheap/klayout.h"

_Static_assert(offsetof(struct kheap, pending) % 128 == 0, "in a line of its own");

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

// Returns where a part of this size begins, and advances *at behind it.
static uint64_t part(uint64_t *at, uint64_t bytes)
{
    uint64_t from = *at;
    *at = round_up(from + bytes, 128);
    return from;
}

static uint32_t bucket_count(uint64_t chunks)
{
    uint32_t n = 1;
    while (n < KLAYOUT_BUCKETS_MOST && n * 2 <= chunks / 16)
        n *= 2;
    return n;
}

static int plan(struct kheap *k, uint64_t limit, uint32_t arrays, const uint64_t keys[KHEAP_KEYS], bool found)
{
    memset(k, 0, sizeof *k);
    if (arrays < KHEAP_ARRAYS_LEAST || arrays > KHEAP_ARRAYS_MOST || limit > (uint64_t)1 << 44)
        return -EINVAL;
    // Canaries, blocks waiting for release and rounding to classes do not count against the program's limit.
    uint64_t chunks = (limit + limit / 4) / KLAYOUT_CHUNK + KLAYOUT_CHUNKS_MORE;
    k->magic = KLAYOUT_MAGIC;
    memcpy(k->key, keys, sizeof k->key);
    // The mark of freed buffers must change something.
    k->key[KHEAP_KEYS - 1] |= 1;
    k->chunks = (uint32_t)chunks;
    k->arrays = arrays;
    k->buckets = bucket_count(chunks);
    k->hint_words = (uint32_t)((chunks + 63) / 64);
    uint64_t at = 0;
    part(&at, sizeof *k);
    k->counts = part(&at, KHEAP_COUNTS * sizeof(struct kheap_counts));
    k->arrays_at = part(&at, arrays * sizeof(struct klayout_array));
    k->states = part(&at, chunks * 8);
    k->runs = part(&at, chunks * 4);
    k->free_hints = part(&at, k->hint_words * (uint64_t)8);
    k->class_hints = part(&at, KLAYOUT_CLASSES * k->hint_words * (uint64_t)8);
    k->actives = part(&at, KLAYOUT_CLASSES * (k->buckets + 2) * (uint64_t)4);
    k->entries = part(&at, arrays * (uint64_t)KLAYOUT_SEGMENT_BYTES);
    k->bounds = found ? part(&at, chunks * KLAYOUT_BLOCKS * 8) : 0;
    k->clear = at;
    k->bitmaps = part(&at, chunks * KLAYOUT_BITMAP * 8);
    k->pool = at;
    k->bytes = at + (chunks + 1) * KLAYOUT_CHUNK;
    return 0;
}

int kheap_plan(struct kheap *k, uint64_t limit, uint32_t arrays, const uint64_t keys[KHEAP_KEYS])
{
    return plan(k, limit, arrays, keys, false);
}

int kheap_plan_found(struct kheap *k, uint64_t limit, uint32_t arrays, const uint64_t keys[KHEAP_KEYS])
{
    return plan(k, limit, arrays, keys, true);
}

void kheap_place(struct kheap *k, uint64_t base, uint64_t ring)
{
    uint64_t *const parts[] = {&k->counts,     &k->arrays_at,   &k->states,  &k->runs,    &k->bitmaps,
                               &k->free_hints, &k->class_hints, &k->actives, &k->entries, &k->pool};
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        *parts[i] += base;
    k->bounds += k->bounds ? base : 0;
    k->base = base;
    error_ring_writer_start(&k->errors, ring, KHEAP_RECORDS);
    k->pool = round_up(k->pool, KLAYOUT_CHUNK);
}

uint64_t kheap_ring_bytes(void)
{
    return error_ring_bytes(KHEAP_RECORDS);
}

bool kheap_record_read(const struct error_ring_record *from, struct kheap_record *r)
{
    const uint64_t *w = from->payload;
    *r = (struct kheap_record){
        .kind = from->kind,
        .flags = (uint32_t)w[KHEAP_WORD_FLAGS],
        .address = from->address,
        .size = w[KHEAP_WORD_SIZE],
        .found_head = w[KHEAP_WORD_FOUND_HEAD],
        .found_size = w[KHEAP_WORD_FOUND_SIZE],
        .found_tail = w[KHEAP_WORD_FOUND_TAIL],
        .made_head = w[KHEAP_WORD_MADE_HEAD],
        .made_size = w[KHEAP_WORD_MADE_SIZE],
        .made_tail = w[KHEAP_WORD_MADE_TAIL],
        .grid = from->grid,
        .array = (uint32_t)(w[KHEAP_WORD_FLAGS] >> 32),
        .capacity = (uint32_t)w[KHEAP_WORD_CAPACITY],
    };
    memcpy(r->block, from->block, sizeof r->block);
    memcpy(r->thread, from->thread, sizeof r->thread);
    return from->client == ERROR_RING_KHEAP && r->kind >= KHEAP_OVERRUN && r->kind <= KHEAP_BAD_FREE;
}
