// SPDX-License-Identifier: MIT
// Runs every interleaving of two or three threads in the heap's code (ksched_testing.h). After each schedule
// the heap's invariants must hold. kalloc_test.c shows under ThreadSanitizer that what is shared between
// atomic operations has an order.
#define KLAYOUT_GROUP_SIZE 4
#define KLAYOUT_FIRST_ENTRIES 8

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kheap/kheap_testing.h"
#include "kprim/ksched_testing.h"

enum { THREADS = KSCHED_THREADS, CHUNKS = 4, PAIR = 32744 };  // two blocks of PAIR bytes fit a chunk

static struct kheap_testing t;
static uint64_t out[THREADS + 7];  // what the threads were given
static bool wanted[THREADS];       // whether they asked

// --- what must hold when nobody is at work -----------------------------------------------------------------

static uint64_t hint(uint64_t at, uint32_t chunk)
{
    return kprim_get64(at + chunk / 64 * 8) >> chunk % 64 & 1;
}

static void chunk_holds(uint32_t chunk)
{
    uint64_t state = kprim_get64(kslab_state(t.heap, chunk));
    uint32_t what = kslab_what(state), bits = 0;
    bool unhinted = hint(t.plan.free_hints, chunk);
    if (kslab_whole(state) && unhinted)
        ksched_broken("a whole chunk is not hinted");
    if (what == KLAYOUT_CLAIMED)
        ksched_broken("a chunk is claimed");
    if (!kslab_is_class(what)) {
        if (kslab_number(state))
            ksched_broken("a chunk that is no slab has blocks");
        return;
    }
    for (uint32_t w = 0; w < (kslab_blocks(what) + 63) / 64; w++)
        bits += (uint32_t)__builtin_popcountll(kprim_get64(kslab_bitmap(t.heap, chunk) + w * 8));
    if ((int32_t)bits != kslab_number(state))
        ksched_broken("bits and number differ");
    if (bits && !hint(kslab_class_hints(t.heap, what), chunk))
        ksched_broken("a slab with blocks is not hinted");
}

static uint32_t entries_hold(uint32_t array)
{
    uint64_t at = kentry_array(t.heap, array);
    uint32_t used = 0, count = kentry_count(kentry_level(at));
    for (uint32_t i = 0; i < count; i++) {
        struct kentry_place p = kentry_place(t.heap, array, at, i);
        uint32_t header = kprim_get32(p.header) >> p.shift & 0xff;
        if (header & KENTRY_BUSY || (header & KENTRY_TAKEN && !(header & KENTRY_LIVE)))
            ksched_broken("an entry is held");
        used += header & KENTRY_TAKEN;
    }
    if (used != (uint32_t)kprim_get64(KENTRY_AT(at, control)))
        ksched_broken("entries in use and their number differ");
    return used;
}

// live: blocks that should be there. First frees everything that was given to the threads, each once.
static void holds(uint32_t records)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < t.plan.chunks; i++)
        chunk_holds(i);
    for (uint32_t i = 0; i < t.plan.arrays; i++)
        used += entries_hold(i);
    for (unsigned i = 0; i < THREADS + 7; i++)
        for (unsigned j = 0; j < i; j++)
            if (out[i] && out[i] == out[j])
                ksched_broken("a block was given out twice");
    for (unsigned i = 0; i < THREADS + 7; i++)
        if (out[i])
            kalloc_free(t.heap, out[i]);
    kheap_testing_scan(&t);
    kheap_testing_scan(&t);
    if (kheap_testing_records(&t) != records)
        ksched_broken("wrong number of records");
    if (kheap_testing_waits(&t))
        ksched_broken("something waits for ever");
    uint32_t grown = 0;
    for (uint32_t i = 0; i < t.plan.arrays; i++) {
        if (entries_hold(i))
            ksched_broken("an entry is left");
        grown += kentry_level(kentry_array(t.heap, i)) > 0;
    }
    if (kheap_testing_whole(&t) + grown < t.plan.chunks)
        ksched_broken("a block is lost");
    for (uint32_t i = 0; i < t.plan.chunks; i++)
        chunk_holds(i);
    (void)used;
}

static void good(void)
{
    holds(0);
}

static void nothing(void)
{
}

static int make(void **state)
{
    (void)state;
    kheap_testing_new(&t, CHUNKS);
    t.plan.arrays = 1;
    return 0;
}

static int drop(void **state)
{
    (void)state;
    kheap_testing_free(&t);
    return 0;
}

// --- what the threads do -----------------------------------------------------------------------------------

static void ask(uint64_t size)
{
    wanted[ksched_me] = true;
    out[ksched_me] = kalloc_malloc(t.heap, size);
}

static void take(void)
{
    ask(PAIR);
}

static void take_least(void)
{
    ask(8);
}

static void take_small(void)
{
    ask(20000);
}

static void take_run(void)
{
    ask(100000);
}

static void take_most(void)
{
    ask(4 * KLAYOUT_CHUNK - 24);
}

static void give_first(void)
{
    uint64_t p = out[THREADS];
    out[THREADS] = 0;
    kalloc_free(t.heap, p);
}

static void give_same(void)
{
    kalloc_free(t.heap, out[THREADS + 1]);
}

static void scan(void)
{
    kheap_testing_scan(&t);
}

static void take_and_give(void)
{
    kalloc_free(t.heap, kalloc_malloc(t.heap, PAIR));
}

static void first(void)
{
    out[THREADS] = kalloc_malloc(t.heap, PAIR);
}

static void two(void)
{
    out[THREADS + 2] = kalloc_malloc(t.heap, PAIR);
    first();
}

static void first_freed(void)
{
    first();
    kalloc_free(t.heap, out[THREADS]);
    out[THREADS] = 0;
}

// Seven of eight blocks are in use.
static void full_but_one(void)
{
    for (unsigned i = 0; i < 4; i++)
        kalloc_malloc(t.heap, PAIR);
    // No scan finds these any more, but they stay in use.
    memset((void *)(uintptr_t)t.plan.entries, 0, KLAYOUT_SEGMENT_BYTES);
    kprim_put64(KENTRY_AT(kentry_array(t.heap, 0), control), 0);
    two();
    out[THREADS + 3] = kalloc_malloc(t.heap, PAIR);
}

static void shared(void)
{
    first();
    out[THREADS + 1] = out[THREADS];
    out[THREADS] = 0;
}

// The array has room for one more entry.
static void array_full_but_one(void)
{
    for (unsigned i = 0; i < 6; i++)
        kalloc_free(t.heap, kalloc_malloc(t.heap, 8));
    first();
}

// One more entry starts the growth; threads that come meanwhile must get theirs.
static void seven_live(void)
{
    for (unsigned i = 0; i < 7; i++)
        out[THREADS + i] = kalloc_malloc(t.heap, 8);
}

// Eight entries, with no memory for more, two of which can be reused; their old addresses are still there.
static void two_holes(void)
{
    uint64_t blocks[8];
    blocks[0] = kalloc_malloc(t.heap, 8);
    blocks[7] = kalloc_malloc(t.heap, (CHUNKS - 1) * KLAYOUT_CHUNK - KLAYOUT_HEAD - KLAYOUT_TAIL);
    for (unsigned i = 1; i < 7; i++)
        blocks[i] = kalloc_malloc(t.heap, 8);
    kalloc_free(t.heap, blocks[2]);
    kalloc_free(t.heap, blocks[3]);
    kheap_testing_scan(&t);
    for (unsigned i = 4; i < 8; i++)
        out[THREADS + i - 4] = blocks[i];
    kalloc_free(t.heap, blocks[0]);
    kalloc_free(t.heap, blocks[1]);
}

static void whole_slab(void)
{
    first_freed();
    kheap_testing_scan(&t);
}

static void take_give_and_scan(void)
{
    take_and_give();
    kheap_testing_scan(&t);
}

// --- tests -------------------------------------------------------------------------------------------------

static void (*arrange)(void);

static void start(void)
{
    kheap_testing_reset(&t);
    memset(out, 0, sizeof out);
    memset(wanted, 0, sizeof wanted);
    arrange();
}

#define TEST(name, bound, before, after, ...)                                               \
    static void name(void **state)                                                          \
    {                                                                                       \
        static void (*const work[])(void) = {__VA_ARGS__};                                  \
        (void)state;                                                                        \
        arrange = before;                                                                   \
        print_message("%lu schedules\n",                                                    \
                      ksched_every(bound, start, work, sizeof work / sizeof *work, after)); \
    }

static void given(void)
{
    for (unsigned i = 0; i < ksched.threads; i++)
        if (wanted[i] && !out[i])
            ksched_broken("no block, though there is one");
    holds(0);
}

static void shared_twice(void)
{
    out[THREADS + 1] = 0;
    holds(1);
}

// One of the two threads got the last block; the others still have theirs.
static void one_given(void)
{
    if (!out[0] == !out[1])
        ksched_broken("the last block went to nobody, or to two");
    for (unsigned i = 0; i < 4; i++)
        kslab_release(t.heap, i / 2, i % 2);
    holds(0);
}

// Two blocks of PAIR bytes lie in one slab: no unneeded slab is made.
static void no_slab_too_many(void)
{
    uint32_t class = kalloc_class(t.heap, PAIR);
    if (kprim_get32(kslab_slabs(t.heap, class)) > (ksched.threads + 1) / 2)
        ksched_broken("a slab too many");
    given();
}

TEST(two_take, 3, nothing, no_slab_too_many, take, take)
TEST(three_take, 1, nothing, no_slab_too_many, take, take, take)
TEST(take_while_given_back, 3, two, good, take, give_first)
TEST(take_while_scanned, 2, first_freed, given, take, scan)
TEST(take_give_scan, 1, two, good, take, give_first, scan)
TEST(freed_while_scanned, 2, two, good, give_first, scan, scan)
TEST(freed_twice, 4, shared, shared_twice, give_same, give_same)
TEST(freed_twice_and_scanned, 2, shared, shared_twice, give_same, give_same, scan)
TEST(last_block, 2, full_but_one, one_given, take, take)
TEST(other_class, 2, first_freed, given, take_small, scan)
TEST(other_classes, 2, first_freed, given, take_small, take)
TEST(run_and_slab, 2, nothing, given, take_run, take)
TEST(two_runs, 2, nothing, good, take_run, take_run)
TEST(whole_pool, 2, first_freed, given, take_most, scan)
TEST(array_grows, 2, array_full_but_one, given, take, take)
TEST(array_grows_while_scanned, 2, array_full_but_one, given, take, scan)
TEST(array_grows_for_both, 2, seven_live, given, take_least, take_least)
TEST(holes, 2, two_holes, given, take_least, take_least)
TEST(hole_while_scanned, 2, two_holes, given, take_least, scan)
TEST(stale_hint, 2, whole_slab, given, take_small, take_give_and_scan)
TEST(pairs, 2, nothing, good, take_and_give, take_and_give)

#define ROW(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(two_take),
        ROW(three_take),
        ROW(take_while_given_back),
        ROW(take_while_scanned),
        ROW(take_give_scan),
        ROW(freed_while_scanned),
        ROW(freed_twice),
        ROW(freed_twice_and_scanned),
        ROW(last_block),
        ROW(other_class),
        ROW(other_classes),
        ROW(run_and_slab),
        ROW(two_runs),
        ROW(whole_pool),
        ROW(array_grows),
        ROW(array_grows_while_scanned),
        ROW(array_grows_for_both),
        ROW(holes),
        ROW(hole_while_scanned),
        ROW(stale_hint),
        ROW(pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
