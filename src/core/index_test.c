// SPDX-License-Identifier: MIT
// The index against a model that records the owner of each address in a small space.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "core/fork_testing.h"
#include "core/index.h"
#include "core/slab_pool.h"

enum {
    SPACE = 1 << 16,
    LARGEST = 9,
    ORDERED = 20000,
    READERS = 2,
    WRITERS = 2,
    KEPT = 3000,
    STEPS = KEPT,
    TURNS = 100 * 64 + 16
};

struct buffer {
    struct index_item item;
    uint64_t twin;  // equal to base while the item is alive
};

static struct slab_pool buffers = SLAB_POOL(struct buffer);
static uint64_t random_state;

static unsigned random_below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % n);
}

static struct buffer *buffer_new(uint64_t base, uint64_t size)
{
    struct buffer *b = slab_pool_get(&buffers);
    assert_non_null(b);
    b->item.base = base;
    b->item.size = size;
    b->twin = base;
    return b;
}

static void buffer_release(struct epoch_node *node)
{
    struct buffer *b = (struct buffer *)((char *)node - offsetof(struct buffer, item.retired));
    b->twin = ~b->twin;
    slab_pool_put(&buffers, b);
}

static void retire(struct index_item *item, void *unused)
{
    epoch_retire(&item->retired, buffer_release);
}

// The owner of each address, and the number of items.
struct model {
    struct index_item *owner[SPACE + LARGEST];
    size_t count;
};
static struct model model;

static bool model_free(uint64_t base, uint64_t size)
{
    for (uint64_t a = base; a < base + (size ? size : 1); a++)
        if (model.owner[a])
            return false;
    return true;
}

static void model_set(const struct index_item *item, struct index_item *owner)
{
    for (uint64_t a = item->base; a < item->base + (item->size ? item->size : 1); a++)
        model.owner[a] = owner;
    model.count += owner ? 1 : (size_t)-1;
}

static struct index_item *model_below(uint64_t address)
{
    for (uint64_t a = address + 1; a-- > 0;)
        if (model.owner[a])
            return model.owner[a];
    return NULL;
}

static struct index_item *model_above(uint64_t address)
{
    for (uint64_t a = address + 1; a < SPACE + LARGEST; a++)
        if (model.owner[a] && model.owner[a]->base > address)
            return model.owner[a];
    return NULL;
}

struct checking {
    uint64_t next;  // the least address not visited yet
    size_t n;
};

static int check_item(struct index_item *item, void *opaque)
{
    struct checking *c = opaque;
    assert_true(item->base >= c->next);
    assert_ptr_equal(model.owner[item->base], item);
    c->next = item->base + (item->size ? item->size : 1);
    c->n++;
    return 0;
}

static void check_all(const struct index *index)
{
    struct checking c = {0};
    unsigned section = epoch_enter();
    assert_true(index_valid(index));
    assert_int_equal(index_each(index, check_item, &c), 0);
    epoch_leave(section);
    assert_int_equal(c.n, model.count);
    assert_int_equal(index_count(index), model.count);
}

static void look(const struct index *index, uint64_t address)
{
    unsigned section = epoch_enter();
    assert_ptr_equal(index_find(index, address), model.owner[address]);
    assert_ptr_equal(index_at_or_below(index, address), model_below(address));
    assert_ptr_equal(index_above(index, address), model_above(address));
    epoch_leave(section);
}

static void insert(struct index *index, uint64_t base, uint64_t size)
{
    struct buffer *b = buffer_new(base, size);
    int r = index_insert(index, &b->item);
    assert_int_equal(r, model_free(base, size) ? 0 : -EEXIST);
    if (r)
        slab_pool_put(&buffers, b);
    else
        model_set(&b->item, &b->item);
}

// An item of the same base is replaced if the new one does not reach into the next.
static void put(struct index *index, uint64_t base, uint64_t size)
{
    struct buffer *b = buffer_new(base, size);
    struct index_item *owner = model.owner[base], *former;
    owner = owner && owner->base == base ? owner : NULL;
    if (owner)
        model_set(owner, NULL);
    bool free = model_free(base, size);
    if (owner)
        model_set(owner, owner);
    assert_int_equal(index_put(index, &b->item, &former), free ? 0 : -EEXIST);
    assert_ptr_equal(former, free ? owner : NULL);
    if (!free) {
        slab_pool_put(&buffers, b);
        return;
    }
    if (owner) {
        model_set(owner, NULL);
        retire(owner, NULL);
    }
    model_set(&b->item, &b->item);
}

static void take_item(struct index *index, struct index_item *owner)
{
    struct index_item other = *owner;
    assert_false(index_take(index, &other));
    assert_true(index_take(index, owner));
    assert_false(index_take(index, owner));
    model_set(owner, NULL);
    retire(owner, NULL);
}

static void take_out(struct index *index, uint64_t base)
{
    struct index_item *owner = model.owner[base];
    if (owner && owner->base == base && base % 2) {
        take_item(index, owner);
        return;
    }
    struct index_item *item = index_remove(index, base);
    if (!owner || owner->base != base) {
        assert_null(item);
        return;
    }
    assert_ptr_equal(item, owner);
    model_set(item, NULL);
    retire(item, NULL);
}

static void empty(struct index *index)
{
    index_clear(index, retire, NULL);
    assert_int_equal(index_count(index), 0);
    assert_int_equal(epoch_reclaim(), 0);
    memset(&model, 0, sizeof model);
}

// Grows and shrinks in turn, so that nodes split, join and share at every level.
static void random_operations(void **state)
{
    struct index index = INDEX_INIT;
    random_state = 1;
    for (unsigned phase = 0; phase < 8; phase++) {
        unsigned insertions = phase % 2 ? 20 : 80, range = phase < 4 ? SPACE : 500;
        for (unsigned i = 0; i < 20000; i++) {
            uint64_t address = random_below(range);
            struct index_item *owner = model.owner[address];
            if (random_below(100) < insertions)
                (i % 2 ? put : insert)(&index, owner && i % 4 == 1 ? owner->base : address,
                                       random_below(LARGEST));
            else
                take_out(&index, owner && random_below(4) ? owner->base : address);
            look(&index, random_below(range));
            if (i % 512 == 0)
                check_all(&index);
        }
        check_all(&index);
    }
    empty(&index);
}

static uint64_t place(unsigned order, unsigned i)
{
    return order == 0 ? i : order == 1 ? ORDERED - 1 - i : (uint64_t)i * 7919 % ORDERED;
}

static void ordered_operations(void **state)
{
    struct index index = INDEX_INIT;
    for (unsigned in = 0; in < 3; in++) {
        for (unsigned out = 0; out < 3; out++) {
            for (unsigned i = 0; i < ORDERED; i++)
                insert(&index, 2 * place(in, i), 2);
            check_all(&index);
            for (unsigned i = 0; i < ORDERED; i++) {
                take_out(&index, 2 * place(out, i));
                if (i % 4096 == 0)
                    check_all(&index);
            }
            assert_int_equal(index_count(&index), 0);
        }
    }
    empty(&index);
}

static void ends_of_the_address_space(void **state)
{
    struct index index = INDEX_INIT;
    struct index_item zero = {.base = 0}, last = {.base = UINT64_MAX},
                      high = {.base = UINT64_MAX - 8, .size = 8};
    struct index_item other = {.base = UINT64_MAX - 4, .size = 100}, all = {.base = 0, .size = UINT64_MAX};
    unsigned section = epoch_enter();
    assert_null(index_find(&index, 0));
    assert_null(index_at_or_below(&index, UINT64_MAX));
    assert_null(index_above(&index, 0));
    assert_null(index_remove(&index, 0));
    assert_int_equal(index_insert(&index, &zero), 0);
    assert_int_equal(index_insert(&index, &last), 0);
    assert_int_equal(index_insert(&index, &high), 0);
    assert_int_equal(index_insert(&index, &other), -EEXIST);
    assert_int_equal(index_insert(&index, &all), -EEXIST);
    assert_ptr_equal(index_find(&index, 0), &zero);
    assert_null(index_find(&index, 1));
    assert_ptr_equal(index_at_or_below(&index, 1), &zero);
    assert_ptr_equal(index_above(&index, 1), &high);
    assert_ptr_equal(index_find(&index, UINT64_MAX - 1), &high);
    assert_ptr_equal(index_find(&index, UINT64_MAX), &last);
    assert_null(index_above(&index, UINT64_MAX));
    assert_ptr_equal(index_remove(&index, UINT64_MAX), &last);
    assert_null(index_find(&index, UINT64_MAX));
    assert_ptr_equal(index_remove(&index, 0), &zero);
    assert_null(index_remove(&index, UINT64_MAX - 7));
    assert_ptr_equal(index_remove(&index, UINT64_MAX - 8), &high);
    assert_int_equal(index_insert(&index, &all), 0);
    assert_int_equal(index_insert(&index, &high), -EEXIST);
    assert_ptr_equal(index_find(&index, UINT64_MAX - 1), &all);
    assert_null(index_find(&index, UINT64_MAX));
    epoch_leave(section);
    index_clear(&index, NULL, NULL);
}

static int stop_at(struct index_item *item, void *base)
{
    return item->base == (uintptr_t)base ? 42 : 0;
}

static void walks_end_when_told(void **state)
{
    struct index index = INDEX_INIT;
    for (unsigned i = 0; i < 1000; i++)
        insert(&index, i, 1);
    unsigned section = epoch_enter();
    assert_int_equal(index_each(&index, stop_at, (void *)(uintptr_t)500), 42);
    assert_int_equal(index_each(&index, stop_at, (void *)(uintptr_t)1000), 0);
    epoch_leave(section);
    empty(&index);
}

static void memory_stays_bounded(void **state)
{
    struct index index = INDEX_INIT;
    for (unsigned i = 0; i < 2000; i++)
        insert(&index, i, 1);
    size_t before = index_mapped();
    for (unsigned i = 0; i < 100000; i++) {
        take_out(&index, i % 2000);
        insert(&index, i % 2000, 1);
        insert(&index, i % 2000, 1);  // refused
    }
    assert_in_range(index_mapped(), before, before + 512 * 1024);
    empty(&index);
}

// For every number of nodes that the pool gives before it refuses: an insertion succeeds or changes nothing,
// and removals succeed with the reserve.
static void memory_runs_out(void **state)
{
    unsigned refused = 0;
    for (long n = 0; n < 260; n++) {
        struct index index = INDEX_INIT;
        static struct buffer few[300];
        slab_pool_fail_after(n);
        for (unsigned i = 0; i < 300; i++) {
            few[i] = (struct buffer){.item = {.base = i * 7919 % 300 * 4, .size = 4}};
            int r = index_insert(&index, &few[i].item);
            assert_true(r == 0 || r == -ENOMEM);
            refused += r != 0;
            if (!r)
                model_set(&few[i].item, &few[i].item);
        }
        check_all(&index);
        // The reserve is enough for a few removals; the rest needs the pool again.
        for (unsigned i = 0; i < 300; i++) {
            if (i == 3)
                slab_pool_fail_after(-1);
            struct index_item *owner = model.owner[few[i].item.base];
            assert_ptr_equal(index_remove(&index, few[i].item.base), owner);
            if (owner)
                model_set(owner, NULL);
            if (i % 64 == 3)
                check_all(&index);
        }
        assert_int_equal(index_count(&index), 0);
        empty(&index);
    }
    slab_pool_fail_after(-1);
    assert_true(refused > 0);
}

static void a_spent_reserve_changes_nothing(void **state)
{
    struct index index = INDEX_INIT;
    for (unsigned i = 0; i < 3000; i++)
        insert(&index, i, 1);
    slab_pool_fail_after(0);
    unsigned i = 0;
    struct index_item *item;
    for (; (item = index_remove(&index, i)); i++) {
        model_set(item, NULL);
        retire(item, NULL);
    }
    assert_in_range(i, 8, 2999);
    check_all(&index);
    look(&index, i);
    struct index_item over = {.base = i, .size = 1}, below = {.base = 0, .size = 1};
    assert_int_equal(index_insert(&index, &over), -EEXIST);
    assert_int_equal(index_insert(&index, &below), -ENOMEM);
    slab_pool_fail_after(-1);
    take_out(&index, i);
    check_all(&index);
    empty(&index);
}

static struct index shared = INDEX_INIT;
static _Atomic bool stop;
static struct buffer kept[KEPT];

// The kept items lie at multiples of 64 and are always present; others come and go in between.
static bool all_kept_are_found(void)
{
    bool good = true;
    for (unsigned i = 0; i < KEPT && good; i += 1 + i % 7) {
        unsigned section = epoch_enter();
        struct index_item *item = index_find(&shared, i * 64 + 3), *above = index_above(&shared, i * 64);
        struct buffer *below = (struct buffer *)index_at_or_below(&shared, i * 64 + 63);
        good =
            item == &kept[i].item && below && below->twin == below->item.base && below->item.base / 64 == i;
        good = good && (i == KEPT - 1 || (above && above->base <= (i + 1) * 64));
        epoch_leave(section);
    }
    return good;
}

static void *read_always(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        if (!all_kept_are_found())
            return "a reader missed an item";
    return NULL;
}

static void *come_and_go(void *number)
{
    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t base = (uint64_t)i * 7919 % KEPT * 64 + 8 + 8 * (uintptr_t)number;
        struct buffer *b = buffer_new(base, 8);
        if (index_insert(&shared, &b->item))
            return "not inserted";
        if (i % 4 == 0)
            continue;
        if (index_remove(&shared, base) != &b->item)
            return "not removed";
        retire(&b->item, NULL);
    }
    return NULL;
}

static void *come_and_go_for_ever(void *number)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        struct buffer *b = buffer_new(8, 8);
        index_insert(&shared, &b->item);
        index_remove(&shared, 8);
        retire(&b->item, NULL);
    }
    return NULL;
}

// Two items that replace each other.
static void *take_turns(void *unused)
{
    for (unsigned i = 0; i < STEPS; i++) {
        struct buffer *b = buffer_new(TURNS + i % 2 * 64, 4 + i % 4);
        struct index_item *former;
        if (index_put(&shared, &b->item, &former) || (former == NULL) != (i < 2))
            return "not put";
        if (former)
            retire(former, NULL);
    }
    return NULL;
}

static void *look_for_turns(void *unused)
{
    unsigned seen = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        unsigned section = epoch_enter();
        struct buffer *b = (struct buffer *)index_find(&shared, TURNS + 3);
        bool good = b ? b->twin == TURNS && b->item.base == TURNS : !seen;
        seen |= b != NULL;
        epoch_leave(section);
        if (!good)
            return "a reader missed one that was always there";
    }
    return NULL;
}

static void places_are_taken_over(void **state)
{
    pthread_t readers[READERS], writer;
    void *complaint;
    for (uint64_t i = 0; i < 200; i++)
        assert_int_equal(index_insert(&shared, &buffer_new(i * 64, 8)->item), 0);
    atomic_store(&stop, false);
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, look_for_turns, NULL), 0);
    assert_int_equal(pthread_create(&writer, NULL, take_turns, NULL), 0);
    pthread_join(writer, &complaint);
    assert_null(complaint);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(readers[i], &complaint);
        assert_null(complaint);
    }
    assert_true(index_valid(&shared));
    assert_int_equal(index_count(&shared), 202);
    index_clear(&shared, retire, NULL);
    assert_int_equal(epoch_reclaim(), 0);
}

static void keep(void)
{
    for (unsigned i = 0; i < KEPT; i++) {
        kept[i] = (struct buffer){.item = {.base = i * 64, .size = 8}, .twin = i * 64};
        assert_int_equal(index_insert(&shared, &kept[i].item), 0);
    }
}

static void forget(struct index_item *item, void *unused)
{
    if ((struct buffer *)item < kept || (struct buffer *)item >= kept + KEPT)
        retire(item, NULL);
}

static void readers_and_writers(void **state)
{
    pthread_t readers[READERS], writers[WRITERS];
    void *complaint;
    keep();
    atomic_store(&stop, false);
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_always, NULL), 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, come_and_go, (void *)i), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], &complaint);
        assert_null(complaint);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(readers[i], &complaint);
        assert_null(complaint);
    }
    assert_true(index_valid(&shared));
    assert_int_equal(index_count(&shared), KEPT + WRITERS * STEPS / 4);
    index_clear(&shared, forget, NULL);
    assert_int_equal(epoch_reclaim(), 0);
}

static bool works_in_child(void)
{
    static struct buffer more[500];
    epoch_after_fork();
    index_after_fork(&shared);
    slab_pool_after_fork(&buffers);
    size_t before = index_count(&shared);
    bool good = index_valid(&shared) && all_kept_are_found();
    for (unsigned i = 0; i < 500 && good; i++) {
        more[i] = (struct buffer){.item = {.base = i * 64 + 32, .size = 8}, .twin = i * 64 + 32};
        good = !index_insert(&shared, &more[i].item);
    }
    good = good && index_valid(&shared) && index_count(&shared) == before + 500;
    for (unsigned i = 0; i < 500 && good; i++)
        good = index_remove(&shared, i * 64 + 32) == &more[i].item;
    return good && index_valid(&shared) && index_count(&shared) == before && epoch_reclaim() == 0;
}

static void forks_in_the_middle(void **state)
{
    pthread_t reader, writer;
    keep();
    // With the lock taken, as a fork during another thread's call leaves it to the child.
    lock_take(&shared.lock);
    fork_testing_child(works_in_child);
    lock_give(&shared.lock);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&reader, NULL, read_always, NULL), 0);
    assert_int_equal(pthread_create(&writer, NULL, come_and_go_for_ever, NULL), 0);
    for (unsigned i = 0; i < 30; i++) {
        fork_testing_child(works_in_child);
        sched_yield();
    }
    atomic_store(&stop, true);
    pthread_join(reader, NULL);
    pthread_join(writer, NULL);
    index_clear(&shared, forget, NULL);
    assert_int_equal(epoch_reclaim(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(ordered_operations),
        cmocka_unit_test(ends_of_the_address_space),
        cmocka_unit_test(walks_end_when_told),
        cmocka_unit_test(memory_stays_bounded),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(a_spent_reserve_changes_nothing),
        cmocka_unit_test(places_are_taken_over),
        cmocka_unit_test(readers_and_writers),
        cmocka_unit_test(forks_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
