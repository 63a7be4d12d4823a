// SPDX-License-Identifier: MIT
// The heap's code on the host: what it allocates, what it detects, and many threads at once, compared with
// what they know themselves.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "kheap/kheap_testing.h"

_Thread_local uint32_t kprim_self;

void kprim_step(void)
{
}

void kprim_pause(void)
{
    sched_yield();
}

static struct kheap_testing t;

static int make(void **state)
{
    (void)state;
    kheap_testing_new(&t, 0);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    kheap_testing_free(&t);
    return 0;
}

static uint8_t *take(uint64_t size)
{
    return (uint8_t *)(uintptr_t)kalloc_malloc(t.heap, size);
}

static void give(void *p)
{
    kalloc_free(t.heap, (uintptr_t)p);
}

static void scan_twice(void)
{
    kheap_testing_scan(&t);
    kheap_testing_scan(&t);
}

static const struct kheap_record *record(uint64_t i)
{
    static struct kheap_record r;
    assert_int_equal(t.ring->records[i].sequence, i + 1);
    assert_true(kheap_record_read(&t.ring->records[i], &r));
    return &r;
}

// --- classes -----------------------------------------------------------------------------------------------

static void classes_fit(void **state)
{
    (void)state;
    for (uint32_t bytes = 1; bytes <= KLAYOUT_SLAB_MOST; bytes++) {
        uint32_t class = kslab_class(bytes), size = kslab_size(class);
        assert_true(class >= KLAYOUT_CLASS_FIRST && class < KLAYOUT_CLASS_FIRST + KLAYOUT_CLASSES);
        assert_true(size >= bytes && size % 16 == 0);
        assert_true(class == KLAYOUT_CLASS_FIRST || kslab_size(class - 1) < bytes);
        assert_true(size - bytes < 32 || size * 2 <= bytes * 3 + 32);
    }
    assert_int_equal(kslab_size(KLAYOUT_CLASS_FIRST + KLAYOUT_CLASSES - 1), KLAYOUT_SLAB_MOST);
}

static void nth_bit(void **state)
{
    (void)state;
    uint64_t x = 0x8000000000000001u;
    for (unsigned i = 0; i < 200; i++, x = x * 0x5851f42d4c957f2du + 0x14057b7ef767814fu) {
        uint32_t n = 0;
        for (uint32_t b = 0; b < 64; b++)
            if (x >> b & 1)
                assert_int_equal(kslab_nth(x, n++), b);
        assert_int_equal(kslab_nth(x, n), 64);
    }
}

// --- one thread --------------------------------------------------------------------------------------------

static void good_pairs(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0,     1,     8,     9,     24,    25,    100,    1000,    4096,
                                     16360, 16361, 32744, 32745, 65512, 65513, 100000, 1 << 20, 10 << 20};
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            uint8_t *p = take(sizes[i]);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            memset(p, 0xff, sizes[i]);
            kheap_testing_scan(&t);
            give(p);
        }
    scan_twice();
    assert_int_equal(kheap_testing_records(&t), 0);
    assert_int_equal(kheap_testing_waits(&t), 0);
    assert_int_equal(kheap_testing_whole(&t), t.plan.chunks);
    assert_null(take(UINT64_MAX));
    assert_null(take((uint64_t)t.plan.chunks * KLAYOUT_CHUNK));
    give(NULL);
    assert_int_equal(kheap_testing_records(&t), 0);
}

// Arithmetic on a word next to a block must change it, freed or not: base/canary_shape.h.
static void canaries_have_the_shape(void **state)
{
    (void)state;
    for (uint64_t size = 1; size < 3000; size += 37) {
        uint8_t *p = take(size);
        uint64_t words[3];
        memcpy(words, p - 16, 16);
        memcpy(words + 2, p + size, 8);
        for (int i = 0; i < 3; i++)
            assert_int_equal(words[i], canary_shape(words[i]));
        give(p);
        memcpy(words, p - 16, 8);
        assert_int_equal(words[0], canary_shape(words[0]));
    }
}

static void one_byte_either_side(void **state)
{
    (void)state;
    for (uint64_t size = 0; size < 70; size++) {
        kheap_testing_reset(&t);
        uint8_t *p = take(size), *q = take(size), *r = take(size);
        assert_non_null(p && q && r ? p : NULL);
        q[size] ^= 1;
        scan_twice();
        assert_int_equal(kheap_testing_records(&t), 1);
        assert_int_equal(record(0)->kind, KHEAP_OVERRUN);
        assert_int_equal(record(0)->flags, KHEAP_TAIL);
        assert_int_equal(record(0)->address, (uintptr_t)q);
        assert_int_equal(record(0)->size, size);
        assert_int_equal(record(0)->found_tail ^ record(0)->made_tail, 1);
        p[-1] ^= 0x80;
        scan_twice();
        assert_int_equal(kheap_testing_records(&t), 2);
        assert_int_equal(record(1)->flags & ~KHEAP_SIZE_LOST, KHEAP_HEAD);
        assert_int_equal(record(1)->address, (uintptr_t)p);
        r[-16] ^= 1;
        scan_twice();
        assert_int_equal(record(2)->flags, KHEAP_HEAD);
        assert_int_equal(record(2)->found_head ^ record(2)->made_head, 1);
        assert_int_equal(record(2)->size, size);
        assert_int_equal(kheap_testing_records(&t), 3);
        give(q);
        give(r);
        scan_twice();
        assert_int_equal(kheap_testing_records(&t), 3);
    }
}

static void bad_frees(void **state)
{
    (void)state;
    uint8_t *p = take(40), *big = take(200000);
    give(p);
    give(p);
    assert_int_equal(kheap_testing_records(&t), 1);
    assert_int_equal(record(0)->kind, KHEAP_DOUBLE_FREE);
    assert_int_equal(record(0)->size, 40);
    scan_twice();
    give(p);
    assert_int_equal(record(1)->kind, KHEAP_DOUBLE_FREE);
    p = take(100);
    give(p + 16);
    give(p + 1);
    give(big + 65536);
    give(t.memory);
    give(p + 128);
    for (unsigned i = 2; i < 7; i++)
        assert_int_equal(record(i)->kind, KHEAP_BAD_FREE);
    give(p);
    give(big);
    give(big);
    assert_int_equal(record(7)->kind, KHEAP_DOUBLE_FREE);
    scan_twice();
    assert_int_equal(kheap_testing_records(&t), 8);
    assert_int_equal(kheap_testing_whole(&t), t.plan.chunks);
}

static void overflow_of_freed(void **state)
{
    (void)state;
    uint8_t *p = take(40), *q = take(40);
    give(p);
    p[40]++;
    scan_twice();
    assert_int_equal(record(0)->flags, KHEAP_TAIL | KHEAP_FREED);
    q[-9]++;
    give(q);
    scan_twice();
    assert_int_equal(kheap_testing_records(&t), 2);
    assert_int_equal(record(1)->flags & KHEAP_HEAD, KHEAP_HEAD);
    assert_int_equal(kheap_testing_waits(&t), 0);
}

static void ring_full(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KHEAP_RECORDS + 10; i++)
        give((void *)(uintptr_t)16);
    assert_int_equal(kheap_testing_records(&t), KHEAP_RECORDS);
    assert_int_equal(((struct kheap *)t.memory)->errors.lost, 10);
    t.ring->taken = 5;
    for (unsigned i = 0; i < 7; i++)
        give((void *)(uintptr_t)16);
    assert_int_equal(kheap_testing_records(&t), KHEAP_RECORDS + 5);
    assert_int_equal(t.ring->records[4].sequence, KHEAP_RECORDS + 5);
}

// Allocates all the memory in blocks of one size; then again without a scan in between: malloc must release
// freed blocks itself.
static void exhaustion(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {8, 100, 3000, 30000, 300000, 8, 100};
    static uint8_t *all[400000];
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint32_t n = 0;
        for (;; n++) {
            kprim_self = n;
            if (!(all[n] = take(sizes[s])))
                break;
            memset(all[n], (int)n, sizes[s]);
        }
        // At least two thirds of the limit for any size, canaries and rounding to classes included.
        uint64_t each = sizes[s] + 33;
        assert_true(n * each > (uint64_t)(8 << 20) * 2 / 3);
        assert_true(n * sizes[s] < t.plan.bytes);
        for (uint32_t i = 0; i < n; i++)
            give(all[i]);
    }
    scan_twice();
    assert_int_equal(kheap_testing_records(&t), 0);
    assert_int_equal(kheap_testing_waits(&t), 0);
}

// Blocks of all sizes are allocated and freed, half of the limit at a time: what they deny to others stays
// within bounds.
static void fragmentation(void **state)
{
    (void)state;
    enum { SLOTS = 20000, LIVE = 4 << 20, STEPS = 200000 };
    static struct {
        uint8_t *p;
        uint32_t size;
    } held[SLOTS];
    uint64_t random = 1, live = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        random = random * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
        uint32_t i = (uint32_t)(random >> 33) % SLOTS, kind = (uint32_t)(random >> 20) % 32;
        uint32_t size = (uint32_t)(random >> 40) % (kind == 0 ? 20000 : kind < 4 ? 2000 : 200);
        kprim_self = step;
        if (held[i].p) {
            give(held[i].p);
            live -= held[i].size;
            held[i].p = NULL;
        } else if (live + size <= LIVE) {
            assert_non_null(held[i].p = take(size));
            held[i].size = size;
            live += size;
        }
        if (step % 1000)
            continue;
        kheap_testing_scan(&t);
        uint64_t kept = (uint64_t)(t.plan.chunks - kheap_testing_whole(&t)) * KLAYOUT_CHUNK;
        assert_true(kept < 2 * live + KLAYOUT_CLASSES * KLAYOUT_CHUNK);
    }
    assert_true(live > LIVE / 2);
    assert_int_equal(kheap_testing_records(&t), 0);
}

// --- many threads ------------------------------------------------------------------------------------------

enum { THREADS = 4, HELD = 1500, ROUNDS = 20000 };

static uint32_t held_most, arrays_used;

struct worker {
    uint64_t random, failed;
    struct {
        uint8_t *p;
        uint32_t size;
    } held[HELD];
    pthread_t thread;
    uint32_t number;
};

static uint32_t draw(struct worker *w)
{
    w->random = w->random * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    return (uint32_t)(w->random >> 33);
}

static void check_and_free(struct worker *w, uint32_t i)
{
    for (uint32_t b = 0; b < w->held[i].size; b += w->held[i].size / 8 + 1)
        if (w->held[i].p[b] != (uint8_t)(w->number * 64 + i))
            abort();
    give(w->held[i].p);
    w->held[i].p = NULL;
}

// Each block is filled with its holder's number: a block that was given out twice has the wrong one.
static void *work(void *arg)
{
    struct worker *w = arg;
    for (uint32_t n = 0; n < ROUNDS; n++) {
        uint32_t i = draw(w) % held_most;
        kprim_self = draw(w) % arrays_used;
        if (w->held[i].p) {
            check_and_free(w, i);
        } else {
            uint32_t kind = draw(w) % 64;
            uint32_t size = kind == 0 ? draw(w) % 150000 : kind < 8 ? draw(w) % 5000 : draw(w) % 200;
            uint8_t *p = take(size);
            if (!p) {
                w->failed++;
                continue;
            }
            memset(p, (int)(uint8_t)(w->number * 64 + i), size);
            w->held[i].p = p;
            w->held[i].size = size;
        }
        if (n % 512 == 0 && w->number == 0)
            kheap_testing_scan(&t);
    }
    for (uint32_t i = 0; i < HELD; i++)
        if (w->held[i].p)
            check_and_free(w, i);
    return NULL;
}

static void run_threads(uint32_t held, uint32_t arrays)
{
    static struct worker workers[THREADS];
    held_most = held;
    arrays_used = arrays;
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.random = i, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    scan_twice();
    assert_int_equal(kheap_testing_records(&t), 0);
    assert_int_equal(kheap_testing_waits(&t), 0);
}

// No block is lost: memory of a block can be one again, of any size.
static void many_threads(void **state)
{
    (void)state;
    run_threads(300, KHEAP_ARRAYS);
    assert_int_equal(kheap_testing_whole(&t), t.plan.chunks);
    assert_non_null(take((uint64_t)t.plan.chunks * KLAYOUT_CHUNK - 24));
}

// The same with so many blocks in one array that it grows meanwhile.
static void many_threads_one_array(void **state)
{
    (void)state;
    run_threads(HELD, 1);
    uint32_t level = kentry_level(kentry_array(t.heap, 0));
    assert_in_range(level, 1, 3);
    assert_true(kheap_testing_whole(&t) + 2 * level >= t.plan.chunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_fit),
        cmocka_unit_test(nth_bit),
        cmocka_unit_test_setup_teardown(good_pairs, make, drop),
        cmocka_unit_test_setup_teardown(canaries_have_the_shape, make, drop),
        cmocka_unit_test_setup_teardown(one_byte_either_side, make, drop),
        cmocka_unit_test_setup_teardown(bad_frees, make, drop),
        cmocka_unit_test_setup_teardown(overflow_of_freed, make, drop),
        cmocka_unit_test_setup_teardown(ring_full, make, drop),
        cmocka_unit_test_setup_teardown(exhaustion, make, drop),
        cmocka_unit_test_setup_teardown(fragmentation, make, drop),
        cmocka_unit_test_setup_teardown(many_threads, make, drop),
        cmocka_unit_test_setup_teardown(many_threads_one_array, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
