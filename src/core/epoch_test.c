// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/epoch.h"
#include "core/slab_pool.h"

enum { READERS = 3, WRITERS = 2, ROUNDS = 20000 };

struct thing {
    struct epoch_node node;
    unsigned releases;
};

static void count_release(struct epoch_node *node)
{
    ((struct thing *)node)->releases++;
}

static void released_when_nobody_reads(void **state)
{
    struct thing things[100] = {0};
    for (unsigned i = 0; i < 100; i++)
        epoch_retire(&things[i].node, count_release);
    assert_int_equal(epoch_reclaim(), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(things[i].releases, 1);
}

static void kept_while_a_section_is_open(void **state)
{
    struct thing x = {0};
    unsigned outer = epoch_enter(), inner = epoch_enter();
    epoch_retire(&x.node, count_release);
    assert_int_equal(epoch_reclaim(), 1);
    epoch_leave(outer);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(epoch_reclaim(), 1);
    assert_int_equal(x.releases, 0);
    epoch_leave(inner);
    assert_int_equal(epoch_reclaim(), 0);
    assert_int_equal(x.releases, 1);
}

static void later_sections_do_not_matter(void **state)
{
    struct thing x = {0};
    unsigned section = epoch_enter();
    epoch_retire(&x.node, count_release);
    epoch_reclaim();
    // From here on a section is open at every moment.
    unsigned later = epoch_enter();
    epoch_leave(section);
    assert_int_equal(epoch_reclaim(), 0);
    assert_int_equal(x.releases, 1);
    epoch_leave(later);
}

static void sections_that_overlap_end_to_end(void **state)
{
    static struct thing things[1000];
    unsigned section = epoch_enter();
    for (unsigned i = 0; i < 1000; i++) {
        epoch_retire(&things[i].node, count_release);
        unsigned next = epoch_enter();
        epoch_leave(section);
        section = next;
    }
    unsigned released = 0;
    for (unsigned i = 0; i < 1000; i++)
        released += things[i].releases;
    assert_in_range(released, 500, 1000);
    epoch_leave(section);
    assert_int_equal(epoch_reclaim(), 0);
}

static struct thing second;

static void release_and_retire(struct epoch_node *node)
{
    count_release(node);
    epoch_retire(&second.node, count_release);
}

static void a_release_may_retire(void **state)
{
    struct thing first = {0};
    epoch_retire(&first.node, release_and_retire);
    assert_int_equal(epoch_reclaim(), 0);
    assert_int_equal(first.releases, 1);
    assert_int_equal(second.releases, 1);
}

static void lists_are_retired_whole(void **state)
{
    struct thing things[3] = {0};
    for (unsigned i = 0; i < 3; i++) {
        things[i].node.release = count_release;
        things[i].node.next = i < 2 ? &things[i + 1].node : NULL;
    }
    unsigned section = epoch_enter();
    epoch_retire_list(&things[0].node, &things[2].node);
    assert_int_equal(epoch_reclaim(), 3);
    epoch_leave(section);
    assert_int_equal(epoch_reclaim(), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(things[i].releases, 1);
}

static void *leave(void *section)
{
    epoch_leave((unsigned)(uintptr_t)section);
    return NULL;
}

static void another_thread_may_leave(void **state)
{
    struct thing x = {0};
    pthread_t thread;
    uintptr_t section = epoch_enter();
    epoch_retire(&x.node, count_release);
    assert_int_equal(epoch_reclaim(), 1);
    assert_int_equal(pthread_create(&thread, NULL, leave, (void *)section), 0);
    pthread_join(thread, NULL);
    assert_int_equal(epoch_reclaim(), 0);
}

// A pointer that writers replace and readers follow. Released objects are marked.
struct live {
    struct epoch_node node;
    uint64_t alive, twin;
};
static struct slab_pool lives = SLAB_POOL(struct live);
static _Atomic(struct live *) shown;
static _Atomic bool stop;

static void end_life(struct epoch_node *node)
{
    struct live *live = (struct live *)node;
    live->alive = 0;
    slab_pool_put(&lives, live);
}

static void *read_shown(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        unsigned section = epoch_enter();
        struct live *live = atomic_load_explicit(&shown, memory_order_seq_cst);
        bool good = live->alive && live->alive == live->twin;
        sched_yield();
        good = good && live->alive && live->alive == live->twin;
        epoch_leave(section);
        if (!good)
            return "a reader saw a released object";
    }
    return NULL;
}

static void show(uint64_t value)
{
    struct live *live = slab_pool_get(&lives);
    live->alive = live->twin = value;
    struct live *old = atomic_exchange_explicit(&shown, live, memory_order_seq_cst);
    if (old)
        epoch_retire(&old->node, end_life);
}

static void *replace_shown(void *unused)
{
    for (uint64_t i = 1; i <= ROUNDS; i++)
        show(i);
    return NULL;
}

static void readers_and_writers(void **state)
{
    pthread_t readers[READERS], writers[WRITERS];
    void *complaint;
    show(1);
    atomic_store(&stop, false);
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_shown, NULL), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, replace_shown, NULL), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(readers[i], &complaint);
        assert_null(complaint);
    }
    assert_int_equal(epoch_reclaim(), 0);
}

static _Atomic unsigned stage;

static void *sit_in_a_section(void *unused)
{
    unsigned section = epoch_enter();
    atomic_store(&stage, 1);
    while (atomic_load(&stage) != 2)
        sched_yield();
    epoch_leave(section);
    return NULL;
}

static bool child_releases(struct thing *held)
{
    struct thing x = {0};
    epoch_after_fork();
    epoch_retire(&x.node, count_release);
    return epoch_reclaim() == 0 && x.releases == 1 && held->releases == 1;
}

static void a_child_forgets_others_sections(void **state)
{
    struct thing held = {0};
    pthread_t thread;
    int status = -1;
    assert_int_equal(pthread_create(&thread, NULL, sit_in_a_section, NULL), 0);
    while (atomic_load(&stage) != 1)
        sched_yield();
    epoch_retire(&held.node, count_release);
    assert_int_equal(epoch_reclaim(), 1);
    pid_t pid = fork();
    if (!pid)
        _exit(child_releases(&held) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(held.releases, 0);
    atomic_store(&stage, 2);
    pthread_join(thread, NULL);
    assert_int_equal(epoch_reclaim(), 0);
    assert_int_equal(held.releases, 1);
}

// A release callback that forks: the child's only thread finds the `busy` flag set, as if its owner were
// gone.
static int forked_status;

static void fork_and_release(struct epoch_node *node)
{
    struct thing x = {0};
    pid_t pid = fork();
    if (!pid) {
        epoch_after_fork();
        epoch_retire(&x.node, count_release);
        _exit(epoch_reclaim() == 0 && x.releases == 1 ? 0 : 1);
    }
    waitpid(pid, &forked_status, 0);
}

static void a_child_of_a_releasing_thread(void **state)
{
    struct thing x = {0};
    forked_status = -1;
    epoch_retire(&x.node, fork_and_release);
    assert_int_equal(epoch_reclaim(), 0);
    assert_int_equal(forked_status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_when_nobody_reads),
        cmocka_unit_test(kept_while_a_section_is_open),
        cmocka_unit_test(later_sections_do_not_matter),
        cmocka_unit_test(sections_that_overlap_end_to_end),
        cmocka_unit_test(a_release_may_retire),
        cmocka_unit_test(lists_are_retired_whole),
        cmocka_unit_test(another_thread_may_leave),
        cmocka_unit_test(readers_and_writers),
        cmocka_unit_test(a_child_forgets_others_sections),
        cmocka_unit_test(a_child_of_a_releasing_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
