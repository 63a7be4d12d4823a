// SPDX-License-Identifier: MIT
// Runs every interleaving of writers and a reader of the ring (ksched_testing.h). The reader stops only
// before each of its calls: error_ring_test.c covers the inside of a call under ThreadSanitizer. After each
// schedule and a final read, every record was either returned, complete and once, or counted as lost, and
// lost only if the ring was full.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "ring/error_ring_write.h"

#include "kprim/ksched_testing.h"

enum { SIZE_MOST = 4, VALUES = 16, ALL = 0xffff };

static uint64_t size;
static struct error_ring *ring;
static struct error_ring_writer writer;
static struct error_ring_reader reader;
static unsigned seen[VALUES], expected;
static unsigned kept;               // values that find room in every schedule, a bit each
static uint64_t dying, unfinished;  // calls of writers that die; those of them that had a place

static void start(void)
{
    memset(ring, 0, error_ring_bytes(SIZE_MOST));
    memset(seen, 0, sizeof seen);
    error_ring_writer_start(&writer, (uintptr_t)ring, size);
    error_ring_reader_start(&reader, ring, size);
    expected = 0;
    dying = unfinished = 0;
}

// --- what the threads do -----------------------------------------------------------------------------------

static void report(uint64_t v)
{
    error_ring_write_report((uintptr_t)&writer, ERROR_RING_WHAT(ERROR_RING_CHECK, 1, v), v, v, v, v);
}

static void write_one(void)
{
    report((uint64_t)ksched_me);
    expected |= 1u << ksched_me;
}

static void write_two(void)
{
    report((uint64_t)ksched_me);
    report((uint64_t)ksched_me + 4);
    expected |= 0x11u << ksched_me;
}

static void take_one(void);

// Never has more than one record in the ring.
static void write_and_take(void)
{
    for (unsigned i = 0; i < 3; i++) {
        report((uint64_t)ksched_me + 4 * i);
        expected |= 1u << (ksched_me + 4 * i);
        // One of the calls may only end a round.
        take_one();
        take_one();
    }
}

// Its kernel is killed before the record has its number.
static void write_and_die(void)
{
    uint64_t n;
    dying++;
    unfinished +=
        error_ring_write_begin((uintptr_t)&writer, ERROR_RING_WHAT(ERROR_RING_CHECK, 1, 9), 9, &n) != 0;
}

static void take_one(void)
{
    struct error_ring_record r;
    kprim_step();
    if (!error_ring_take(&reader, &r))
        return;
    uint64_t v = r.payload[0];
    if (v >= VALUES || r.site != v || r.address != v || r.payload[1] != v || r.payload[2] != v)
        ksched_broken("a record is not whole");
    if (seen[v]++)
        ksched_broken("a record was read twice");
    if (!error_ring_reader_valid(&reader))
        ksched_broken("the reader is not valid");
}

static void take_some(void)
{
    for (unsigned i = 0; i < 4; i++)
        take_one();
}

// --- what must hold ----------------------------------------------------------------------------------------

static void holds(void)
{
    unsigned returned = 0, calls = (unsigned)__builtin_popcount(expected);
    // What is left of a round, and two more.
    for (unsigned i = 0; i < 3 * (SIZE_MOST + 1); i++)
        take_one();
    for (unsigned v = 0; v < VALUES; v++) {
        returned += seen[v];
        if (seen[v] && !(expected >> v & 1))
            ksched_broken("a record that nobody wrote");
        if (!seen[v] && expected & kept & 1u << v)
            ksched_broken("a record was lost though there was room");
    }
    if (returned + writer.lost + unfinished != calls + dying || returned + unfinished != writer.next)
        ksched_broken("records are not accounted for");
    if (!error_ring_valid(ring, &writer) || error_ring_lost(&reader) > writer.lost)
        ksched_broken("the ring is not valid");
    if (error_ring_skip(&reader) > unfinished || !error_ring_reader_valid(&reader))
        ksched_broken("more was given up than was not finished");
}

// --- tests -------------------------------------------------------------------------------------------------

#define TEST(name, bound, records, finds_room, ...)                                         \
    static void name(void **state)                                                          \
    {                                                                                       \
        static void (*const work[])(void) = {__VA_ARGS__};                                  \
        (void)state;                                                                        \
        size = records;                                                                     \
        kept = finds_room;                                                                  \
        print_message("%lu schedules\n",                                                    \
                      ksched_every(bound, start, work, sizeof work / sizeof *work, holds)); \
    }

TEST(two_writers, 5, 4, ALL, write_two, write_two)
TEST(three_writers, 2, 4, ALL, write_one, write_one, write_one)
TEST(writers_and_reader, 3, 4, ALL, write_two, write_two, take_some)
TEST(full_and_read, 4, 1, 0, write_two, take_some)
TEST(full_for_two, 2, 2, 0, write_two, write_two, take_some)
TEST(one_place, 3, 1, 0, write_two, write_two, take_some)
TEST(old_numbers, 4, 2, 1, write_one, write_and_take)
TEST(one_dies, 3, 4, ALL, write_two, write_and_die, take_some)
TEST(one_dies_in_small_ring, 3, 2, 0, write_two, write_and_die, take_some)

static int make(void **state)
{
    (void)state;
    ring = calloc(1, error_ring_bytes(SIZE_MOST));
    return !ring;
}

static int drop(void **state)
{
    (void)state;
    free(ring);
    return 0;
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(two_writers),   ROW(three_writers), ROW(writers_and_reader),
        ROW(full_and_read), ROW(full_for_two),  ROW(one_place),
        ROW(old_numbers),   ROW(one_dies),      ROW(one_dies_in_small_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
