// SPDX-License-Identifier: MIT
#include "heap/heap_quarantine.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { LIMIT = 1 << 20 };

static char memory[HEAP_QUARANTINE_BLOCKS * 4];

static struct heap_quarantine_entry entry(uint64_t i, uint64_t size)
{
    return (struct heap_quarantine_entry){&memory[i % sizeof memory], size, i};
}

// Entries leave oldest first, within the bounds of blocks and of bytes.
static void good_queue(void **state)
{
    struct heap_quarantine w = {.bytes = 0};
    struct heap_quarantine_entry old;
    uint64_t in = 0, out = 0;
    assert_true(heap_quarantine_valid(&w));
    for (uint64_t size = 1; size <= LIMIT / 4; size *= 4)
        for (int i = 0; i < 2 * HEAP_QUARANTINE_BLOCKS; i++) {
            while (heap_quarantine_evict(&w, LIMIT, size + BLOCK_HEAD, &old))
                assert_int_equal(old.sum, out++);
            assert_int_equal(heap_quarantine_add(&w, entry(in++, size)), 0);
            assert_true(heap_quarantine_valid(&w));
            assert_true(w.bytes <= LIMIT && in - out <= HEAP_QUARANTINE_BLOCKS);
        }
    while (heap_quarantine_evict(&w, 0, 1, &old))
        assert_int_equal(old.sum, out++);
    assert_int_equal(in, out);
    assert_int_equal(w.bytes, 0);
    assert_true(heap_quarantine_valid(&w));
}

// A new entry replaces the oldest of its lane, and none of another lane.
static void good_lanes(void **state)
{
    struct heap_quarantine w = {.bytes = 0};
    struct heap_quarantine_lane *lanes = heap_quarantine_lanes(&w, LIMIT);
    for (size_t bin = 0; bin < HEAP_QUARANTINE_LANES; bin += 7) {
        uint64_t length = (uint64_t)(lanes[bin].end - lanes[bin].first);
        for (uint64_t i = 0; i < 3 * length; i++) {
            struct heap_quarantine_entry old =
                heap_quarantine_replace_oldest(&lanes[bin], entry(i, thread_cache_fine_room(bin)));
            assert_int_equal(old.block != NULL, i >= length);
            assert_true(!old.block || old.sum == i - length);
        }
        assert_true(heap_quarantine_valid(&w));
    }
    heap_quarantine_forget(&w);
    assert_true(heap_quarantine_valid(&w));
    assert_null(heap_quarantine_replace_oldest(&lanes[7], entry(1, 8)).block);
}

// Breaks each equation of heap_quarantine.h.
static void bad_queues_and_lanes_are_not_valid(void **state)
{
    struct heap_quarantine w = {.bytes = 0};
    for (uint64_t i = 0; i < 3; i++)
        heap_quarantine_add(&w, entry(i, 5000));
    struct heap_quarantine_lane *lanes = heap_quarantine_lanes(&w, LIMIT), was = lanes[3];
    heap_quarantine_replace_oldest(&lanes[3], entry(1, thread_cache_fine_room(3)));
    was.next = lanes[3].next;
    assert_true(heap_quarantine_valid(&w));
    w.taken = 4;
    assert_false(heap_quarantine_valid(&w));
    w.taken = 0;
    w.bytes++;
    assert_false(heap_quarantine_valid(&w));
    w.bytes--;
    w.slots[1].block = NULL;
    assert_false(heap_quarantine_valid(&w));
    w.slots[1].block = memory;
    lanes[3].next = lanes[3].end;
    assert_false(heap_quarantine_valid(&w));
    lanes[3] = was;
    lanes[3].end--;
    assert_false(heap_quarantine_valid(&w));
    lanes[3] = was;
    lanes[3].first->packed = thread_cache_fine_room(3) + 1;  // too large for the lane
    assert_false(heap_quarantine_valid(&w));
    lanes[3].first->packed = 1;
    assert_true(heap_quarantine_valid(&w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_queue),
        cmocka_unit_test(good_lanes),
        cmocka_unit_test(bad_queues_and_lanes_are_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
