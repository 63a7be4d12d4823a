// SPDX-License-Identifier: MIT
// What a scan reads of a slot while another thread publishes one buffer after the other in it.
#include "canary/canary_slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "core/canary_bytes.h"

enum { BUFFERS = 1000000, BASE = 0x10000, SIZES = 7 };

static struct canary_slab slab;
static atomic_bool done;

static struct canary_place place_of(uint64_t size)
{
    return (struct canary_place){.slab = &slab, .base = BASE, .size = size};
}

static void *publish_many(void *unused)
{
    for (unsigned i = 0; i < unit_cases(BUFFERS); i++) {
        struct canary_place place = place_of(1 + i % SIZES);
        canary_slot_publish(&place, 0);
    }
    atomic_store(&done, true);
    return NULL;
}

// A read returns one buffer's state, or says that the slot is changing: nothing else may count as checked.
static void reads_one_buffer_or_none(void **state)
{
    struct canary_seed seeds[SIZES + 1];
    struct canary_buffer b;
    pthread_t writer;
    unsigned mixed = 0, silent = 0;
    for (unsigned i = 1; i <= SIZES; i++) {
        struct canary_place place = place_of(i);
        seeds[i] = canary_slab_seed(&place);
    }
    struct canary_place first = place_of(1);
    canary_slot_publish(&first, 0);
    assert_int_equal(pthread_create(&writer, NULL, publish_many, NULL), 0);
    while (!atomic_load(&done)) {
        bool read = canary_slot_read(&slab, 0, 1, &b);
        assert_true(canary_slot_valid(&slab, 0));
        mixed += read && memcmp(&b.seed, &seeds[b.size], sizeof b.seed) != 0;
        silent += !read && !b.changing;
    }
    pthread_join(writer, NULL);
    assert_int_equal(mixed, 0);
    assert_int_equal(silent, 0);
    assert_true(canary_slot_read(&slab, 0, 1, &b));
    assert_false(b.changing);
    assert_true(canary_slot_valid(&slab, 0));
}

// A buffer is freed, still verified, idle, and followed by another: each step leaves a valid slot. States
// that no step leaves are found invalid.
static void each_step_is_valid(void **state)
{
    struct canary_place place = place_of(SIZES);
    struct canary_slot *t = slab.slot;
    canary_slot_publish(&place, 3);
    assert_true(canary_slot_valid(&slab, 0));
    t->freed_size = SIZES;  // of a buffer that is there
    assert_false(canary_slot_valid(&slab, 0));
    t->freed_size = 0;
    t->size = 0;
    assert_true(canary_slot_valid(&slab, 0));
    canary_slot_set_freed(t, SIZES);
    assert_true(canary_slot_valid(&slab, 0));
    canary_slot_await(&place, 4);
    assert_true(canary_slot_valid(&slab, 0));
    assert_true(t->since < slab.freed);
    t->freed_size &= (uint64_t)1 << 63;  // idle, of no size
    assert_false(canary_slot_valid(&slab, 0));
    t->freed_size = 0;
    t->size = slab.stride - CANARY_HEAD;  // no room for a tail
    assert_false(canary_slot_valid(&slab, 0));
    t->size = SIZES;
    assert_true(canary_slot_mark_reported(&slab, 0, canary_slot_report_state(&slab, 0), 2));
    assert_true(canary_slot_valid(&slab, 0));
    assert_true(canary_slot_mark_reported(&slab, 0, canary_slot_report_state(&slab, 0), 8));  // no side
    assert_false(canary_slot_valid(&slab, 0));
    canary_slot_publish(&place, 5);
    assert_true(canary_slot_valid(&slab, 0));
    assert_int_equal(canary_slot_reported(&slab, 0), 0);
}

static int start(void **state)
{
    slab = (struct canary_slab){
        .memory = &canary_slab_memory[CANARY_SUBALLOCATED], .base = BASE, .stride = 0x10000, .slots = 1};
    slab.slot = &slab.one;
    return canary_bytes_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_one_buffer_or_none),
        cmocka_unit_test(each_step_is_valid),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
