// SPDX-License-Identifier: MIT
#include "cpu/memory_fake.h"

#define MIB ((uint64_t)1 << 20)
#define ALLOC(size) fake_heap_alloc(&fake_ctx, size)
#define FREE(addr) fake_heap_free(&fake_ctx, addr)

enum { GRANULE = 16, SLOTS = 3000 };

struct block {
    uint64_t at, size;
};

static int setup(void **state)
{
    fake_ctx.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 4 * MIB;
    return 0;
}

static int teardown(void **state)
{
    bool valid = memory_heap_valid(&fake_ctx);
    memory_context_free(&fake_ctx);
    return valid ? 0 : -1;
}

// Allocates the whole heap as one block, which shows where it is and that nothing else is in it.
static uint64_t whole(uint64_t size)
{
    uint64_t base = ALLOC(size);
    assert_true(base);
    assert_int_equal(ALLOC(1), 0);
    assert_true(FREE(base));
    return base;
}

// Overwrites the heap, as a kernel may.
static void overwrite(uint64_t base, uint64_t size)
{
    memset(space_host(base), (int)fake_random(), size);
}

static uint64_t random_size(void)
{
    static const unsigned most[] = {16, 16, 100, 700, 700, 700, 700, 12000};
    return 1 + fake_random() % (fake_random() % 500 ? most[fake_random() % 8] : 300000);
}

// --- against a model: the owner of each granule of the heap ------------------------------------------------

static uint16_t owner[4 << 20 >> 4];  // slot + 1

static void own(uint64_t base, struct block b, unsigned from, unsigned to)
{
    assert_int_equal(b.at % GRANULE, 0);
    assert_true(b.at >= base && b.at + b.size <= base + sizeof owner / sizeof *owner * GRANULE);
    for (uint64_t i = (b.at - base) / GRANULE; i < (b.at + b.size - base + GRANULE - 1) / GRANULE; i++) {
        assert_int_equal(owner[i], from);
        owner[i] = (uint16_t)to;
    }
}

// Frees an address at which no block starts, by the model.
static void free_nothing(uint64_t base, const struct block *blocks)
{
    uint64_t at = base + fake_random() % (4 * MIB);
    if (fake_random() % 2)
        at &= ~(uint64_t)(GRANULE - 1);
    unsigned slot = owner[(at - base) / GRANULE];
    if (!slot || blocks[slot - 1].at != at)
        assert_false(FREE(at));
}

static void good_model(void **state)
{
    static struct block blocks[SLOTS];
    uint64_t base = whole(4 * MIB);
    memset(blocks, 0, sizeof blocks);
    memset(owner, 0, sizeof owner);
    for (unsigned step = 0; step < 200000; step++) {
        unsigned slot = fake_random() % SLOTS;
        struct block *b = &blocks[slot];
        if (b->at) {
            own(base, *b, slot + 1, 0);
            assert_true(FREE(b->at));
            assert_false(FREE(b->at));
            b->at = 0;
        } else if ((b->at = ALLOC(b->size = random_size()))) {
            own(base, *b, 0, slot + 1);
        }
        free_nothing(base, blocks);
        if (step % 5000 == 0) {
            overwrite(base, 4 * MIB);
            assert_true(memory_heap_valid(&fake_ctx));
        }
    }
    for (unsigned slot = 0; slot < SLOTS; slot++)
        assert_true(!blocks[slot].at || FREE(blocks[slot].at));
    assert_int_equal(whole(4 * MIB), base);
}

// --- invalid frees -----------------------------------------------------------------------------------------

static void bad_frees(void **state)
{
    assert_false(FREE(4096));  // before there is a heap
    uint64_t base = whole(4 * MIB);
    static const uint64_t sizes[] = {1, 16, 17, 40, 100, 700, 1024, 1025, 5000, 8192, 8193, 70000, 1000000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t size = sizes[i], a = ALLOC(size), b = ALLOC(size);
        assert_true(a && b);
        overwrite(base, 4 * MIB);
        for (uint64_t k = 1; k < size; k++)
            assert_false(FREE(a + k));
        assert_true(FREE(a));
        assert_false(FREE(a));
        assert_true(FREE(b));
        for (uint64_t k = 0; k < size; k += GRANULE)
            assert_false(FREE(a + k) || FREE(b + k));
    }
    static const uint64_t wild[] = {0, 1, GRANULE, (uint64_t)1 << 46, UINT64_MAX - 15, UINT64_MAX};
    for (unsigned i = 0; i < sizeof wild / sizeof *wild; i++)
        assert_false(FREE(wild[i]) || FREE(base + wild[i]) || FREE(base - 1 - wild[i]));
    assert_false(FREE(base + 4 * MIB) || FREE(base + 4 * MIB - 1) || FREE(fake_alloc(100)));
    memory_context_free(&fake_ctx);
    assert_false(FREE(base));
}

static void bad_other_context(void **state)
{
    struct CUctx_st other = {.limits = {[CU_LIMIT_MALLOC_HEAP_SIZE] = 2 * MIB}};
    uint64_t a = ALLOC(100), b = fake_heap_alloc(&other, 100);
    assert_true(a && b);
    assert_false(FREE(b) || fake_heap_free(&other, a));
    assert_true(FREE(a) && fake_heap_free(&other, b));
    memory_context_free(&other);
}

// --- the limit, and out of memory --------------------------------------------------------------------------

// Returns how many blocks of a size can be allocated; they are linked through their own bytes, as no other
// memory would be large enough.
static unsigned fill(uint64_t size, uint64_t *last)
{
    unsigned n = 0;
    for (uint64_t at; (at = ALLOC(size)); n++) {
        memcpy(space_host(at), last, sizeof *last);
        *last = at;
    }
    return n;
}

static void empty(uint64_t last)
{
    for (uint64_t next; last; last = next) {
        memcpy(&next, space_host(last), sizeof next);
        assert_true(FREE(last));
    }
}

// The whole limit can be allocated, except for the difference between a size and its class, and between a
// block and whole pages.
static void good_limit(void **state)
{
    static const struct {
        uint64_t size;
        unsigned percent;
    } rows[] = {{16, 100},   {24, 75},     {48, 99},       {64, 100},     {100, 77},
                {640, 82},   {768, 98},    {4096, 100},    {6144, 93},    {9000, 73},
                {50000, 92}, {65536, 100}, {2 << 20, 100}, {4 << 20, 100}};
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
            uint64_t last = 0, n = fill(rows[i].size, &last);
            assert_in_range(n * rows[i].size, 4 * MIB * rows[i].percent / 100, 4 * MIB);
            assert_int_equal(ALLOC(rows[i].size), 0);
            empty(last);
        }
    }
    whole(4 * MIB);
    assert_int_equal(ALLOC(4 * MIB + 1), 0);
    assert_int_equal(ALLOC(UINT64_MAX), 0);
    assert_int_equal(ALLOC(0), 0);
}

static void bad_no_heap(void **state)
{
    fake_ctx.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 0;
    assert_int_equal(ALLOC(1), 0);
    fake_ctx.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 2 * fake_total;
    assert_int_equal(ALLOC(1), 0);
}

// Nothing is lost when sizes alternate, and holes are filled again.
static void good_turns(void **state)
{
    uint64_t some[100], last;
    unsigned first[2] = {0};
    for (int round = 0; round < 6; round++) {
        uint64_t size = round % 2 ? 1500 : 80;
        unsigned n = fill(size, (last = 0, &last));
        if (round < 2)
            first[round] = n;
        assert_int_equal(n, first[round % 2]);
        for (unsigned i = 0; i < 100; i++) {
            some[i] = last;
            memcpy(&last, space_host(last), sizeof last);
            assert_true(FREE(some[i]));
        }
        for (unsigned i = 0; i < 100; i++)
            assert_true((some[i] = ALLOC(size)));
        assert_int_equal(ALLOC(size), 0);
        for (unsigned i = 0; i < 100; i++)
            assert_true(FREE(some[i]));
        empty(last);
    }
    whole(4 * MIB);
}

// If no pages are left, a block of a larger class or a single page is used.
static void good_scarce(void **state)
{
    uint64_t last = 0, hole, lone[2];
    fill(700, &last);
    hole = last;
    memcpy(&last, space_host(last), sizeof last);
    assert_true(FREE(hole));
    assert_int_equal(ALLOC(20), hole);
    assert_int_equal(ALLOC(20), 0);
    assert_true(FREE(hole));
    empty(last);
    for (uint64_t next = last = 0; (next = ALLOC(9000)); last = next)
        memcpy(space_host(next), &last, sizeof last);
    lone[0] = ALLOC(20);
    assert_true(lone[0]);
    assert_int_equal(lone[0] % 4096, 0);
    assert_false(FREE(lone[0] + GRANULE));
    lone[1] = ALLOC(20);
    assert_true(FREE(lone[0]) && (!lone[1] || FREE(lone[1])));
    empty(last);
    whole(4 * MIB);
}

static void bad_no_memory(void **state)
{
    uint64_t at = 0;
    long n = 0;
    for (; !at; n++) {
        assert_in_range(n, 0, 50);
        mem_fail_after(n);
        at = ALLOC(100);
        mem_fail_after(-1);
    }
    assert_true(n > 4 && FREE(at));
}

// --- warps -------------------------------------------------------------------------------------------------

// Requested lanes are served, whatever their sizes; the others are not touched.
static void good_warp(void **state)
{
    uint64_t sizes[32], at[32];
    for (unsigned l = 0; l < 32; l++) {
        sizes[l] = l == 3 ? 0 : l == 4 ? UINT64_MAX : l == 5 ? 100000 : 1 + l * 40;
        at[l] = 1000 + l;
    }
    memory_heap_alloc(&fake_ctx, 0xfffffffc, sizes, at);
    for (unsigned l = 0; l < 32; l++) {
        if (l < 2)
            assert_int_equal(at[l], 1000 + l);
        else
            assert_int_equal(at[l] == 0, l == 3 || l == 4);
        for (unsigned k = 2; at[l] && k < l; k++)
            assert_true(!at[k] || at[k] + sizes[k] <= at[l] || at[l] + sizes[l] <= at[k]);
    }
    assert_int_equal(memory_heap_free(&fake_ctx, 0xfffffffc, at), 0);
    assert_int_equal(memory_heap_free(&fake_ctx, 0xfffffffc, at), 0xffffffe4);
    assert_int_equal(memory_heap_free(&fake_ctx, 0, at), 0);
    whole(4 * MIB);
}

// A lane that gets nothing does not keep the others from getting their blocks.
static void good_warp_scarce(void **state)
{
    uint64_t most = ALLOC(3 * MIB), at[4], sizes[4] = {100, 2 * MIB, 5000, MIB};
    memory_heap_alloc(&fake_ctx, 15, sizes, at);
    assert_true(most && at[0] && !at[1] && at[2] && !at[3]);
    assert_int_equal(memory_heap_free(&fake_ctx, 15, at), 0);
    assert_true(FREE(most));
    whole(4 * MIB);
}

static void bad_warp(void **state)
{
    uint64_t a = ALLOC(100), b = ALLOC(100), c = ALLOC(50000);
    const uint64_t at[] = {a, b + 16, a, 0, c, b, c, c + 4096, 12345, b};
    assert_int_equal(memory_heap_free(&fake_ctx, 0x3ff, at), 0x3c6);
    const uint64_t none[] = {0, 16};
    assert_int_equal(memory_heap_free(&fake_ctx, 3, none), 2);
    memory_context_free(&fake_ctx);
    assert_int_equal(memory_heap_free(&fake_ctx, 0x3ff, at), 0x3f7);
}

static void *allocate_warp(void *arg)
{
    uint64_t *at = arg, sizes[32];
    for (unsigned l = 0; l < 32; l++)
        sizes[l] = 64;
    memory_heap_alloc(&fake_ctx, UINT32_MAX, sizes, at);
    return NULL;
}

// A warp frees blocks that several threads have allocated, so of several shards, twice each.
static void bad_warp_of_many_threads(void **state)
{
    uint64_t from[8][32], mixed[32];
    for (unsigned t = 0; t < 8; t++) {
        pthread_t id;
        assert_int_equal(pthread_create(&id, NULL, allocate_warp, from[t]), 0);
        pthread_join(id, NULL);
    }
    for (unsigned k = 0; k < 16; k++) {
        for (unsigned l = 0; l < 32; l++)
            mixed[l] = from[l % 8][l % 16 / 8 + 2 * k];
        assert_int_equal(memory_heap_free(&fake_ctx, UINT32_MAX, mixed), 0xffff0000);
        assert_true(memory_heap_valid(&fake_ctx));
    }
    whole(4 * MIB);
}

// --- threads -----------------------------------------------------------------------------------------------

enum { THREADS = 4, SHARED = 64 };

static _Atomic uint64_t shared[SHARED];  // one thread allocates, another one frees
static _Atomic uint64_t contested;       // all threads free it
static atomic_uint freed;
static pthread_barrier_t together;

static void *busy(void *arg)
{
    unsigned seed = 12345 + (unsigned)(uintptr_t)arg;
    uintptr_t wrong = 0;
    for (unsigned i = 0; i < 20000; i++) {
        seed = seed * 1103515245 + 12345;
        uint64_t size = 8 + (seed >> 8) % (i % 100 ? 600 : 20000), at = ALLOC(size);
        if (at)
            memset(space_host(at), (int)seed, 8);
        at = atomic_exchange(&shared[seed >> 16 & (SHARED - 1)], at);
        wrong += at && (FREE(at + 1) || !FREE(at));
    }
    for (unsigned i = 0; i < 500; i++) {
        pthread_barrier_wait(&together);
        if (!arg)
            contested = ALLOC(i % 2 ? 100 : 10000);
        pthread_barrier_wait(&together);
        freed += FREE(contested);
    }
    return (void *)wrong;
}

static void run_threads(void *(*fn)(void *))
{
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, fn, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(t[i], &wrong);
        assert_ptr_equal(wrong, NULL);
    }
}

static void good_threads(void **state)
{
    freed = 0;
    pthread_barrier_init(&together, NULL, THREADS);
    run_threads(busy);
    pthread_barrier_destroy(&together);
    assert_int_equal(freed, 500);
    assert_true(memory_heap_valid(&fake_ctx));
    for (unsigned i = 0; i < SHARED; i++)
        assert_true(!shared[i] || FREE(shared[i]));
    whole(4 * MIB);
}

// Half of the threads free any address while spans come and go: every block is still freed exactly once.
static uint64_t wild_base;
static atomic_uint allocated;

static void *wild(void *arg)
{
    unsigned seed = 99 + (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < 40000; i++) {
        seed = seed * 1103515245 + 12345;
        if ((uintptr_t)arg % 2)
            freed += FREE(wild_base + (seed >> 8) % 256 * 1024);
        else if (i % 64 < 32)
            allocated += ALLOC(i % 128 < 64 ? 3000 : 4096) != 0;
        else
            for (uint64_t at = 0; i % 64 == 63 && at < 256 << 10; at += 1024)
                freed += FREE(wild_base + at);
    }
    return NULL;
}

static void bad_frees_at_once(void **state)
{
    wild_base = whole(4 * MIB);
    freed = allocated = 0;
    run_threads(wild);
    assert_true(memory_heap_valid(&fake_ctx));
    for (uint64_t at = 0; at < 4 * MIB; at += GRANULE)
        freed += FREE(wild_base + at);
    assert_int_equal(freed, allocated);
    whole(4 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_model, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_frees, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_other_context, setup, teardown),
        cmocka_unit_test_setup_teardown(good_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_no_heap, setup, teardown),
        cmocka_unit_test_setup_teardown(good_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(good_scarce, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(good_warp, setup, teardown),
        cmocka_unit_test_setup_teardown(good_warp_scarce, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_warp, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_warp_of_many_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(good_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_frees_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
