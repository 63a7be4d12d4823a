// SPDX-License-Identifier: MIT
// Each entry is a seqlock: a writer makes `turn` odd while it stores; a reader uses what it has copied if
// `turn` was even and has not changed. Neither waits: an entry that is being written counts as another
// launch's, and is not written by a second thread. In the child of a fork an entry may stay so for good.
#include "launch/launch_memo.h"

#include <stdatomic.h>
#include <string.h>

#include "launch/launch_call.h"

enum { WORDS = LAUNCH_MEMO_HEAD + LAUNCH_MEMO_BYTES / 8 };

struct entry {
    _Alignas(64) _Atomic uint64_t turn;
    _Atomic uint64_t head[LAUNCH_MEMO_HEAD];
    _Atomic uint64_t answer[LAUNCH_MEMO_ANSWER];
    _Atomic uint64_t parameter[LAUNCH_MEMO_BYTES / 8];
};
static struct entry entries[LAUNCH_MEMO_ENTRIES];
// For each entry some bits of the hash of the launch that was to be kept last. This table stays in the
// processor's nearest caches, so that launches that are made once do not wait for an entry. Relaxed: what is
// found here is only a hint.
static _Atomic uint32_t seen[LAUNCH_MEMO_ENTRIES];

// How many launches in a row were new, for all that share a place by the hash of `what`. From NEW on only one
// of NEW launches is looked at: the tables above are too large for the nearest caches where all lines of them
// are in use, and the next atomic operation of the launch would wait for a line. Relaxed: a hint too.
enum { PLACES = 256, NEW = 8 };
static _Atomic uint8_t news[PLACES];
_Static_assert(PLACES == 1 << (64 - 56), "the first bits of a hash are the number of a place");

_Static_assert(sizeof(struct entry) == 320, "five cache lines");
// The number of an answer's words is kept with the shared bytes and the parameters' size, 4 bits of 64.
_Static_assert(LAUNCH_MEMO_ANSWER < 16 && LAUNCH_MEMO_BYTES < 1 << 12, "both fit beside the shared bytes");
enum { SIZE_BITS = 12, COUNT_SHIFT = 60, LAST = LAUNCH_MEMO_HEAD - 1 };

static uint64_t pair_of(uint32_t a, uint32_t b)
{
    return (uint64_t)a << 32 | b;
}

static uint64_t mix(uint64_t h)
{
    h *= 0x9e3779b97f4a7c15u;
    return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
}

static uint32_t number_of(const struct launch_memo_key *key)
{
    return (uint32_t)(key->hash >> 52);
}
_Static_assert(LAUNCH_MEMO_ENTRIES == 1 << (64 - 52), "the first bits of a hash are the number of an entry");

static bool was_seen(const struct launch_memo_key *key)
{
    return atomic_load_explicit(&seen[number_of(key)], memory_order_relaxed) == (uint32_t)key->hash;
}

static _Atomic uint8_t *news_of(uint64_t what)
{
    return &news[what * 0x9e3779b97f4a7c15u >> 56];
}

// Returns whether a launch is looked at.
static bool is_looked_at(uint64_t what)
{
    uint8_t n = atomic_load_explicit(news_of(what), memory_order_relaxed);
    if (n < NEW)
        return true;
    n = n < 2 * NEW - 1 ? n + 1 : NEW;
    atomic_store_explicit(news_of(what), n, memory_order_relaxed);
    return n == NEW;
}

static void note_new(const struct launch_memo_key *key, bool is_new)
{
    uint8_t n = atomic_load_explicit(news_of(key->word[0]), memory_order_relaxed);
    uint8_t now = !is_new ? 0 : n < NEW ? n + 1 : n;
    if (n != now)
        atomic_store_explicit(news_of(key->word[0]), now, memory_order_relaxed);
}

void launch_memo_ask(struct launch_memo_key *key, const void *what, uint64_t version,
                     const struct launch_call *l, const void *bytes, size_t size)
{
    key->words = 0;
    if (size > LAUNCH_MEMO_BYTES || !is_looked_at((uintptr_t)what))
        return;
    uint64_t a = key->word[2] = pair_of(l->grid[0], l->grid[1]);
    uint64_t b = key->word[3] = pair_of(l->grid[2], l->block[0]);
    uint64_t c = key->word[4] = pair_of(l->block[1], l->block[2]);
    uint64_t last = key->word[LAST] = (uint64_t)l->shared << SIZE_BITS | size;
    key->word[0] = (uintptr_t)what;
    key->word[1] = version;
    // The processor computes the products side by side, as none depends on another. The version is not part
    // of the sum, so that a new answer takes the outdated one's place.
    uint64_t h = (uintptr_t)what + a * 3 + b * 5 + c * 7 + last * 9, factor = 11, word;
    uint32_t n = LAUNCH_MEMO_HEAD;
    for (; size >= 8; size -= 8, bytes = (const char *)bytes + 8, factor += 2) {
        memcpy(&word, bytes, 8);
        h += word * factor;
        key->word[n++] = word;
    }
    word = 0;
    if (size == 4)
        memcpy(&word, bytes, 4);
    else if (size)
        memcpy(&word, bytes, size);
    if (size)
        key->word[n++] = word;
    key->words = n;
    key->hash = mix(h + word * factor);
}

// The words of a key in an entry. The last one of the head also counts the answer's.
static bool is_same(const struct entry *e, const struct launch_memo_key *key, uint64_t last)
{
    // Acquire, all loads but the last one of launch_memo_find: they pair with the releases in
    // launch_memo_keep, and keep the second load of `turn` after them.
    uint64_t differ = last ^ key->word[LAST];
#pragma GCC unroll 5
    for (uint32_t i = 0; i < LAST; i++)
        differ |= atomic_load_explicit(&e->head[i], memory_order_acquire) ^ key->word[i];
    for (uint32_t i = LAUNCH_MEMO_HEAD; i < key->words && !differ; i++)
        differ |=
            atomic_load_explicit(&e->parameter[i - LAUNCH_MEMO_HEAD], memory_order_acquire) ^ key->word[i];
    return !differ;
}

uint32_t launch_memo_find(const struct launch_memo_key *key, uint64_t *answer)
{
    if (!key->words || !was_seen(key))
        return 0;
    const struct entry *e = &entries[number_of(key)];
    uint64_t turn = atomic_load_explicit(&e->turn, memory_order_acquire);
    uint64_t last = atomic_load_explicit(&e->head[LAST], memory_order_acquire);
    uint32_t n = (uint32_t)(last >> COUNT_SHIFT);
    if (turn % 2 || !n || n > LAUNCH_MEMO_ANSWER || !is_same(e, key, last & ~(UINT64_C(15) << COUNT_SHIFT)))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        answer[i] = atomic_load_explicit(&e->answer[i], memory_order_acquire);
    note_new(key, false);
    return atomic_load_explicit(&e->turn, memory_order_relaxed) == turn ? n : 0;
}

void launch_memo_keep(const struct launch_memo_key *key, const uint64_t *answer, uint32_t words)
{
    if (!key->words || !words || words > LAUNCH_MEMO_ANSWER)
        return;
    struct entry *e = &entries[number_of(key)];
    bool is_new = !was_seen(key);
    note_new(key, is_new);
    if (is_new) {
        atomic_store_explicit(&seen[number_of(key)], (uint32_t)key->hash, memory_order_relaxed);
        return;
    }
    uint64_t turn = atomic_load_explicit(&e->turn, memory_order_relaxed);
    // Acquire: orders our stores after another writer's. The releases below keep our stores after this
    // exchange and before the last store of `turn`; they pair with launch_memo_find.
    if (turn % 2 || !atomic_compare_exchange_strong_explicit(&e->turn, &turn, turn + 1, memory_order_acquire,
                                                             memory_order_relaxed))
        return;
    for (uint32_t i = 0; i < LAST; i++)
        atomic_store_explicit(&e->head[i], key->word[i], memory_order_release);
    atomic_store_explicit(&e->head[LAST], key->word[LAST] | (uint64_t)words << COUNT_SHIFT,
                          memory_order_release);
    for (uint32_t i = LAUNCH_MEMO_HEAD; i < key->words; i++)
        atomic_store_explicit(&e->parameter[i - LAUNCH_MEMO_HEAD], key->word[i], memory_order_release);
    for (uint32_t i = 0; i < words; i++)
        atomic_store_explicit(&e->answer[i], answer[i], memory_order_release);
    atomic_store_explicit(&e->turn, turn + 2, memory_order_release);
}
