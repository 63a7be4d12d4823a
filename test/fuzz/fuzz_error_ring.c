// SPDX-License-Identifier: MIT
// The reader of the ring of errors against a hostile writer of its memory: an input is a program of steps,
// between which honest writers may be at work too. Whatever the ring holds, a round ends, the reader stays
// valid, nothing outside of the ring is accessed (the ring ends where its memory does), and what is returned
// has a client and a kind.
//
// The first byte is the size of the ring, as a power of two. A step is a byte and its arguments: 0 put bytes
// anywhere; 1 put a number near the reader's into a place; 2 put a whole record there; 3 an honest report; 4
// one that dies midway; 5 read one; 6 read a round; 7 give up what was not filled. The seeds in
// corpus/error_ring are a few such programs.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ring/error_ring_write.h"

_Thread_local uint32_t kprim_self;

void kprim_step(void)
{
}

void kprim_pause(void)
{
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t number(struct input *in, unsigned bytes)
{
    uint64_t v = 0;
    for (; bytes && in->left; bytes--, in->left--)
        v = v << 8 | *in->at++;
    return v;
}

static struct error_ring_reader reader;
static struct error_ring_writer writer;

static bool take(void)
{
    struct error_ring_record r;
    uint64_t returned = reader.returned;
    bool more = error_ring_take(&reader, &r);
    require(reader.returned == returned + more);
    require(!more || (r.client > ERROR_RING_NOBODY && r.client < ERROR_RING_CLIENTS && r.kind));
    return more;
}

static void scribble(struct error_ring *ring, struct input *in)
{
    uint64_t at = number(in, 3) % error_ring_bytes(reader.size), n = number(in, 1);
    for (uint64_t i = 0; i < n && in->left; i++)
        ((uint8_t *)ring)[(at + i) % error_ring_bytes(reader.size)] = (uint8_t)number(in, 1);
}

// Writes a record like a real one, in its own place or in any other.
static void forge(struct error_ring *ring, struct input *in, bool whole)
{
    uint64_t n = reader.taken + number(in, 1) % (2 * reader.size + 1);
    struct error_ring_record *at = &ring->records[(n + (number(in, 1) & 0x80 ? 1 : 0)) % reader.size];
    if (whole) {
        at->client = (uint16_t)(number(in, 1) % (ERROR_RING_CLIENTS + 2));
        at->kind = (uint16_t)number(in, 1);
    }
    at->sequence = n + 1;
}

static void step(struct error_ring *ring, struct input *in)
{
    uint64_t n;
    switch (number(in, 1) % 8) {
    case 0: scribble(ring, in); break;
    case 1: forge(ring, in, false); break;
    case 2: forge(ring, in, true); break;
    case 3:
        error_ring_write_report((uintptr_t)&writer, ERROR_RING_WHAT(ERROR_RING_CHECK, 1, 1), 1, 1, 1, 1);
        break;
    case 4: error_ring_write_begin((uintptr_t)&writer, ERROR_RING_WHAT(ERROR_RING_CHECK, 1, 1), 1, &n); break;
    case 5: take(); break;
    case 6:
        for (n = 0; take(); n++)
            require(n < reader.size);
        break;
    default: error_ring_skip(&reader); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct input in = {bytes, len};
    uint64_t size = (uint64_t)1 << number(&in, 1) % 8;
    struct error_ring *ring = calloc(1, error_ring_bytes(size));
    require(ring);
    error_ring_writer_start(&writer, (uintptr_t)ring, size);
    error_ring_reader_start(&reader, ring, size);
    while (in.left) {
        step(ring, &in);
        error_ring_lost(&reader);
        require(error_ring_reader_valid(&reader));
    }
    free(ring);
    return 0;
}
