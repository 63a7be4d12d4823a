// SPDX-License-Identifier: MIT
// The device's side of the ring (error_ring.h). Inlined wherever it is used, so that several PTX texts with
// it fit into one module.
//
//     at = error_ring_write_begin(writer, ERROR_RING_WHAT(...), address, &n);
//     if (at) { error_ring_write_word(at, 0, ...); ...; error_ring_write_end(at, n); }
//
// Payload words that are not written keep what an earlier record had there.
#ifndef MOAT_RING_ERROR_RING_WRITE_H
#define MOAT_RING_ERROR_RING_WRITE_H

#include "kprim/kprim.h"
#include "ring/error_ring.h"

#define ERROR_RING_WRITER(writer, field) ((writer) + __builtin_offsetof(struct error_ring_writer, field))
#define ERROR_RING_RECORD(at, field) ((at) + __builtin_offsetof(struct error_ring_record, field))

// Returns whether record n finds no room. A number that is older than `taken` does find room: the exchange
// below will refuse it.
KPRIM bool error_ring_write_full(uint64_t n, uint64_t taken, uint64_t size)
{
    return (int64_t)(n - taken) >= (int64_t)size;
}

KPRIM void error_ring_write_lose(uint64_t writer, uint64_t ring)
{
    uint64_t lost = kprim_add64(ERROR_RING_WRITER(writer, lost), 1, KPRIM_RELAXED) + 1;
    kprim_st64_system(ring + __builtin_offsetof(struct error_ring, lost), lost);
}

// Takes a place. Returns its address and stores the record's number, or returns 0 if there is none. Host
// memory is slow to read: `taken` is read once, and again only if that leaves no room.
KPRIM uint64_t error_ring_write_place(uint64_t writer, uint64_t *number)
{
    uint64_t ring = kprim_get64(ERROR_RING_WRITER(writer, ring)),
             size = kprim_get64(ERROR_RING_WRITER(writer, size));
    // Acquire: with the host's release in error_ring.c; the place was read before it is written again.
    uint64_t taken = kprim_ld64_system(ring + __builtin_offsetof(struct error_ring, taken));
    uint64_t n = kprim_ld64(ERROR_RING_WRITER(writer, next), KPRIM_RELAXED), now;
    for (;; n = now) {
        if (error_ring_write_full(n, taken, size))
            taken = kprim_ld64_system(ring + __builtin_offsetof(struct error_ring, taken));
        if (error_ring_write_full(n, taken, size)) {
            error_ring_write_lose(writer, ring);
            return 0;
        }
        now = kprim_cas64(ERROR_RING_WRITER(writer, next), n, n + 1);
        if (now == n)
            break;
    }
    *number = n;
    return ring + __builtin_offsetof(struct error_ring, records) +
           (n & (size - 1)) * sizeof(struct error_ring_record);
}

// Takes a place and writes all but the payload. Returns the record's address, or 0 if it is lost.
KPRIM uint64_t error_ring_write_begin(uint64_t writer, uint64_t what, uint64_t address, uint64_t *number)
{
    uint64_t at = error_ring_write_place(writer, number);
    if (!at)
        return 0;
    struct kprim_thread who;
    kprim_who(&who);
    kprim_put64(ERROR_RING_RECORD(at, client), what);
    kprim_put64(ERROR_RING_RECORD(at, address), address);
    kprim_put64(ERROR_RING_RECORD(at, grid), who.grid);
    for (unsigned i = 0; i < 3; i++) {
        kprim_put32(ERROR_RING_RECORD(at, block[i]), who.block[i]);
        kprim_put32(ERROR_RING_RECORD(at, thread[i]), who.thread[i]);
    }
    return at;
}

KPRIM void error_ring_write_word(uint64_t at, unsigned i, uint64_t v)
{
    kprim_put64(ERROR_RING_RECORD(at, payload) + 8 * i, v);
}

KPRIM void error_ring_write_end(uint64_t at, uint64_t number)
{
    kprim_st64_system(ERROR_RING_RECORD(at, sequence), number + 1);
}

// The body of ERROR_RING_REPORT.
KPRIM void error_ring_write_report(uint64_t writer, uint64_t what, uint64_t address, uint64_t a, uint64_t b,
                                   uint64_t c)
{
    const uint64_t words[ERROR_RING_WORDS] = {a, b, c};
    uint64_t number, at = writer ? error_ring_write_begin(writer, what, address, &number) : 0;
    if (!at)
        return;
    for (unsigned i = 0; i < ERROR_RING_WORDS; i++)
        error_ring_write_word(at, i, words[i]);
    error_ring_write_end(at, number);
}

#endif
