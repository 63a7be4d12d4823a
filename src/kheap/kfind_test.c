// SPDX-License-Identifier: MIT
// What kfind.h says of addresses, compared with what a test knows of its blocks.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kheap/kheap_testing.h"

_Thread_local uint32_t kprim_self;

void kprim_step(void)
{
}

void kprim_pause(void)
{
}

static struct kheap_testing t;

static int make(void **state)
{
    kheap_testing_new_found(&t, 0);
    return 0;
}

static int drop(void **state)
{
    kheap_testing_free(&t);
    return 0;
}

static uint64_t take(uint64_t size)
{
    uint64_t p = kalloc_malloc(t.heap, size);
    assert_true(p);
    return p;
}

static void is_at(uint64_t address, uint64_t base, uint64_t size, bool freed)
{
    struct kfind f = kfind_look(t.heap, address);
    assert_int_equal(f.base, base);
    assert_int_equal(f.size, size);
    assert_int_equal(f.freed, freed);
    // What is in a slab, and live, is found quickly too. An aligned block may be a run for its alignment.
    uint64_t quick = kfind_quick(t.heap, address), room = KLAYOUT_SLAB_MOST - KLAYOUT_HEAD - KLAYOUT_TAIL;
    bool inside = !freed && address - base < size;
    if (quick || (inside && size + KHEAP_ALIGN_MOST <= room))
        assert_int_equal(quick, inside && size <= room ? (address - base) << 32 | size : 0);
}

// At its ends, in the middle, and in every chunk that it touches.
static void is_everywhere(uint64_t base, uint64_t size, bool freed)
{
    is_at(base, base, size, freed);
    if (!size)
        return;
    is_at(base + size / 2, base, size, freed);
    is_at(base + size - 1, base, size, freed);
    for (uint64_t at = 0; at < size; at += KLAYOUT_CHUNK)
        is_at(base + at, base, size, freed);
}

static const uint64_t sizes[] = {0, 1, 8, 9, 16, 100, 1000, 8168, 8169, 20000, 32744, 32745, 65536, 300000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void good_blocks(void **state)
{
    uint64_t p[SIZES];
    for (unsigned i = 0; i < SIZES; i++)
        p[i] = take(sizes[i]);
    for (unsigned i = 0; i < SIZES; i++)
        is_everywhere(p[i], sizes[i], false);
    for (unsigned i = 0; i < SIZES; i++) {
        kalloc_free(t.heap, p[i]);
        is_everywhere(p[i], sizes[i], true);
    }
    kheap_testing_scan(&t);
    // Nobody has got the places: what was freed stays known.
    for (unsigned i = 0; i < SIZES; i++)
        is_everywhere(p[i], sizes[i], true);
    assert_int_equal(kheap_testing_records(&t), 0);
}

static void good_aligned(void **state)
{
    for (uint64_t align = 16; align <= KHEAP_ALIGN_MOST; align *= 2)
        for (unsigned i = 0; i < SIZES; i++) {
            uint64_t p = kalloc_aligned(t.heap, sizes[i], align);
            assert_true(p && p % align == 0);
            is_everywhere(p, sizes[i], false);
            kalloc_free(t.heap, p);
            is_everywhere(p, sizes[i], true);
            assert_int_equal(kheap_testing_records(&t), 0);
        }
    kheap_testing_scan(&t);
    assert_int_equal(kheap_testing_waits(&t), 0);
    assert_int_equal(kheap_testing_records(&t), 0);
}

static void bad_aligned(void **state)
{
    uint64_t p = kalloc_aligned(t.heap, 100, 256), tail = p + 100;
    *(uint8_t *)tail ^= 255;
    kheap_testing_scan(&t);
    assert_int_equal(kheap_testing_records(&t), 1);
    *(uint8_t *)tail ^= 255;
    kalloc_free(t.heap, p);
    kalloc_free(t.heap, p);
    assert_int_equal(kheap_testing_records(&t), 2);
    assert_int_equal(t.ring->records[1].kind, KHEAP_DOUBLE_FREE);
}

// A free that is refused changes nothing.
static void bad_frees(void **state)
{
    uint64_t p = take(40), q = take(40);
    kalloc_free(t.heap, p + 16);
    is_at(p, p, 40, false);
    kalloc_free(t.heap, p);
    kalloc_free(t.heap, p);
    is_at(p, p, 40, true);
    is_at(q, q, 40, false);
}

static void good_places_without_blocks(void **state)
{
    uint64_t p = take(40), pool = kprim_get64(t.heap + __builtin_offsetof(struct kheap, pool));
    is_at(t.heap, 0, 0, false);
    is_at(pool - 1, 0, 0, false);
    is_at(pool + (uint64_t)t.plan.chunks * KLAYOUT_CHUNK, 0, 0, false);
    is_at(p + 10 * 64, 0, 0, false);
    is_at(p - 1, p, 40, false);  // its canary
}

// A heap that does not keep bounds knows nothing.
static void good_heap_without(void **state)
{
    kheap_testing_free(&t);
    kheap_testing_new(&t, 0);
    uint64_t p = take(40);
    is_at(p, 0, 0, false);
    kalloc_free(t.heap, p);
    is_at(p, 0, 0, false);
}

enum { LIVE = 300, ROUNDS = 60000 };

static uint32_t dice(uint32_t n)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)(x >> 11) % n;
}

static uint64_t random_size(void)
{
    return dice(20) ? dice(dice(4) ? 200 : 9000) : dice(400000);
}

// Places change owners, and chunks their classes.
static void random_blocks(void **state)
{
    static struct {
        uint64_t base, size;
    } live[LIVE];
    memset(live, 0, sizeof live);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n = dice(LIVE);
        if (live[n].base) {
            is_everywhere(live[n].base, live[n].size, false);
            kalloc_free(t.heap, live[n].base);
            is_everywhere(live[n].base, live[n].size, true);
            live[n].base = 0;
        } else {
            uint64_t size = random_size(), p = kalloc_aligned(t.heap, size, dice(3) ? 16 : 16 << dice(9));
            live[n].base = p;
            live[n].size = size;
            if (p)
                is_everywhere(p, size, false);
        }
        if (!dice(50))
            kheap_testing_scan(&t);
    }
    for (unsigned n = 0; n < LIVE; n++)
        if (live[n].base)
            is_everywhere(live[n].base, live[n].size, false);
    assert_int_equal(kheap_testing_records(&t), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_blocks, make, drop),
        cmocka_unit_test_setup_teardown(good_aligned, make, drop),
        cmocka_unit_test_setup_teardown(bad_aligned, make, drop),
        cmocka_unit_test_setup_teardown(bad_frees, make, drop),
        cmocka_unit_test_setup_teardown(good_places_without_blocks, make, drop),
        cmocka_unit_test_setup_teardown(good_heap_without, make, drop),
        cmocka_unit_test_setup_teardown(random_blocks, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
