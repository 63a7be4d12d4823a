// SPDX-License-Identifier: MIT
#include "ring/error_ring.h"

#include <assert.h>
#include <string.h>

static bool is_size(uint64_t size)
{
    return size && size <= ERROR_RING_RECORDS_MOST && !(size & (size - 1));
}

uint64_t error_ring_bytes(uint64_t size)
{
    return is_size(size) ? sizeof(struct error_ring) + size * sizeof(struct error_ring_record) : 0;
}

void error_ring_writer_start(struct error_ring_writer *w, uint64_t ring, uint64_t size)
{
    assert(is_size(size));
    *w = (struct error_ring_writer){.ring = ring, .size = size};
}

void error_ring_reader_start(struct error_ring_reader *r, struct error_ring *ring, uint64_t size)
{
    assert(is_size(size));
    *r = (struct error_ring_reader){.ring = ring, .size = size, .end = size};
}

// --- records read out of order -----------------------------------------------------------------------------

static uint64_t *word_of(struct error_ring_reader *r, uint64_t n)
{
    return &r->ahead[n % r->size / 64];
}

static bool is_ahead(const struct error_ring_reader *r, uint64_t n)
{
    return r->ahead[n % r->size / 64] >> n % r->size % 64 & 1;
}

static void set_ahead(struct error_ring_reader *r, uint64_t n)
{
    *word_of(r, n) |= (uint64_t)1 << n % r->size % 64;
}

static void clear_ahead(struct error_ring_reader *r, uint64_t n)
{
    *word_of(r, n) &= ~((uint64_t)1 << n % r->size % 64);
}

// Advances `taken` over records that were read, and publishes it to the device.
static void publish(struct error_ring_reader *r)
{
    while (is_ahead(r, r->taken))
        clear_ahead(r, r->taken++);
    // Release: with the acquire in error_ring_write_place; a place is written again only after it has been
    // read.
    __atomic_store_n(&r->ring->taken, r->taken, __ATOMIC_RELEASE);
}

// --- reading -----------------------------------------------------------------------------------------------

// Copies word by word, each once: nothing that follows may read the ring again, whatever the compiler does.
static void copy_record(struct error_ring_record *out, const struct error_ring_record *at)
{
    const volatile uint64_t *from = (const volatile uint64_t *)at;
    uint64_t words[sizeof *out / sizeof(uint64_t)];
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = from[i];
    memcpy(out, words, sizeof words);
}

// Takes record n. Returns false if it is not there, was read before or is invalid.
static bool take(struct error_ring_reader *r, uint64_t n, struct error_ring_record *out)
{
    const struct error_ring_record *at = &r->ring->records[n % r->size];
    // Acquire: with the release in error_ring_write_end; a record with its number is complete.
    if (is_ahead(r, n) || __atomic_load_n(&at->sequence, __ATOMIC_ACQUIRE) != n + 1)
        return false;
    copy_record(out, at);
    out->sequence = n + 1;
    bool good = out->client > ERROR_RING_NOBODY && out->client < ERROR_RING_CLIENTS && out->kind;
    r->returned += good;
    r->bad += !good;
    set_ahead(r, n);
    if (n == r->taken)
        publish(r);
    return good;
}

bool error_ring_take(struct error_ring_reader *r, struct error_ring_record *out)
{
    while (r->at < r->end) {
        bool taken = take(r, r->at++, out);
        // Records behind a place that was filled late may have been read before it, and their bits are
        // cleared now.
        r->at = r->at < r->taken ? r->taken : r->at;
        if (taken)
            return true;
    }
    r->at = r->taken;
    r->end = r->taken + r->size;
    return false;
}

uint64_t error_ring_skip(struct error_ring_reader *r)
{
    uint64_t end = r->taken, skipped = 0;
    for (uint64_t n = r->taken; n < r->taken + r->size; n++)
        if (is_ahead(r, n))
            end = n + 1;
    for (uint64_t n = r->taken; n < end; n++)
        if (!is_ahead(r, n)) {
            set_ahead(r, n);
            skipped++;
        }
    r->skipped += skipped;
    publish(r);
    r->at = r->taken;
    r->end = r->taken + r->size;
    return skipped;
}

uint64_t error_ring_lost(struct error_ring_reader *r)
{
    // Relaxed: a number by itself. Writers pass each other, so it may shrink for a moment.
    uint64_t lost = __atomic_load_n(&r->ring->lost, __ATOMIC_RELAXED);
    r->lost = lost > r->lost ? lost : r->lost;
    return r->lost;
}

// --- what must hold ----------------------------------------------------------------------------------------

bool error_ring_reader_valid(const struct error_ring_reader *r)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < sizeof r->ahead / sizeof *r->ahead; i++)
        bits += (uint64_t)__builtin_popcountll(r->ahead[i]);
    return is_size(r->size) && r->taken <= r->at && r->at <= r->end && r->end - r->taken <= r->size &&
           bits < r->size && !is_ahead(r, r->taken) && r->taken + bits == r->returned + r->bad + r->skipped;
}

bool error_ring_valid(const struct error_ring *ring, const struct error_ring_writer *w)
{
    if (!is_size(w->size) || ring->taken > w->next || w->next - ring->taken > w->size ||
        ring->lost > w->lost || !ring->lost != !w->lost)
        return false;
    for (uint64_t i = 0; i < w->size; i++) {
        uint64_t sequence = ring->records[i].sequence;
        if (sequence && (sequence > w->next || (sequence - 1) % w->size != i))
            return false;
    }
    return true;
}
