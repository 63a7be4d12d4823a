// SPDX-License-Identifier: MIT
// The ring with one writer, with many at once, and with bytes that no writer would put there.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ring/error_ring_write.h"

enum { SIZE = 8, THREADS = 3, CALLS = 20000 };

_Thread_local uint32_t kprim_self;

void kprim_step(void)
{
}

void kprim_pause(void)
{
    sched_yield();
}

static struct error_ring *ring;
static struct error_ring_writer writer;
static struct error_ring_reader reader;
static struct error_ring_record got;

static void start(uint64_t size)
{
    free(ring);
    assert_non_null(ring = calloc(1, error_ring_bytes(size)));
    error_ring_writer_start(&writer, (uintptr_t)ring, size);
    error_ring_reader_start(&reader, ring, size);
}

static int make(void **state)
{
    (void)state;
    start(SIZE);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    free(ring);
    ring = NULL;
    return 0;
}

static void report(uint64_t v)
{
    error_ring_write_report((uintptr_t)&writer, ERROR_RING_WHAT(ERROR_RING_CHECK, 7, v), v * 16, v, v + 1,
                            v + 2);
}

// Takes a place and does not fill it.
static uint64_t begin(uint64_t v, uint64_t *number)
{
    return error_ring_write_begin((uintptr_t)&writer, ERROR_RING_WHAT(ERROR_RING_CHECK, 7, v), v * 16,
                                  number);
}

static void is_report(const struct error_ring_record *r, uint64_t v)
{
    assert_int_equal(r->client, ERROR_RING_CHECK);
    assert_int_equal(r->kind, 7);
    assert_int_equal(r->site, (uint32_t)v);
    assert_int_equal(r->address, v * 16);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(r->payload[i], v + i);
    for (unsigned i = 3; i < ERROR_RING_WORDS; i++)
        assert_int_equal(r->payload[i], 0);
}

static void expect(uint64_t v)
{
    assert_true(error_ring_take(&reader, &got));
    assert_true(error_ring_reader_valid(&reader));
    is_report(&got, v);
}

static void expect_none(void)
{
    assert_false(error_ring_take(&reader, &got));
    assert_true(error_ring_reader_valid(&reader));
}

// --- honest writers ----------------------------------------------------------------------------------------

static void sizes(void **state)
{
    (void)state;
    assert_int_equal(error_ring_bytes(1), 256);
    assert_int_equal(error_ring_bytes(ERROR_RING_RECORDS_MOST), 128 + 128 * ERROR_RING_RECORDS_MOST);
    static const uint64_t wrong[] = {0, 3, 12, ERROR_RING_RECORDS_MOST * 2, UINT64_MAX};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(error_ring_bytes(wrong[i]), 0);
}

// Numbers wrap around many times, for any size and any number of records read at once.
static void order(void **state)
{
    (void)state;
    for (uint64_t size = 1; size <= 128; size *= 2)
        for (uint64_t batch = 1; batch <= size; batch = batch * 2 + 1) {
            start(size);
            uint64_t v = 0;
            for (unsigned round = 0; round < 40; round++) {
                for (uint64_t i = 0; i < batch; i++)
                    report(v + i);
                for (uint64_t i = 0; i < batch; i++, v++) {
                    expect(v);
                    assert_int_equal(got.sequence, v + 1);
                }
                expect_none();
                assert_true(error_ring_valid(ring, &writer));
            }
            assert_int_equal(reader.returned, v);
            assert_int_equal(writer.lost + reader.bad + reader.skipped, 0);
        }
}

static void who_wrote(void **state)
{
    (void)state;
    kprim_self = 77;
    report(1);
    kprim_self = 0;
    expect(1);
    assert_int_equal(got.thread[0], 77);
    assert_int_equal(got.thread[1] | got.thread[2] | got.block[0] | got.block[1] | got.block[2] | got.grid,
                     0);
}

static void no_ring(void **state)
{
    (void)state;
    error_ring_write_report(0, ERROR_RING_WHAT(ERROR_RING_CHECK, 1, 1), 0, 0, 0, 0);
}

static void full(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < SIZE + 5; v++)
        report(v);
    assert_int_equal(writer.next, SIZE);
    assert_int_equal(writer.lost, 5);
    assert_int_equal(error_ring_lost(&reader), 5);
    assert_true(error_ring_valid(ring, &writer));
    for (uint64_t v = 0; v < 3; v++)
        expect(v);
    // There is room for three.
    for (uint64_t v = 0; v < 4; v++)
        report(100 + v);
    assert_int_equal(writer.next, SIZE + 3);
    assert_int_equal(writer.lost, 6);
    for (uint64_t v = 3; v < SIZE; v++)
        expect(v);
    expect_none();
    for (uint64_t v = 0; v < 3; v++)
        expect(100 + v);
    expect_none();
    assert_int_equal(error_ring_lost(&reader), 6);
    assert_true(error_ring_valid(ring, &writer));
}

// --- places that are not filled ----------------------------------------------------------------------------

static void slow_writer(void **state)
{
    (void)state;
    uint64_t number = 0, at;
    report(0);
    at = begin(1, &number);
    report(2);
    report(3);
    expect(0);
    expect(2);
    expect(3);
    expect_none();
    expect_none();
    assert_int_equal(ring->taken, 1);
    for (unsigned i = 0; i < ERROR_RING_WORDS; i++)
        error_ring_write_word(at, i, i < 3 ? 1 + i : 0);
    error_ring_write_end(at, number);
    expect(1);
    expect_none();
    assert_int_equal(ring->taken, 4);
    assert_int_equal(reader.returned, 4);
    assert_true(error_ring_valid(ring, &writer));
}

// A writer that never ends keeps no record from being read, and costs at most its own place.
static void dead_writer(void **state)
{
    (void)state;
    uint64_t number;
    begin(99, &number);
    for (uint64_t v = 0; v < SIZE + 3; v++)
        report(v);
    for (uint64_t v = 0; v < SIZE - 1; v++)
        expect(v);
    expect_none();
    assert_int_equal(writer.lost, 4);
    assert_int_equal(ring->taken, 0);
    assert_int_equal(error_ring_skip(&reader), 1);
    assert_true(error_ring_reader_valid(&reader));
    assert_int_equal(ring->taken, SIZE);
    assert_int_equal(reader.skipped, 1);
    for (unsigned round = 0; round < 3; round++) {
        for (uint64_t v = 0; v < SIZE; v++)
            report(v);
        for (uint64_t v = 0; v < SIZE; v++)
            expect(v);
        expect_none();
    }
    assert_int_equal(writer.lost, 4);
}

static void several_dead(void **state)
{
    (void)state;
    uint64_t number;
    report(0);
    begin(9, &number);
    report(1);
    begin(9, &number);
    begin(9, &number);
    report(2);
    begin(9, &number);
    expect(0);
    expect(1);
    expect(2);
    expect_none();
    // It cannot be known that the last place was taken.
    assert_int_equal(error_ring_skip(&reader), 3);
    assert_int_equal(error_ring_skip(&reader), 0);
    assert_int_equal(ring->taken, 6);
    report(3);
    expect(3);
    expect_none();
    assert_int_equal(error_ring_skip(&reader), 1);
    assert_int_equal(ring->taken, 8);
    assert_true(error_ring_valid(ring, &writer));
}

// --- anything ----------------------------------------------------------------------------------------------

static void bad_records(void **state)
{
    (void)state;
    static const uint64_t whats[] = {0, ERROR_RING_WHAT(ERROR_RING_CLIENTS, 1, 0),
                                     ERROR_RING_WHAT(ERROR_RING_KHEAP, 0, 0),
                                     ERROR_RING_WHAT(0xffff, 0xffff, 0xffffffff)};
    report(0);
    for (unsigned i = 0; i < sizeof whats / sizeof *whats; i++)
        error_ring_write_report((uintptr_t)&writer, whats[i], 0, 0, 0, 0);
    report(1);
    expect(0);
    expect(1);
    expect_none();
    assert_int_equal(reader.bad, 4);
    assert_int_equal(ring->taken, 6);
}

// Sequence numbers that jump are no records, and do not move the reader.
static void odd_sequences(void **state)
{
    (void)state;
    static const uint64_t odd[] = {2, SIZE, SIZE + 1, UINT64_MAX, (uint64_t)1 << 63, 0};
    for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
        ring->records[0].sequence = odd[i];
        ring->taken = odd[i];
        expect_none();
        assert_int_equal(reader.taken, 0);
    }
    ring->taken = 0;
    report(0);
    expect(0);
    // The same once more, and one of the lap before.
    ring->records[0].sequence = 1;
    expect_none();
    expect_none();
    assert_int_equal(reader.returned, 1);
}

// A place that is overwritten between two reads yields whatever stood there, as a copy.
static void copies(void **state)
{
    (void)state;
    report(5);
    expect(5);
    struct error_ring_record before = got;
    memset(ring->records, 0xff, SIZE * sizeof *ring->records);
    assert_memory_equal(&got, &before, sizeof got);
    expect_none();
}

// A round ends even if the ring is filled as fast as it is read.
static void endless_writer(void **state)
{
    (void)state;
    uint64_t v = 0, taken = 0;
    for (unsigned round = 0; round < 20; round++) {
        unsigned n = 0;
        for (; error_ring_writer_start(&writer, (uintptr_t)ring, SIZE),
               writer.next = v, ring->taken = v, report(v), v++, error_ring_take(&reader, &got);
             n++)
            assert_true(n <= SIZE);
        assert_true(error_ring_reader_valid(&reader));
        taken += n;
    }
    assert_int_equal(reader.returned, taken);
}

static void noise(void **state)
{
    (void)state;
    uint64_t random = 1;
    uint8_t *bytes = (uint8_t *)ring;
    for (unsigned round = 0; round < 200000; round++) {
        random = random * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
        uint64_t place = random >> 33;
        if (round % 3 == 0) {
            ring->records[place % SIZE].sequence = reader.taken + (random >> 20) % (2 * SIZE);
            ring->records[place % SIZE].client = (random >> 40) % (ERROR_RING_CLIENTS + 1);
        }
        bytes[place % error_ring_bytes(SIZE)] = (uint8_t)(random >> 56);
        unsigned n = 0;
        while (round % 7 == 0 && error_ring_take(&reader, &got))
            assert_true(n++ < SIZE);
        if (round % 1001 == 0)
            error_ring_skip(&reader);
        assert_true(error_ring_reader_valid(&reader));
        error_ring_lost(&reader);
    }
    assert_true(reader.returned && reader.bad && reader.skipped);
}

// A writer never leaves the ring either, whatever the ring's `taken` is.
static void hostile_taken(void **state)
{
    (void)state;
    static const uint64_t taken[] = {0, 1, SIZE, UINT64_MAX, (uint64_t)1 << 63, ((uint64_t)1 << 63) - 1};
    for (unsigned i = 0; i < sizeof taken / sizeof *taken; i++) {
        start(SIZE);
        ring->taken = taken[i];
        for (uint64_t v = 0; v < 3 * SIZE; v++)
            report(v);
        assert_int_equal(writer.next + writer.lost, 3 * SIZE);
    }
}

// --- many at once ------------------------------------------------------------------------------------------

static void *write_all(void *arg)
{
    kprim_self = (uint32_t)(uintptr_t)arg;
    for (uint64_t v = 0; v < CALLS; v++)
        report((uint64_t)kprim_self << 32 | v);
    return NULL;
}

// Records that arrive are complete; those of each thread are in order, except for those read out of order,
// and all of them are counted.
static void many_threads(void **state)
{
    (void)state;
    pthread_t all[THREADS];
    static bool seen[THREADS][CALLS];
    uint64_t n = 0;
    memset(seen, 0, sizeof seen);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&all[i], NULL, write_all, (void *)i), 0);
    for (bool more = true; more;) {
        while (error_ring_take(&reader, &got)) {
            uint64_t v = got.payload[0];
            is_report(&got, v);
            assert_true(v >> 32 < THREADS && (uint32_t)v < CALLS && got.thread[0] == v >> 32);
            assert_false(seen[v >> 32][(uint32_t)v]);
            seen[v >> 32][(uint32_t)v] = true;
            n++;
        }
        assert_true(error_ring_reader_valid(&reader));
        uint64_t next = __atomic_load_n(&writer.next, __ATOMIC_ACQUIRE),
                 lost = __atomic_load_n(&writer.lost, __ATOMIC_ACQUIRE);
        more = next + lost < (uint64_t)THREADS * CALLS || n < next;
        sched_yield();
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    assert_int_equal(n + writer.lost, THREADS * CALLS);
    assert_int_equal(n, writer.next);
    assert_true(error_ring_lost(&reader) <= writer.lost);
    assert_true(error_ring_valid(ring, &writer));
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(sizes),       ROW(order),          ROW(who_wrote),    ROW(no_ring),       ROW(full),
        ROW(slow_writer), ROW(dead_writer),    ROW(several_dead), ROW(bad_records),   ROW(odd_sequences),
        ROW(copies),      ROW(endless_writer), ROW(noise),        ROW(hostile_taken), ROW(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
