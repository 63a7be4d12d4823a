// SPDX-License-Identifier: MIT
// The whole heap in one process, by the names that it has inside: so that sanitizers see it at work.
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

#include "heap/heap_life.h"
#include "heap/heap_report.h"
#include "heap/under.h"

enum { THREADS = 3, SLOTS = 256, TURNS = 30000 };

static char *_Atomic shared[SLOTS];

static void *churn(void *arg)
{
    char *own[SLOTS] = {0};
    uint32_t seed = 99 + (uint32_t)(uintptr_t)arg;
    for (int i = 0; i < TURNS; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t r = seed >> 8;
        size_t size = 1 + r % 700;
        char *p = heap_alloc(HEAP_CALL, size, r % 16 ? 0 : 64, BLOCK_MALLOC);
        memset(p, 1, size);
        if (r % 8 == 0)
            p = heap_realloc(HEAP_CALL, p, size + 50);
        char **slot = &own[r % SLOTS], *old = *slot;
        if (r % 4 == 1)
            old = atomic_exchange_explicit(&shared[r % SLOTS], p, memory_order_acq_rel);
        else
            *slot = p;
        heap_free(HEAP_CALL, old, "free");
    }
    for (int i = 0; i < SLOTS; i++)
        heap_free(HEAP_CALL, own[i], "free");
    return NULL;
}

static void work(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void good_eager(void **state)
{
    work();
    assert_int_equal(heap_report_count(), 0);
}

static void good_lazy(void **state)
{
    heap_settings.lazy = true;
    work();
    heap_settings.lazy = false;
    assert_int_equal(heap_report_count(), 0);
}

// Seen by the monitor while nobody calls us.
static void bad_write_behind(void **state)
{
    static char *p;
    p = heap_alloc(HEAP_CALL, 100, 0, BLOCK_MALLOC);
    assert_int_equal(heap_usable(p), 100);
    p[100] ^= 1;
    for (int i = 0; i < 2000 && !heap_report_count(); i++)
        usleep(10000);
    assert_int_equal(heap_report_count(), 1);
    heap_free(HEAP_CALL, p, "free");
    assert_int_equal(heap_report_count(), 1);
}

// Lazy: sanitizers do not like to see what was given back looked at.
static void bad_frees(void **state)
{
    heap_settings.lazy = true;
    char *p = heap_alloc(HEAP_CALL, 64, 0, BLOCK_MALLOC);
    heap_free(HEAP_CALL, p + 16, "free");
    assert_int_equal(heap_report_count(), 2);
    heap_free(HEAP_CALL, p, "free");
    assert_int_equal(heap_report_count(), 2);
    heap_free(HEAP_CALL, p, "free");
    assert_int_equal(heap_report_count(), 3);
    heap_settings.lazy = false;
    heap_thread_ends(heap_self());  // gives back what waits
}

static void good_end(void **state)
{
    heap_life_end();
    assert_int_equal(heap_report_count(), 3);
    work();
}

int main(void)
{
    // The allocator that a sanitizer puts before libc's: it must know who had a block when.
    if (!heap_life_ready())
        return 1;
    under = (struct under){malloc, calloc, realloc, free, posix_memalign, malloc_usable_size, under.is_glibc};
    heap_life_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_eager), cmocka_unit_test(good_lazy), cmocka_unit_test(bad_write_behind),
        cmocka_unit_test(bad_frees),  cmocka_unit_test(good_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
