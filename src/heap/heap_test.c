// SPDX-License-Identifier: MIT
// The whole heap in one process, by its internal names, so that sanitizers see it at work.
#include "heap/heap.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/monitor.h"
#include "heap/deliver.h"
#include "heap/heap_fast.h"
#include "heap/heap_life.h"
#include "heap/heap_report.h"
#include "heap/site.h"
#include "heap/span.h"
#include "heap/next_malloc.h"

enum { THREADS = 3, SLOTS = 256, TURNS = 30000 };

static char *_Atomic shared[SLOTS];

static void *churn(void *arg)
{
    char *own[SLOTS] = {0};
    uint32_t seed = 99 + (uint32_t)(uintptr_t)arg;
    for (int i = 0; i < TURNS; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t r = seed >> 8;
        size_t size = 1 + r % (r % 64 == 3 ? 3000 : 700);
        char *p = r % 16 ? heap_fast_alloc(HEAP_CALL, size, BLOCK_MALLOC)
                         : heap_alloc(HEAP_CALL, size, 64, BLOCK_ALIGNED);
        memset(p, 1, size);
        if (r % 8 == 0)
            p = heap_fast_realloc(HEAP_CALL, p, size + 50);
        char **slot = &own[r % SLOTS], *old = *slot;
        if (r % 4 == 1)
            old = atomic_exchange_explicit(&shared[r % SLOTS], p, memory_order_acq_rel);
        else
            *slot = p;
        heap_fast_free(HEAP_CALL, old, BLOCK_MALLOC, "free");
    }
    for (int i = 0; i < SLOTS; i++)
        heap_fast_free(HEAP_CALL, own[i], BLOCK_MALLOC, "free");
    return NULL;
}

// Checks all invariants; nobody is at work, as the other threads of the test have ended.
static void check_all(void)
{
    deliver_lock();
    for (unsigned i = 0; i < deliver_lists(); i++)
        monitor_lock(i);
    assert_true(monitor_all_valid());
    for (struct producer *w = producer_all(); w; w = atomic_load(&w->older))
        assert_true(producer_valid(w));
    assert_true(span_valid());
    assert_true(site_valid());
    for (unsigned i = 0; i < deliver_lists(); i++)
        monitor_unlock(i);
    deliver_unlock();
}

static void work(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check_all();
}

static void good_eager(void **state)
{
    work();
    assert_int_equal(heap_report_count(), 0);
}

static void good_lazy(void **state)
{
    heap_set_lazy(true);
    work();
    heap_set_lazy(false);
    assert_int_equal(heap_report_count(), 0);
}

// Returns the room of a block in a bin.
static size_t room_of(uint64_t word)
{
    char *block = block_of_word(word);
    return span_has(block) ? span_room(block)
                           : malloc_usable_size(block - BLOCK_HEAD) - BLOCK_HEAD - BLOCK_TAIL;
}

// Blocks keep their contents when they grow and shrink, in every way, and all of them are intact.
static void resize_all(void)
{
    enum { BLOCKS = 40 };
    char *all[BLOCKS] = {0};
    size_t sizes[BLOCKS] = {0};
    uint32_t seed = 11;
    for (unsigned i = 0; i < unit_cases(TURNS); i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t r = seed >> 8, k = r % BLOCKS, way = r / BLOCKS % 8;
        size_t old = sizes[k], size = way == 0   ? 1 + r / 512 % 5000
                                      : way == 1 ? old / 2 + 1
                                                 : old + 1 + old / 4;
        size = size > 200000 ? 1 : size;
        all[k] = heap_fast_realloc(HEAP_CALL, all[k], size);
        assert_int_equal(heap_usable(all[k]), size);
        for (size_t at = 0; at < old && at < size; at += 1 + at / 8)
            assert_int_equal(all[k][at], (char)(k + at));
        for (size_t at = 0; at < size; at++)
            all[k][at] = (char)(k + at);
        sizes[k] = size;
    }
    for (int k = 0; k < BLOCKS; k++)
        heap_fast_free(HEAP_CALL, all[k], BLOCK_MALLOC, "free");
    assert_true(thread_cache_valid(&heap_self()->cache));
    for (size_t number = 0; number < THREAD_CACHE_BINS; number++) {
        struct thread_cache_bin *b = &heap_self()->cache.bins[number];
        for (uint64_t *word = b->low; word < b->top; word++)
            assert_true(thread_cache_number(room_of(*word)) >= number);
    }
}

static void good_resized(void **state)
{
    resize_all();
    heap_set_lazy(true);
    resize_all();
    heap_set_lazy(false);
    assert_int_equal(heap_report_count(), 0);
}

// Sizes that are too large, one of which would overflow to 0 if it were rounded up.
static void bad_sizes(void **state)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 3, SIZE_MAX - 16, PTRDIFF_MAX};
    for (size_t old = 0; old < 3000; old += 1000)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *p = heap_fast_alloc(HEAP_CALL, old, BLOCK_MALLOC);
            assert_null(heap_fast_realloc(HEAP_CALL, p, sizes[i]));
            assert_int_equal(heap_usable(p), old);
            heap_fast_free(HEAP_CALL, p, BLOCK_MALLOC, "free");
        }
    assert_int_equal(heap_report_count(), 0);
}

static atomic_int at_work;

// A few blocks that are resized all the time, so that the tail of one is a byte of the next.
static void *change(void *arg)
{
    enum { FEW = 64 };
    char *own[FEW] = {0};
    uint32_t seed = 5 + (uint32_t)(uintptr_t)arg;
    for (int i = 0; i < (int)unit_cases(100 * TURNS); i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t r = seed >> 8;
        size_t size = 49 + r / FEW % 16;
        heap_fast_free(HEAP_CALL, own[r % FEW], BLOCK_MALLOC, "free");
        own[r % FEW] = heap_fast_alloc(HEAP_CALL, size, BLOCK_MALLOC);
        memset(own[r % FEW], 1, size);
    }
    for (int i = 0; i < FEW; i++)
        heap_fast_free(HEAP_CALL, own[i], BLOCK_MALLOC, "free");
    at_work--;
    return NULL;
}

static void good_used_anew(void **state)
{
    pthread_t threads[2];
    at_work = 2;
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, change, (void *)i);
    while (at_work) {
        monitor_lock(0);
        monitor_once(0);
        monitor_unlock(0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(heap_report_count(), 0);
}

// The monitor detects the overflow while nobody calls us.
static void bad_write_behind(void **state)
{
    static char *p;
    p = heap_fast_alloc(HEAP_CALL, 100, BLOCK_MALLOC);
    assert_int_equal(heap_usable(p), 100);
    p[100] ^= 1;
    for (int i = 0; i < 2000 && !heap_report_count(); i++)
        usleep(10000);
    assert_int_equal(heap_report_count(), 1);
    heap_fast_free(HEAP_CALL, p, BLOCK_MALLOC, "free");
    assert_int_equal(heap_report_count(), 1);
}

// Uses lazy frees, because sanitizers report reads of what was given back.
static void bad_frees(void **state)
{
    heap_set_lazy(true);
    char *p = heap_fast_alloc(HEAP_CALL, 64, BLOCK_MALLOC);
    heap_fast_free(HEAP_CALL, p + 16, BLOCK_MALLOC, "free");
    assert_int_equal(heap_report_count(), 2);
    heap_fast_free(HEAP_CALL, p, BLOCK_MALLOC, "free");
    assert_int_equal(heap_report_count(), 2);
    heap_fast_free(HEAP_CALL, p, BLOCK_MALLOC, "free");
    assert_int_equal(heap_report_count(), 3);
    heap_set_lazy(false);
    heap_thread_ends(heap_self());  // empties the quarantine
}

static void good_end(void **state)
{
    heap_life_end();
    assert_int_equal(heap_report_count(), 3);
    work();
    // Gives back what caches and the depot keep, as a sanitizer looks for leaks.
    for (bool more = true; more;) {
        struct producer *w = heap_join();
        more = false;
        for (size_t i = 0; i < THREAD_CACHE_BINS; i++)
            more |= thread_cache_refill(&w->cache, &w->cache.bins[i]);
        heap_thread_ends(w);
    }
}

int main(void)
{
    // The next allocator is the sanitizer's, which must know who had a block when.
    if (!heap_life_ready())
        return 1;
    next_malloc = (struct next_malloc){malloc,
                                       calloc,
                                       realloc,
                                       free,
                                       posix_memalign,
                                       malloc_usable_size,
                                       next_malloc.is_glibc,
                                       next_malloc.exit_now,
                                       next_malloc.abort};
    heap_life_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_eager), cmocka_unit_test(good_lazy),      cmocka_unit_test(good_resized),
        cmocka_unit_test(bad_sizes),  cmocka_unit_test(good_used_anew), cmocka_unit_test(bad_write_behind),
        cmocka_unit_test(bad_frees),  cmocka_unit_test(good_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
