// SPDX-License-Identifier: MIT
// The heap's functions in C for the CPU device, beside the heap's own code on the same heap: what the one
// makes the other must know, and what is wrong must be declined and leave the heap as it was.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/native_rows.h"
#include "kheap/kheap_native.h"
#include "kheap/kheap_testing.h"

_Thread_local uint32_t kprim_self;

void kprim_step(void)
{
}

void kprim_pause(void)
{
}

enum { MALLOC, ALIGNED, FREE, LANES = NATIVE_LANES };
static struct kheap_testing t;
static uint8_t *coarse;

// All that the process has may be read and written; there is no device memory apart.
static int make(void **state)
{
    (void)state;
    size_t bytes = (size_t)1 << (NATIVE_BITS - NATIVE_COARSE_BITS);
    if (!coarse)
        coarse =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    kprim_native_space = (struct native_space){.coarse = coarse};
    kheap_testing_new_found(&t, 0);
    for (uint64_t at = t.heap >> NATIVE_COARSE_BITS; at <= (t.heap + t.plan.bytes) >> NATIVE_COARSE_BITS;
         at++)
        coarse[at] = NATIVE_READ | NATIVE_WRITE;
    uint64_t ring = (uintptr_t)t.ring;
    for (uint64_t at = ring >> NATIVE_COARSE_BITS; at <= (ring + kheap_ring_bytes()) >> NATIVE_COARSE_BITS;
         at++)
        coarse[at] = NATIVE_READ | NATIVE_WRITE;
    return 0;
}

static int drop(void **state)
{
    (void)state;
    kheap_testing_free(&t);
    return 0;
}

// A warp's call. The variable with the heap's address lies behind the heap's ring, where it may be read.
struct warp {
    uint32_t mask, done;
    uint64_t a[LANES], b[LANES], result[LANES];
};

static void call(unsigned row, struct warp *w)
{
    static _Thread_local uint32_t thread[3][LANES];
    for (uint32_t l = 0; l < LANES; l++)
        thread[0][l] = kprim_self * LANES + l;
    // The heap's own struct has its address.
    uint64_t variable = t.heap + offsetof(struct kheap, base);
    struct native_call c = {.mask = w->mask,
                            .smid = kprim_self,
                            .blocks = {1, 1, 1},
                            .threads = {1024, 1, 1},
                            .thread = thread,
                            .variables = &variable};
    memcpy(c.argument[0], w->a, sizeof w->a);
    memcpy(c.argument[1], w->b, sizeof w->b);
    w->done = kheap_native[row].fn(&c);
    assert_int_equal(w->done & ~w->mask, 0);
    for (uint32_t l = 0; l < LANES; l++)
        if (w->done >> l & 1)
            w->result[l] = c.result[l];
}

// The same, where declined lanes execute the heap's own code.
static void call_all(unsigned row, struct warp *w)
{
    call(row, w);
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(w->mask >> l & 1) || w->done >> l & 1)
            continue;
        if (row == FREE)
            kalloc_free(t.heap, w->a[l]);
        else
            w->result[l] =
                row == MALLOC ? kalloc_malloc(t.heap, w->a[l]) : kalloc_aligned(t.heap, w->a[l], w->b[l]);
    }
}

static uint64_t random_next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static uint64_t size_of(uint64_t *s)
{
    static const uint64_t sizes[] = {0, 1, 8, 24, 40, 41, 100, 300, 1000, 8168, 32744, 40000};
    uint64_t r = random_next(s);
    return r % 8 ? r >> 8 & 63 : sizes[(r >> 16) % (sizeof sizes / sizeof *sizes)];
}

static bool know(uint64_t at, uint64_t size, bool freed)
{
    struct kfind f = kfind_look(t.heap, at);
    return f.base == at && f.size == size && f.freed == freed;
}

static uint64_t count(size_t field)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < KHEAP_COUNTS; i++)
        n += kprim_ld64(KSLAB_FIELD(t.heap, counts) + i * sizeof(struct kheap_counts) + field, KPRIM_RELAXED);
    return n;
}

// Takes and releases blocks of all sizes; each is filled with its own byte while it is in use.
static void work(uint64_t seed, unsigned rounds, uint64_t *native, uint64_t *plain)
{
    struct warp held[8] = {{0}};
    uint64_t s = seed * 0x9e3779b97f4a7c15u + 1, sizes[8][LANES];
    for (unsigned round = 0; round < rounds; round++) {
        unsigned k = random_next(&s) % 8;
        struct warp *w = &held[k];
        if (w->mask) {
            for (uint32_t l = 0; l < LANES; l++) {
                w->a[l] = w->result[l];
                for (uint64_t i = 0; w->mask >> l & 1 && i < sizes[k][l]; i++)
                    if (((uint8_t *)w->a[l])[i] != (uint8_t)(seed + l))
                        abort();
            }
            call_all(FREE, w);
            w->mask = 0;
            continue;
        }
        w->mask = (uint32_t)random_next(&s);
        bool aligned = random_next(&s) % 4 == 0;
        for (uint32_t l = 0; l < LANES; l++) {
            w->a[l] = sizes[k][l] = size_of(&s);
            w->b[l] = (uint64_t)16 << random_next(&s) % 9;
        }
        call_all(aligned ? ALIGNED : MALLOC, w);
        *native += (uint64_t)__builtin_popcount(w->done);
        *plain += (uint64_t)__builtin_popcount(w->mask & ~w->done);
        for (uint32_t l = 0; l < LANES; l++) {
            if (!(w->mask >> l & 1))
                continue;
            if (!w->result[l])
                w->mask &= ~((uint32_t)1 << l);
            else if (w->result[l] % (aligned ? w->b[l] : 16) || !know(w->result[l], sizes[k][l], false))
                abort();
            else
                memset((void *)w->result[l], (uint8_t)(seed + l), sizes[k][l]);
        }
    }
    for (unsigned k = 0; k < 8; k++) {
        memcpy(held[k].a, held[k].result, sizeof held[k].a);
        call_all(FREE, &held[k]);
    }
}

static void is_empty(void)
{
    kheap_testing_scan(&t);
    kheap_testing_scan(&t);
    assert_int_equal(kheap_testing_records(&t), 0);
    assert_int_equal(kheap_testing_waits(&t), 0);
    assert_int_equal(count(offsetof(struct kheap_counts, mallocs)),
                     count(offsetof(struct kheap_counts, frees)));
    // Arrays may have grown.
    assert_true(kheap_testing_whole(&t) + KHEAP_ARRAYS >= t.plan.chunks);
}

static void good_blocks(void **state)
{
    (void)state;
    uint64_t native = 0, plain = 0;
    work(1, 4000, &native, &plain);
    is_empty();
    // Most calls are common ones, and those that are not happen too.
    assert_true(native > 3 * plain && plain > 100);
}

static void *work_thread(void *arg)
{
    uint64_t native = 0, plain = 0;
    kprim_self = (uint32_t)(uintptr_t)arg;
    work((uintptr_t)arg, 1500, &native, &plain);
    return NULL;
}

static void good_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_thread, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    is_empty();
}

// Pointers that free must refuse: they are declined, and not a byte of the heap is another one.
static void bad_frees(void **state)
{
    (void)state;
    uint64_t p = kalloc_malloc(t.heap, 40), q = kalloc_malloc(t.heap, 40), r = kalloc_malloc(t.heap, 40),
             big = kalloc_malloc(t.heap, 200000);
    struct warp w = {.mask = 1, .a = {p}};
    call(FREE, &w);
    assert_int_equal(w.done, 1);
    assert_true(know(p, 40, true));
    *(uint8_t *)(q - 16) ^= 1;  // the head canary
    *(uint8_t *)(r - 8) ^= 1;   // the size
    const uint64_t wrong[] = {
        p, p + 16, p + 1, q, r, big + 65536, t.heap, 16, t.heap + t.plan.bytes, UINT64_MAX - 15};
    uint8_t *before = malloc(t.plan.bytes);
    memcpy(before, t.memory, t.plan.bytes);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        w = (struct warp){.mask = 1, .a = {wrong[i]}};
        call(FREE, &w);
        assert_int_equal(w.done, 0);
        assert_memory_equal(before, t.memory, t.plan.bytes);
    }
    free(before);
    // Of two lanes that free the same block one is declined, and reported.
    uint64_t twice = kalloc_malloc(t.heap, 8);
    w = (struct warp){.mask = 3, .a = {twice, twice}};
    call_all(FREE, &w);
    assert_int_equal(w.done, 1);
    assert_int_equal(kheap_testing_records(&t), 1);
    assert_int_equal(t.ring->records[0].kind, KHEAP_DOUBLE_FREE);
    w = (struct warp){.mask = 3, .a = {0, big}};
    call(FREE, &w);
    assert_int_equal(w.done, 3);
}

// What needs more than a slab that was used last is left to the PTX.
static void declined_sizes(void **state)
{
    (void)state;
    struct warp w = {.mask = 7, .a = {UINT64_MAX, 100000, (uint64_t)t.plan.chunks * KLAYOUT_CHUNK}};
    call(MALLOC, &w);
    assert_int_equal(w.done, 0);
    assert_int_equal(count(offsetof(struct kheap_counts, mallocs)), 0);
    assert_int_equal(kheap_testing_whole(&t), t.plan.chunks);
}

// A heap whose memory a kernel may not access, or that a kernel has overwritten, is declined.
static void bad_heap(void **state)
{
    (void)state;
    uint64_t p = kalloc_malloc(t.heap, 40);
    struct kheap *h = (void *)t.memory;
    uint64_t states = h->states;
    struct warp w = {.mask = 1, .a = {40}}, f = {.mask = 1, .a = {p}};
    const uint64_t wrong[] = {0, 8, 1, (uint64_t)1 << 50, UINT64_MAX};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        h->states = wrong[i];
        call(MALLOC, &w);
        assert_int_equal(w.done, 0);
        call(FREE, &f);
        assert_int_equal(f.done, 0);
    }
    h->states = states;
    uint32_t arrays = h->arrays;
    h->arrays = 0;
    call(MALLOC, &w);
    assert_int_equal(w.done, 0);
    h->arrays = arrays;
    call(MALLOC, &w);
    assert_int_equal(w.done, 1);
    memset(coarse + (t.heap >> NATIVE_COARSE_BITS), NATIVE_READ,
           ((t.heap + t.plan.bytes) >> NATIVE_COARSE_BITS) - (t.heap >> NATIVE_COARSE_BITS) + 1);
    call(MALLOC, &w);
    assert_int_equal(w.done, 0);
}

// An array of entries grows when it is four fifths full: the malloc that finds it so is declined, and gives
// its block back.
static void grows(void **state)
{
    (void)state;
    enum { BLOCKS = 3000, FULL = KLAYOUT_ENTRIES - KLAYOUT_ENTRIES / 5 };
    static uint64_t blocks[BLOCKS];
    bool at_full = false;
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct warp w = {.mask = 1, .a = {40}};
        assert_int_equal(kentry_level(kentry_array(t.heap, 0)), i > FULL);
        call_all(MALLOC, &w);
        at_full |= i == FULL && !w.done;
        blocks[i] = w.result[0];
        assert_true(know(blocks[i], 40, false));
    }
    assert_true(at_full);
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct warp w = {.mask = 1, .a = {blocks[i]}};
        call_all(FREE, &w);
        assert_int_equal(w.done, 1);
    }
    kheap_testing_scan(&t);
    // All but that of the new part of the array.
    assert_int_equal(kheap_testing_whole(&t), t.plan.chunks - 1);
}

// Where many freed bytes wait, malloc scans, and reports what it finds.
static void scans(void **state)
{
    (void)state;
    struct warp w = {.mask = UINT32_MAX};
    uint64_t eighth = (uint64_t)t.plan.chunks * (KLAYOUT_CHUNK / 8), most = 0;
    for (unsigned round = 0; round < 4000; round++) {
        for (uint32_t l = 0; l < LANES; l++)
            w.a[l] = 1000;
        call_all(MALLOC, &w);
        memcpy(w.a, w.result, sizeof w.a);
        if (round == 3000)
            ((uint8_t *)w.a[7])[1000] ^= 1;
        call_all(FREE, &w);
        most = kheap_testing_waits(&t) > most ? kheap_testing_waits(&t) : most;
    }
    assert_in_range(most, eighth, 3 * eighth);
    assert_int_equal(kheap_testing_records(&t), 1);
    assert_int_equal(t.ring->records[0].kind, KHEAP_OVERRUN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_blocks, make, drop),
        cmocka_unit_test_setup_teardown(good_threads, make, drop),
        cmocka_unit_test_setup_teardown(bad_frees, make, drop),
        cmocka_unit_test_setup_teardown(declined_sizes, make, drop),
        cmocka_unit_test_setup_teardown(bad_heap, make, drop),
        cmocka_unit_test_setup_teardown(grows, make, drop),
        cmocka_unit_test_setup_teardown(scans, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
