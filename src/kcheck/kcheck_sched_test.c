// SPDX-License-Identifier: MIT
// Runs every interleaving of threads that make one error, or two, in kernels that an error ends
// (ksched_testing.h). Whichever thread ends the kernel: the record of its error is whole by then.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kcheck/kcheck_judge.h"

#include "kprim/ksched_testing.h"

enum { RECORDS = 4, KINDS = 2 };

static struct kcheck_state *state;
static struct error_ring *ring;
static uint64_t size;  // of the ring
static unsigned traps, threads;

bool kprim_is_global(uint64_t address)
{
    return address != 0;
}

uint32_t kprim_dynamic_shared(void)
{
    return 0;
}

static _Thread_local uint64_t error_of_thread;

// Everything ends here, on a GPU, so the record must be there.
void kprim_trap(void)
{
    bool there = false;
    for (uint64_t i = 0; i < size; i++)
        there |= ring->records[i].sequence && ring->records[i].address == error_of_thread;
    if (!there && size >= KINDS)
        ksched_broken("a kernel ends before its error is in the ring");
    traps++;
}

static void make_error(uint64_t address)
{
    const struct kcheck_module m = {.state = (uintptr_t)state, .number = 1};
    const struct kcheck_access a = {KCHECK_WHAT(7, 4, 0), address, 0, 1, 4};
    const struct kcheck_judgement j = {KCHECK_LEFT, {.base = address & ~(uint64_t)0xff, .size = 1}};
    error_of_thread = address;
    if (kcheck_judge_wrong(&m, &a, &j) != KCHECK_SKIP)
        ksched_broken("a wrong access is performed");
}

static void one(void)
{
    make_error(0x1000);
}

static void other(void)
{
    make_error(0x2000);
}

static void start(void)
{
    memset(state, 0, sizeof *state);
    memset(ring, 0, error_ring_bytes(RECORDS));
    error_ring_writer_start(&state->errors, (uintptr_t)ring, size);
    state->trap = 1;
    traps = 0;
}

static void holds(void)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < KCHECK_COUNTERS; i++)
        count += state->counters[i].count;
    if (count != threads || traps != threads)
        ksched_broken("an error was not counted, or did not end its kernel");
    if (!error_ring_valid(ring, &state->errors) || state->errors.next > KINDS)
        ksched_broken("the ring is not valid, or has a record twice");
}

#define TEST(name, bound, records, ...)                                                     \
    static void name(void **unused)                                                         \
    {                                                                                       \
        static void (*const work[])(void) = {__VA_ARGS__};                                  \
        size = records;                                                                     \
        threads = sizeof work / sizeof *work;                                               \
        print_message("%lu schedules\n", ksched_every(bound, start, work, threads, holds)); \
    }

TEST(two_threads, 3, RECORDS, one, one)
TEST(three_threads, 2, RECORDS, one, one, one)
TEST(two_errors, 2, RECORDS, one, other, one)
TEST(full_ring, 2, 1, one, other, one)  // nobody waits for a record that finds no room

static int make(void **unused)
{
    state = calloc(1, sizeof *state);
    ring = calloc(1, error_ring_bytes(RECORDS));
    return !state || !ring;
}

static int drop(void **unused)
{
    free(state);
    free(ring);
    return 0;
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {ROW(two_threads), ROW(three_threads), ROW(two_errors), ROW(full_ring)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
