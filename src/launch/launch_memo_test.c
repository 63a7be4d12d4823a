// SPDX-License-Identifier: MIT
// Answers about launches, remembered: which launches are equal, and several threads at one table.
#include "launch/launch_memo.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "launch/launch_call.h"

enum { THREADS = 4, ROUNDS = 200000, LAUNCHES = 2 };

static int kernels[2];

struct asked {
    const void *what;
    uint64_t version;
    struct launch_call launch;
    char bytes[LAUNCH_MEMO_BYTES + 1];
    size_t size;
};

static struct launch_memo_key key_of(const struct asked *a)
{
    struct launch_memo_key key;
    launch_memo_ask(&key, a->what, a->version, &a->launch, a->bytes, a->size);
    return key;
}

static bool is_known(const struct asked *a, uint64_t wanted)
{
    uint64_t answer[LAUNCH_MEMO_ANSWER];
    struct launch_memo_key key = key_of(a);
    return launch_memo_find(&key, answer) == 1 && answer[0] == wanted;
}

static void keep(const struct asked *a, uint64_t answer)
{
    struct launch_memo_key key = key_of(a);
    launch_memo_keep(&key, &answer, 1);
    launch_memo_keep(&key, &answer, 1);
}

// The tests use versions of their own, since the table has what earlier ones kept.
static struct asked usual(uint64_t version)
{
    struct asked a = {.what = &kernels[0],
                      .version = version,
                      .launch = {.grid = {2, 3, 4}, .block = {5, 6, 7}, .shared = 8},
                      .size = 28};
    for (size_t i = 0; i < sizeof a.bytes; i++)
        a.bytes[i] = (char)(i + 1);
    return a;
}

// Whatever differs, it is another launch.
static void differs(void **state)
{
    struct asked a = usual(1), b;
    keep(&a, 41);
    assert_true(is_known(&a, 41));
#define OTHER(change)                   \
    do {                                \
        b = a;                          \
        change;                         \
        assert_false(is_known(&b, 41)); \
    } while (0)
    OTHER(b.what = &kernels[1]);
    OTHER(b.version++);
    for (int i = 0; i < 3; i++) {
        OTHER(b.launch.grid[i]++);
        OTHER(b.launch.block[i]++);
    }
    OTHER(b.launch.shared++);
    OTHER(b.size--);
    OTHER(b.size++);
    for (size_t i = 0; i < a.size; i++)
        OTHER(b.bytes[i] ^= 1);
    // What follows the parameters does not count.
    b = a;
    b.bytes[a.size] ^= 1;
    assert_true(is_known(&b, 41));
}

// A launch is kept when it is made for the second time, under whatever version; the new answer replaces the
// old one.
static void second_time(void **state)
{
    struct asked a = usual(100);
    a.launch.shared = 1000;
    struct launch_memo_key key = key_of(&a);
    launch_memo_keep(&key, &(uint64_t){1}, 1);
    assert_false(is_known(&a, 1));
    a.version++;
    key = key_of(&a);
    launch_memo_keep(&key, &(uint64_t){2}, 1);
    assert_true(is_known(&a, 2));
    a.version++;
    assert_false(is_known(&a, 2));
    key = key_of(&a);
    launch_memo_keep(&key, &(uint64_t){3}, 1);
    assert_true(is_known(&a, 3));
}

static void sizes(void **state)
{
    uint64_t answer[LAUNCH_MEMO_ANSWER + 1] = {0}, found[LAUNCH_MEMO_ANSWER];
    for (size_t size = 0; size <= LAUNCH_MEMO_BYTES + 1; size++) {
        struct asked a = usual(200);
        a.size = size;
        uint32_t words = 1 + (uint32_t)size % LAUNCH_MEMO_ANSWER;
        for (uint32_t i = 0; i < words; i++)
            answer[i] = size * 100 + i;
        struct launch_memo_key key = key_of(&a);
        launch_memo_keep(&key, answer, words);
        launch_memo_keep(&key, answer, words);
        assert_int_equal(launch_memo_find(&key, found), size <= LAUNCH_MEMO_BYTES ? words : 0);
        if (size <= LAUNCH_MEMO_BYTES)
            assert_memory_equal(found, answer, words * sizeof *answer);
    }
    // Neither none nor too many are kept.
    struct asked a = usual(300);
    struct launch_memo_key key = key_of(&a);
    for (int i = 0; i < 2; i++) {
        launch_memo_keep(&key, answer, 0);
        launch_memo_keep(&key, answer, LAUNCH_MEMO_ANSWER + 1);
    }
    assert_int_equal(launch_memo_find(&key, found), 0);
}

// The buffers of a pretended program: a thread changes what a launch finds, and raises the version after it.
static _Atomic uint64_t version, truth[LAUNCHES];
static _Atomic unsigned found_outdated, found_any;

static uint64_t see(uint32_t i)
{
    return atomic_load_explicit(&truth[i], memory_order_relaxed);
}

// Returns what a launch finds from then on, at least.
static uint64_t change(uint32_t i)
{
    uint64_t now = atomic_fetch_add_explicit(&truth[i], 1, memory_order_relaxed) + 1;
    // Release: pairs with the acquire in launch_once.
    atomic_fetch_add_explicit(&version, 1, memory_order_release);
    return now;
}

// Makes launch i, whose answer is `truth[i]` in each word. least: what the thread knows of that.
static void launch_once(uint32_t i, uint64_t least)
{
    uint64_t answer[LAUNCH_MEMO_ANSWER];
    uint32_t words = LAUNCH_MEMO_ANSWER - i;
    struct asked a = usual(0);
    a.version = (1 << 20) + atomic_load_explicit(&version, memory_order_acquire);
    a.launch.grid[0] = i;
    struct launch_memo_key key = key_of(&a);
    uint32_t n = launch_memo_find(&key, answer);
    if (n) {
        atomic_fetch_add_explicit(&found_any, 1, memory_order_relaxed);
        bool right = n == words;
        for (uint32_t k = 0; k < n; k++)
            right &= answer[k] == answer[0] && answer[k] >= least;
        atomic_fetch_add_explicit(&found_outdated, !right, memory_order_relaxed);
        return;
    }
    uint64_t now = see(i);
    for (uint32_t k = 0; k < words; k++)
        answer[k] = now;
    launch_memo_keep(&key, answer, words);
}

static void *launch_many(void *first)
{
    uint64_t least[LAUNCHES] = {0};
    for (uint32_t n = 0; n < ROUNDS; n++) {
        uint32_t i = (n * 7 + *(uint32_t *)first) % LAUNCHES;
        // The thread that changes something sees it in its next launch.
        if (n % 3 == 0)
            least[i] = change(i);
        launch_once(i, least[i]);
    }
    return NULL;
}

static void from_threads(void **state)
{
    pthread_t threads[THREADS];
    uint32_t first[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        first[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &first[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(found_outdated, 0);
    assert_true(found_any > 0);
}

// After many launches that are new, one that repeats is remembered before long, and so are those that repeat
// in turns.
static void after_new_ones(void **state)
{
    uint64_t answer = 7;
    struct asked a = usual(5000);
    a.what = &kernels[1];
    for (unsigned i = 0; i < 1000; i++) {
        a.launch.grid[0] = 100 + i;
        struct launch_memo_key key = key_of(&a);
        assert_int_equal(launch_memo_find(&key, &answer), 0);
        launch_memo_keep(&key, &answer, 1);
    }
    unsigned times[2] = {0, 0};
    for (unsigned turns = 1; turns <= 2; turns++)
        for (unsigned known = 0, i = 0; known < turns; i++) {
            assert_true(++times[turns - 1] < 100);
            a.launch.grid[0] = 5000 + turns * 10 + i % turns;
            struct launch_memo_key key = key_of(&a);
            bool found = launch_memo_find(&key, &answer);
            known = found ? known + 1 : 0;
            if (!found)
                launch_memo_keep(&key, &answer, 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(differs), cmocka_unit_test(second_time),
                                       cmocka_unit_test(sizes), cmocka_unit_test(from_threads),
                                       cmocka_unit_test(after_new_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
