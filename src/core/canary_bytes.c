// SPDX-License-Identifier: MIT
#include "core/canary_bytes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/canary_shape.h"

// Where each kind of canary begins in a buffer's sequence of words. The ranges are disjoint, so that no byte
// of one kind reveals a byte of another.
enum { TAIL_WORDS = 0, HEAD_WORDS = 1 << 29, FAR_WORDS = 1 << 30 };

// The key lies in a page of its own, which is read-only once the key is drawn.
struct key {
    uint64_t word[4];
};
static const struct key *key;

void canary_bytes_draw(uint64_t *words, unsigned count)
{
    struct timespec now;
    if (getrandom(words, count * sizeof *words, GRND_NONBLOCK) == (ssize_t)(count * sizeof *words))
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (unsigned i = 0; i < count; i++)
        words[i] = ((uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u + (uintptr_t)&now + (uint64_t)getpid()) ^
                   (0xd1342543de82ef95u * (i + 1));
}

int canary_bytes_init(void)
{
    if (key)
        return 0;
    long page = sysconf(_SC_PAGESIZE);
    size_t size = page > 0 ? (size_t)page : 4096;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    struct key *k = p;
    canary_bytes_draw(k->word, sizeof k->word / sizeof *k->word);
    if (mprotect(p, size, PROT_READ)) {
        int err = -errno;
        munmap(p, size);
        return err;
    }
    key = k;
    return 0;
}

static uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

// SipHash's rounds over two words, one round for each word. The three numbers of the seed are drawn from the
// final state by three more rounds each.
struct canary_seed canary_bytes_seed(uint64_t address, uint64_t size)
{
    const uint64_t words[2] = {address, size};
    uint64_t v[4] = {key->word[0] ^ 0x736f6d6570736575u, key->word[1] ^ 0x646f72616e646f6du,
                     key->word[0] ^ 0x6c7967656e657261u, key->word[1] ^ 0x7465646279746573u};
    for (unsigned i = 0; i < 2; i++) {
        v[3] ^= words[i];
        mix(v);
        v[0] ^= words[i];
    }
    struct canary_seed seed;
    uint64_t *drawn[3] = {&seed.start, &seed.step, &seed.cover};
    for (unsigned i = 0; i < 3; i++) {
        v[2] ^= 0xff + i + key->word[2 + i % 2];
        mix(v);
        mix(v);
        mix(v);
        *drawn[i] = v[0] ^ v[1] ^ v[2] ^ v[3];
    }
    seed.step |= 1;
    return seed;
}

struct canary_seed canary_bytes_flat_seed(uint64_t address, uint64_t size)
{
    struct canary_seed seed = canary_bytes_seed(address, size);
    uint32_t four = (uint32_t)canary_shape(seed.start);  // what a memset is given
    seed.start = (uint64_t)four << 32 | four;
    seed.step = 0;
    seed.cover = canary_shape_hide(size, seed.start);  // so that the size hidden under it is the same word
    return seed;
}

static uint64_t word(const struct canary_seed *seed, uint32_t n)
{
    return canary_shape(seed->start + n * seed->step);
}

void canary_bytes_head(const struct canary_seed *seed, uint64_t size, uint8_t bytes[CANARY_HEAD])
{
    const uint64_t words[CANARY_HEAD / 8] = {word(seed, HEAD_WORDS), word(seed, HEAD_WORDS + 1),
                                             canary_shape_hide(size, seed->cover),
                                             word(seed, HEAD_WORDS + 2)};
    memcpy(bytes, words, sizeof words);
}

// Returns how many of `count` bytes lie in a word from its byte `skip` on.
static uint32_t part(uint32_t skip, uint32_t count)
{
    return count < 8 - skip ? count : 8 - skip;
}

// Writes the sequence from byte `at` of word `from` on. The middle is written in whole words, because
// sequences can be long.
static void fill(const struct canary_seed *seed, uint32_t from, uint32_t at, uint8_t *bytes, uint32_t count)
{
    uint32_t i = part(at % 8, count), n = from + at / 8;
    uint64_t w = word(seed, n++) >> 8 * (at % 8);
    memcpy(bytes, &w, i);
    for (; i + 8 <= count; i += 8) {
        w = word(seed, n++);
        memcpy(bytes + i, &w, 8);
    }
    w = word(seed, n);
    memcpy(bytes + i, &w, count - i);
}

void canary_bytes_tail(const struct canary_seed *seed, uint8_t *bytes, uint32_t count)
{
    fill(seed, TAIL_WORDS, 0, bytes, count);
}

void canary_bytes_slot(const struct canary_seed *seed, uint32_t at, uint8_t *bytes, uint32_t count)
{
    fill(seed, TAIL_WORDS, at, bytes, count);
}

void canary_bytes_before(const struct canary_seed *seed, uint8_t *bytes, uint32_t count)
{
    fill(seed, HEAD_WORDS, 0, bytes, count);
}

void canary_bytes_far(const struct canary_seed *seed, uint8_t bytes[CANARY_HEAD])
{
    fill(seed, FAR_WORDS, 0, bytes, CANARY_HEAD);
}

// Returns the first of the n bytes that differs from the word as it was written, or n if none does.
static uint32_t same(uint64_t made, const uint8_t *bytes, uint32_t n)
{
    uint64_t now = made;
    memcpy(&now, bytes, n);
    return now == made ? n : (uint32_t)__builtin_ctzll(now ^ made) / 8;
}

uint32_t canary_bytes_slot_same(const struct canary_seed *seed, uint32_t at, const uint8_t *bytes,
                                uint32_t count)
{
    uint32_t first = part(at % 8, count), n = TAIL_WORDS + at / 8, i;
    uint32_t there = same(word(seed, n++) >> 8 * (at % 8), bytes, first);
    if (there < first)
        return there;
    for (i = first; i + 8 <= count; i += 8) {
        uint64_t now, made = word(seed, n++);
        memcpy(&now, bytes + i, 8);
        if (now != made)
            return i + (uint32_t)__builtin_ctzll(now ^ made) / 8;
    }
    return i + same(word(seed, n), bytes + i, count - i);
}

uint32_t canary_bytes_tail_same(const struct canary_seed *seed, const uint8_t *bytes, uint32_t count)
{
    return canary_bytes_slot_same(seed, 0, bytes, count);
}

uint32_t canary_bytes_compare(const uint8_t *now, const uint8_t *made, uint32_t count, uint8_t *touched,
                              uint32_t *first, uint32_t *last)
{
    uint32_t changed = 0;
    memset(touched, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        if (now[i] == made[i])
            continue;
        touched[i / 8] |= (uint8_t)(1 << i % 8);
        *last = i;
        if (!changed++)
            *first = i;
    }
    return changed;
}

uint32_t canary_bytes_run(const uint8_t *touched, uint32_t last)
{
    while (last && touched[(last - 1) / 8] >> (last - 1) % 8 & 1)
        last--;
    return last;
}
