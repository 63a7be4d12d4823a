// SPDX-License-Identifier: MIT
// The table and the judge against a model that is a list of blocks: random blocks, frees and withdrawals,
// after each of which addresses are looked up, and accesses judged, in a copy that only gets what the table
// says has changed.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "check/check_table.h"
#include "kcheck/kcheck_judge.h"

enum { CHUNK = 1 << KCHECK_CHUNK_BITS, MOST = 256, RECORDS = 1 << 21 };
static const uint64_t area = 0x7f4000000000 - 2 * CHUNK, area_size = 6 * CHUNK;

_Thread_local uint32_t kprim_self;
static uint64_t random_state;
static unsigned traps;

void kprim_step(void)
{
}

void kprim_pause(void)
{
}

bool kprim_is_global(uint64_t address)
{
    return address >> 32 != 0x1234;  // a window of shared memory
}

uint32_t kprim_dynamic_shared(void)
{
    return 0;
}

void kprim_trap(void)
{
    traps++;
}

static uint64_t any(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 24;
}

// What a device has.
static uint64_t *directory;
static struct kcheck_record *records;
static struct kcheck_state *state;
static struct error_ring *ring;
static struct error_ring_reader reader;
static struct kcheck_module module;
static struct check_table *table;

static void *zeros(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static int make(void **unused)
{
    directory = zeros((size_t)KCHECK_DIRECTORY_WORDS * 8);
    records = zeros(RECORDS * sizeof *records);
    assert_non_null(state = calloc(1, sizeof *state));
    assert_non_null(ring = calloc(1, error_ring_bytes(KCHECK_RING)));
    error_ring_writer_start(&state->errors, (uintptr_t)ring, KCHECK_RING);
    error_ring_reader_start(&reader, ring, KCHECK_RING);
    module = (struct kcheck_module){.directory = (uintptr_t)directory,
                                    .records = (uintptr_t)records,
                                    .state = (uintptr_t)state,
                                    .number = 7};
    assert_non_null(table = check_table_new());
    traps = 0;
    return 0;
}

static int drop(void **unused)
{
    munmap(directory, (size_t)KCHECK_DIRECTORY_WORDS * 8);
    munmap(records, RECORDS * sizeof *records);
    free(state);
    free(ring);
    check_table_free(table);
    return 0;
}

static void flush(void)
{
    size_t n;
    const struct check_table_run *runs = check_table_records_changed(table, &n);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = runs[i].first; j < runs[i].first + runs[i].count; j++) {
            assert_true(j < RECORDS);
            records[j] = check_table_piece(table, j / CHECK_TABLE_PIECE)[j % CHECK_TABLE_PIECE];
        }
    runs = check_table_words_changed(table, &n);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = runs[i].first; j < runs[i].first + runs[i].count; j++)
            directory[j] = check_table_page(table, j / CHECK_TABLE_PAGE_WORDS)[j % CHECK_TABLE_PAGE_WORDS];
    check_table_clean(table);
}

// --- the model ---------------------------------------------------------------------------------------------

struct model_block {
    struct check_table_block b;
    bool freed;
};
static struct model_block blocks[MOST];
static unsigned nblocks;
static uint64_t serial;

static bool overlap(const struct check_table_block *b, uint64_t base, uint64_t end)
{
    return b->base < end && b->base + b->size > base;
}

static void model_forget(uint64_t base, uint64_t end, bool inner)
{
    for (unsigned i = 0; i < nblocks;)
        if (overlap(&blocks[i].b, base, end) && (blocks[i].b.flags & CHECK_TABLE_INNER) == inner)
            blocks[i] = blocks[--nblocks];
        else
            i++;
}

static void add(uint64_t base, uint64_t size, unsigned flags)
{
    struct check_table_block b = {base, size, ++serial, flags};
    model_forget(base, base + size, flags & CHECK_TABLE_INNER);
    if (!(flags & (CHECK_TABLE_INNER | CHECK_TABLE_SHARES)))
        model_forget(base, base + size, true);
    assert_true(nblocks < MOST);
    blocks[nblocks++] = (struct model_block){b, false};
    assert_int_equal(check_table_add(table, &b), 0);
    flush();
}

static void free_block(struct model_block *b)
{
    assert_int_equal(check_table_mark(table, b->b.base, b->b.serial), !b->freed);
    b->freed = true;
    flush();
}

static const struct model_block *model_find(uint64_t address)
{
    const struct model_block *found = NULL;
    for (unsigned i = 0; i < nblocks; i++) {
        const struct model_block *b = &blocks[i];
        if (!overlap(&b->b, address, address + 1))
            continue;
        bool better = !found || (found->freed && !b->freed) ||
                      (found->freed == b->freed && b->b.flags & CHECK_TABLE_INNER);
        found = better ? b : found;
    }
    return found;
}

static bool all_live(uint64_t address, uint64_t width)
{
    for (uint64_t i = 0; i < width; i++) {
        const struct model_block *b = model_find(address + i);
        if (!b || b->freed)
            return false;
    }
    return true;
}

static bool inside(const struct model_block *b, uint64_t address, uint64_t width)
{
    return b && !b->freed && address >= b->b.base && address + width <= b->b.base + b->b.size;
}

static uint32_t model_by_address(uint64_t address, uint64_t width)
{
    const struct model_block *b = model_find(address);
    if (all_live(address, width))
        return 0;
    if (b && b->freed)
        return KCHECK_USE_FREED;
    return address < KCHECK_NULL_PAGE ? KCHECK_NULL : KCHECK_STRAY;
}

static uint32_t model_judge(uint64_t address, uint64_t width, uint64_t root)
{
    const struct model_block *r = model_find(root), *before = model_find(root - 1);
    if (!root)
        return all_live(address, width) ? 0 : KCHECK_NULL;
    if (before && (before->freed || before->b.base + before->b.size != root))
        before = NULL;
    if (inside(r, address, width) || (r && !r->freed && inside(before, address, width)))
        return 0;
    if (!r || (r->freed && before))
        return model_by_address(address, width);
    if (!r->freed && r->b.flags & CHECK_TABLE_LOOSE) {
        uint32_t kind = model_by_address(address, width);
        if (kind == KCHECK_USE_FREED || (!kind && model_find(address)->b.flags & CHECK_TABLE_LOOSE))
            return kind;
    }
    return r->freed ? KCHECK_USE_FREED : KCHECK_LEFT;
}

// --- comparing ---------------------------------------------------------------------------------------------

static uint64_t some_address(void)
{
    if (nblocks && any() % 4) {
        const struct check_table_block *b = &blocks[any() % nblocks].b;
        uint64_t at = any() % 2 ? b->base : b->base + b->size;
        return at + any() % 40 - 20;
    }
    return area + any() % area_size;
}

static void compare_find(uint64_t address)
{
    const struct model_block *want = model_find(address);
    struct kcheck_block got = kcheck_judge_find(&module, address);
    assert_int_equal(got.base, want ? want->b.base : 0);
    if (!want)
        return;
    assert_int_equal(got.size & KCHECK_SIZE, want->b.size);
    assert_int_equal(!(got.size & KCHECK_FREED), !want->freed);
}

static void compare_judge(uint64_t address, uint64_t width, uint64_t root)
{
    uint64_t what = KCHECK_WHAT(3, width, KCHECK_READS | KCHECK_ROOT);
    struct kcheck_access a = {what, address, root, 0, width};
    assert_int_equal(kcheck_judge(&module, &a).kind, model_judge(address, width, root));
    a.what = KCHECK_WHAT(3, width, KCHECK_READS);
    assert_int_equal(kcheck_judge(&module, &a).kind, model_by_address(address, width));
}

static void random_step(unsigned tight)
{
    uint64_t at = area + any() % area_size, size = 1 + any() % 5000;
    switch (any() % 8) {
    case 0:
        at &= ~(uint64_t)(CHUNK - 1);
        size = CHUNK + any() % (2 * CHUNK);
        break;
    case 1: size = 1 + any() % CHUNK; break;
    default: at &= tight ? ~(uint64_t)15 : ~(uint64_t)255; break;
    }
    if (nblocks && any() % 3 == 0) {
        const struct check_table_block *near = &blocks[any() % nblocks].b;
        at = near->base + near->size;  // right behind another one
    }
    if (at + size > area + area_size)
        return;
    static const unsigned flags[] = {0,
                                     0,
                                     0,
                                     CHECK_TABLE_INNER,
                                     CHECK_TABLE_INNER,
                                     CHECK_TABLE_LOOSE,
                                     CHECK_TABLE_SHARES,
                                     CHECK_TABLE_ORDERED};
    unsigned kind = any() % 12;
    if (nblocks < MOST - 1 && kind < 7)
        add(at, size, flags[any() % 8]);
    else if (nblocks && kind < 10) {
        struct model_block *b = &blocks[any() % nblocks];
        if (!(b->b.flags & CHECK_TABLE_INNER))
            free_block(b);
    } else {
        model_forget(at, at + size, true);
        assert_int_equal(check_table_withdraw(table, at, at + size), 0);
        flush();
    }
}

static void random_blocks_against_a_model(void **unused)
{
    unsigned cases = unit_cases(400);
    for (unsigned n = 0; n < cases; n++) {
        if (n % 8 == 0 && n) {
            drop(NULL);
            make(NULL);
            nblocks = 0;
        }
        for (unsigned i = 0; i < 60; i++) {
            random_step(n % 2);
            check_table_launches(table, i, any() % 2 ? i : 0);
            for (unsigned j = 0; j < 40; j++) {
                compare_find(some_address());
                uint64_t root = some_address();
                compare_judge(any() % 2 ? root + any() % 64 - 32 : some_address(), (uint64_t)1 << any() % 5,
                              any() % 16 ? root : 0);
            }
        }
        assert_true(check_table_valid(table));
    }
    nblocks = 0;
}

static void strides_divide_exactly(void **unused)
{
    for (uint32_t stride = KCHECK_GRANULE; stride <= CHUNK / 2; stride += KCHECK_GRANULE) {
        uint32_t r = kcheck_reciprocal(stride);
        for (uint64_t edge = stride; edge < CHUNK; edge += stride) {
            assert_int_equal(kcheck_slot(area + edge, r), edge / stride);
            assert_int_equal(kcheck_slot(area + edge - 1, r), edge / stride - 1);
        }
        assert_int_equal(kcheck_slot(area + CHUNK - 1, r), (CHUNK - 1) / stride);
    }
}

static void blocks_in_a_divided_chunk(void **unused)
{
    nblocks = 0;
    uint32_t before = check_table_records(table);
    assert_int_equal(check_table_divide(table, area, CHUNK, 768), 0);
    assert_int_equal(check_table_records(table), before + (CHUNK + 767) / 768);
    assert_int_equal(check_table_divide(table, area, CHUNK, 512), 0);  // stays as it is
    assert_int_equal(check_table_divide(table, area, CHUNK, 100), -EINVAL);
    assert_int_equal(check_table_divide(table, area, CHUNK + 256, 512), -EINVAL);
    for (unsigned i = 0; i < 100; i++)
        add(area + 768 * i, 1 + 5 * i, 0);
    free_block(&blocks[17]);
    for (unsigned i = 0; i < 5000; i++)
        compare_find(area + any() % (768 * 110));
    assert_int_equal(check_table_records(table), before + (CHUNK + 767) / 768);
    nblocks = 0;
}

// Slots that begin in one chunk and end in the next: no two blocks share a record.
static void blocks_across_divided_chunks(void **unused)
{
    enum { STRIDE = 5 << 16, SLOTS = 4 * CHUNK / STRIDE };
    nblocks = 0;
    uint32_t before = check_table_records(table);
    assert_int_equal(check_table_divide(table, area, (uint64_t)4 * CHUNK, STRIDE), 0);
    for (unsigned i = 0; i < SLOTS; i++)
        add(area + (uint64_t)STRIDE * i, STRIDE - 256 - 100 * i, 0);
    free_block(&blocks[6]);
    assert_int_equal(check_table_records(table), before + 4 * CHUNK / (1 << 16));
    for (unsigned i = 0; i < 5000; i++)
        compare_find(area + any() % ((uint64_t)4 * CHUNK));
    nblocks = 0;
}

static void a_large_block_has_few_records(void **unused)
{
    uint64_t size = (uint64_t)1 << 36;
    uint32_t before = check_table_records(table);
    struct check_table_block b = {area, size, 1, 0};
    assert_int_equal(check_table_add(table, &b), 0);
    assert_int_equal(check_table_records(table), before + 1);
    flush();
    assert_int_equal(kcheck_judge_find(&module, area + size - 1).base, area);
    assert_true(check_table_mark(table, area, 1));
    assert_false(check_table_mark(table, area, 1));
    assert_false(check_table_mark(table, area, 2));
    size_t n;
    check_table_records_changed(table, &n);
    assert_int_equal(n, 1);
    flush();
    assert_true(kcheck_judge_find(&module, area + size / 2).size & KCHECK_FREED);
}

static void blocks_that_no_table_describes(void **unused)
{
    const struct check_table_block bad[] = {{0, 16, 1, 0},
                                            {area, 0, 1, 0},
                                            {(uint64_t)1 << 47, 1, 1, 0},
                                            {UINT64_MAX - 5, 16, 1, 0},
                                            {((uint64_t)1 << 47) - 8, 16, 1, 0}};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(check_table_add(table, &bad[i]), -EINVAL);
    assert_false(check_table_mark(table, (uint64_t)1 << 60, 1));
}

// Whichever allocation fails, the table says so, and can be freed.
static void out_of_memory(void **unused)
{
    for (long n = 0;; n++) {
        struct check_table *t = check_table_new();
        assert_non_null(t);
        mem_fail_after(n);
        int err = 0;
        for (unsigned i = 0; i < 20 && !err; i++) {
            struct check_table_block b = {area + 100 * i, 100, i + 1, i % 3 ? 0 : CHECK_TABLE_INNER};
            err = check_table_add(t, &b);
        }
        mem_fail_after(-1);
        assert_int_equal(err, check_table_failed(t) ? -ENOMEM : 0);
        check_table_free(t);
        if (!err)
            return;
    }
}

// --- the judge ---------------------------------------------------------------------------------------------

static uint32_t access_at(uint64_t address, uint64_t root, unsigned site)
{
    uint64_t what = KCHECK_WHAT(site, 4, KCHECK_WRITES | KCHECK_ROOT | KCHECK_GENERIC);
    return kcheck_judge_access(&module, what, address, root, 99);
}

static void errors_are_recorded_once_and_counted(void **unused)
{
    struct error_ring_record r;
    struct check_table_block b = {area + 4096, 1024, 1, 0};
    assert_int_equal(check_table_add(table, &b), 0);
    flush();
    assert_int_equal(access_at(b.base + 1020, b.base, 5), KCHECK_PERFORM);
    assert_int_equal(access_at((uint64_t)0x1234 << 32, 0, 5), KCHECK_PERFORM);
    assert_false(error_ring_take(&reader, &r));
    for (unsigned i = 0; i < 100000; i++)
        assert_int_equal(access_at(b.base + 1024 + 4 * i, b.base, 5), KCHECK_SKIP);
    assert_int_equal(access_at(b.base - 4, b.base, 6), KCHECK_SKIP);
    assert_true(error_ring_take(&reader, &r));
    assert_int_equal(r.client, ERROR_RING_CHECK);
    assert_int_equal(r.kind, KCHECK_LEFT);
    assert_int_equal(r.site, 5);
    assert_int_equal(r.address, b.base + 1024);
    assert_int_equal(r.payload[1], b.base);
    assert_int_equal(r.payload[2], b.base);
    assert_int_equal(r.payload[3], b.size);
    assert_int_equal(r.payload[4], 99);
    assert_int_equal(r.payload[5], 7);
    assert_true(r.payload[6] < KCHECK_COUNTERS);
    assert_int_equal(state->counters[r.payload[6]].count, 100000);
    assert_true(error_ring_take(&reader, &r));
    assert_int_equal(r.site, 6);
    assert_false(error_ring_take(&reader, &r));
    state->trap = 1;
    access_at(b.base - 4, b.base, 6);
    assert_int_equal(traps, 1);
}

// On the host a block has one thread, and its number.
static uint64_t launch_of(uint32_t block)
{
    uint32_t before = kprim_self;
    kprim_self = block;
    uint64_t launch = kcheck_judge_launch((uintptr_t)state);
    kprim_self = before;
    return launch;
}

static void enter(uint32_t block, uint64_t launch)
{
    uint32_t before = kprim_self;
    kprim_self = block;
    kcheck_judge_enter((uintptr_t)state, launch);
    kprim_self = before;
}

static void a_block_finds_its_launch_and_no_other(void **unused)
{
    assert_int_equal(launch_of(5), 0);
    enter(5, 77);
    enter(6, 78);
    assert_int_equal(launch_of(5), 77);
    assert_int_equal(launch_of(6), 78);
    assert_int_equal(launch_of(7), 0);
    assert_int_equal(launch_of(5 + KCHECK_LAUNCHES), 0);
    enter(5 + KCHECK_LAUNCHES, 79);
    assert_int_equal(launch_of(5 + KCHECK_LAUNCHES), 79);
    assert_int_equal(launch_of(5), 0);
    assert_int_equal(launch_of(6), 78);
    // Two blocks that write at once may leave the half of each.
    enter(5, 77);
    state->launches[5].launch = 79;
    assert_int_equal(launch_of(5), 0);
}

// More errors than the ring has records: each is recorded as soon as there is room.
static void a_full_ring_loses_nothing_for_good(void **unused)
{
    struct error_ring_record r;
    unsigned taken = 0, sites = KCHECK_RING + 100;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < sites; i++)
            access_at(16, 0, i);
        while (error_ring_take(&reader, &r))
            taken++;
    }
    assert_int_equal(taken, sites);
}

// Without room for a counter every error is recorded.
static void more_errors_than_counters(void **unused)
{
    struct error_ring_record r;
    for (unsigned i = 0; i < KCHECK_COUNTERS; i++)
        state->counters[i].key = ~(uint64_t)i;
    access_at(16, 0, 1);
    access_at(16, 0, 1);
    assert_true(error_ring_take(&reader, &r));
    assert_int_equal(r.payload[6], KCHECK_COUNTERS);
    assert_true(error_ring_take(&reader, &r));
    assert_int_equal(state->crowded, 2);
}

// A variable's addresses belong to nobody when its module is gone: what comes there is not known.
static void a_block_that_is_forgotten(void **unused)
{
    const struct check_table_block freed = {0x7f0000200000, 300, 1, 0},
                                   forgotten = {0x7f0000200200, 300, 2, CHECK_TABLE_FORGOTTEN};
    assert_int_equal(check_table_add(table, &freed), 0);
    assert_int_equal(check_table_add(table, &forgotten), 0);
    flush();
    assert_int_equal(access_at(forgotten.base + 300, forgotten.base, 1), KCHECK_SKIP);
    assert_true(check_table_mark(table, freed.base, 1));
    assert_true(check_table_mark(table, forgotten.base, 2));
    assert_false(check_table_mark(table, forgotten.base, 2));
    flush();
    assert_int_equal(access_at(freed.base, freed.base, 2), KCHECK_SKIP);
    assert_int_equal(access_at(forgotten.base, forgotten.base, 3), KCHECK_PERFORM);
    assert_true(check_table_valid(table));
}

static void without_a_state_all_is_performed(void **unused)
{
    module.state = 0;
    assert_int_equal(access_at(0, 0, 1), KCHECK_PERFORM);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(random_blocks_against_a_model),
        TEST(strides_divide_exactly),
        TEST(blocks_in_a_divided_chunk),
        TEST(blocks_across_divided_chunks),
        TEST(a_large_block_has_few_records),
        TEST(blocks_that_no_table_describes),
        TEST(out_of_memory),
        TEST(errors_are_recorded_once_and_counted),
        TEST(a_block_finds_its_launch_and_no_other),
        TEST(a_full_ring_loses_nothing_for_good),
        TEST(more_errors_than_counters),
        TEST(a_block_that_is_forgotten),
        TEST(without_a_state_all_is_performed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
