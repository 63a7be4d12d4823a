// SPDX-License-Identifier: MIT
#include "heap/span.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"

enum { FEW = 50 };

static void put_all(const uint64_t *words, size_t n)
{
    struct span *out;
    for (size_t done; n; words += done, n -= done) {
        done = span_put(words, n, &out);
        assert_true(done > 0 && done <= n);
        if (out)
            span_give(out);
    }
}

// Takes as many as requested, in as many calls as it takes.
static void take_all(size_t bin, uint64_t *words, size_t n)
{
    bool fresh;
    for (size_t done; n; words += done, n -= done)
        assert_true((done = span_take(bin, words, n, true, &fresh)) > 0);
}

// Blocks of all bins have their room and do not overlap; blocks that were put back are taken first.
static void good_blocks_are_apart(void **state)
{
    static uint64_t words[THREAD_CACHE_FINE_BINS][FEW];
    uint64_t again[FEW];
    bool fresh;
    for (size_t bin = 0; bin < THREAD_CACHE_FINE_BINS; bin++) {
        size_t room = thread_cache_fine_room(bin);
        take_all(bin, words[bin], FEW);
        for (size_t i = 0; i < FEW; i++) {
            char *block = block_of_word(words[bin][i]);
            assert_true(span_has(block) && (uintptr_t)block % BLOCK_ALIGN == 0);
            assert_int_equal(span_room(block), room);
            for (size_t at = 0; at < room + BLOCK_HEAD + BLOCK_TAIL; at++)
                assert_int_equal(block[(ptrdiff_t)at - BLOCK_HEAD], 0);
            memset(block - BLOCK_HEAD, 1, room + BLOCK_HEAD + BLOCK_TAIL);
        }
    }
    assert_true(span_valid());
    for (size_t bin = 0; bin < THREAD_CACHE_FINE_BINS; bin++)
        put_all(words[bin], FEW);
    assert_true(span_valid());
    assert_int_equal(span_take(7, again, FEW, true, &fresh), FEW);
    assert_false(fresh);
    assert_memory_equal(again, words[7], sizeof again);
    put_all(again, FEW);
    put_all(again, 1);  // two threads may free a block at once
    assert_true(span_valid());
    assert_false(span_has(again));
    assert_false(span_has((void *)~(uintptr_t)0));
}

// Idle spans go to other bins, and then their blocks have other words.
static void good_idle_spans_are_given(void **state)
{
    enum { MANY = 200000, BIN = 5, OTHER = 40 };
    uint64_t *words = malloc(MANY * sizeof *words), before = span_bytes(), mapped, gone = 0;
    struct span *out;
    take_all(BIN, words, MANY);
    mapped = span_bytes();
    assert_in_range(mapped - before, (uint64_t)MANY * thread_cache_fine_room(BIN),
                    (uint64_t)MANY * (thread_cache_fine_room(BIN) + 60) * 3 / 2);
    for (size_t i = 0; i < MANY;) {
        i += span_put(words + i, MANY - i, &out);
        if (!out)
            continue;
        for (size_t k = 0; k < span_blocks(out); k++)
            assert_int_equal(block_generation_of_word(span_word(out, k)), block_generation_of_word(words[0]));
        gone += span_blocks(out);
        span_give(out);
    }
    assert_true(gone > MANY / 3 && gone < MANY);
    assert_true(span_valid());
    size_t others = gone * (thread_cache_fine_room(BIN) + 40) / (thread_cache_fine_room(OTHER) + 40) * 9 / 10,
           anew = 0;
    take_all(OTHER, words, others);
    for (size_t i = 0; i < others; i++)
        anew += block_generation_of_word(words[i]) == 2;
    assert_true(anew > others / 2);
    assert_int_equal(span_bytes(), mapped);
    put_all(words, others);
    assert_true(span_valid());
    free(words);
}

// Puts blocks back, and gives spans that are taken out. Returns how many those were.
static size_t put_and_give(const uint64_t *words, size_t n)
{
    size_t gone = 0;
    for (struct span *out; n; gone += out != NULL) {
        size_t done = span_put(words, n, &out);
        words += done;
        n -= done;
        if (out)
            span_give(out);
    }
    return gone;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Of idle spans up to half of all are kept, but not for ever. Where a busy machine takes a second to put the
// blocks back, most spans go at once.
static void good_idle_spans_go_in_time(void **state)
{
    enum { MANY = 100000, BIN = 20, MORE = MANY / 4 };
    uint64_t *words = malloc(MANY * sizeof *words);
    size_t soon, later = 0;
    take_all(BIN, words, MANY);
    double begin = seconds();
    soon = put_and_give(words, MANY);
    bool slow = seconds() - begin >= 1;
    // Much less than half again, so that nothing goes but for the time that has passed.
    while (!later) {
        take_all(BIN, words, MORE);
        later = put_and_give(words, MORE);
    }
    assert_true(soon > 0 && (slow || later > soon / 4));
    assert_true(span_valid());
    free(words);
}

// The span that was cut last goes to another bin, and idle spans are reused.
static void good_one_bin_cuts_a_span(void **state)
{
    enum {
        BIN = 7,
        OTHER = 41,
        MANY = 400 * (SPAN_BYTES / (BIN * 16 + 8 + BLOCK_HEAD + BLOCK_TAIL)),
        SPAN_AND_MORE = 105
    };
    uint64_t *words = malloc(MANY * sizeof *words), few[SPAN_AND_MORE];
    take_all(BIN, words, MANY);
    put_all(words, MANY);
    take_all(OTHER, few, SPAN_AND_MORE);
    take_all(BIN, words, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(span_room(block_of_word(words[i])), thread_cache_fine_room(BIN));
    assert_true(span_valid());
    put_all(words, MANY);
    put_all(few, SPAN_AND_MORE);
    assert_true(span_valid());
    free(words);
}

static void *take_and_put(void *arg)
{
    enum { TURNS = 2000, MOST = 64 };
    uint64_t own[MOST], seed = (uintptr_t)arg;
    for (int i = 0; i < TURNS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t bin = seed >> 33 & 3, n = 1 + (seed >> 40) % MOST;
        take_all(bin, own, n);
        for (size_t k = 0; k < n; k++)
            *(uint64_t *)(void *)block_of_word(own[k]) = (uintptr_t)arg;
        for (size_t k = 0; k < n; k++)  // no other block overlaps it
            assert_int_equal(*(uint64_t *)(void *)block_of_word(own[k]), (uintptr_t)arg);
        put_all(own, n);
    }
    return NULL;
}

static void good_threads(void **state)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_put, (void *)(i + 1)), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(span_valid());
}

static void good_forked(void **state)
{
    uint64_t words[FEW];
    int status;
    bool fresh;
    take_all(3, words, FEW);
    span_before_fork();
    // Code that runs before and after a fork may allocate.
    assert_int_equal(span_take(4, words, 1, true, &fresh), 0);
    pid_t child = fork();
    span_after_fork();
    if (child == 0) {
        put_all(words, FEW);
        take_all(4, words, FEW);
        _exit(!span_valid());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    put_all(words, FEW);
    assert_true(span_valid());
}

// A block that was never cut is put into the span that is being cut. In a child process, as the span stays
// broken.
static void bad_spans_are_not_valid(void **state)
{
    enum { BIN = 20 };
    uint64_t word;
    int status;
    take_all(BIN, &word, 1);
    pid_t child = fork();
    if (child == 0) {
        char *block = block_of_word(word);
        size_t stride = thread_cache_fine_room(BIN) + BLOCK_HEAD + BLOCK_TAIL, left = SPAN_BYTES - 2 * stride;
        char *end = block - (uintptr_t)block % SPAN_BYTES + left / stride * stride + BLOCK_HEAD;
        struct span *out;
        close(STDERR_FILENO);
        word += (uint64_t)(end - block) >> 4;
        span_put(&word, 1, &out);
        _exit(span_valid() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    // In builds with assertions, the assertion fails first.
    assert_true(CHECKED ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
                        : WIFEXITED(status) && WEXITSTATUS(status) == 1);
    put_all(&word, 1);
    assert_true(span_valid());
}

// A write behind a block that reaches what will be cut next is found there, and then in the fresh block.
static void bad_uncut_is_overwritten(void **state)
{
    enum { BIN = 3 };
    struct span_overwritten found[THREAD_CACHE_FINE_BINS];
    uint64_t words[2], next;
    bool fresh;
    size_t n;
    do  // until a third block will follow these in their page
        n = span_take(BIN, words, 2, true, &fresh);
    while (n < 2 || !fresh || (uintptr_t)block_of_word(words[0]) % 4096 > 2048);
    size_t stride = (size_t)(block_of_word(words[1]) - block_of_word(words[0]));
    char *behind = block_of_word(words[1]) + stride - BLOCK_HEAD;
    assert_int_equal(span_overwritten(found), 0);
    behind[5] = 7;
    assert_int_equal(span_overwritten(found), 1);
    assert_ptr_equal(found[0].block, behind + BLOCK_HEAD);
    assert_ptr_equal(span_before(found[0].block), block_of_word(words[1]));
    assert_memory_equal(&found[0].head, behind, BLOCK_HEAD);
    assert_int_equal(span_take(BIN, &next, 1, true, &fresh), 1);
    assert_true(fresh && span_is_overwritten(block_of_word(next)));
    behind[5] = 0;
    assert_false(span_is_overwritten(block_of_word(next)));
    assert_int_equal(span_overwritten(found), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_blocks_are_apart),
        cmocka_unit_test(good_idle_spans_are_given),
        cmocka_unit_test(good_idle_spans_go_in_time),
        cmocka_unit_test(good_one_bin_cuts_a_span),
        cmocka_unit_test(good_threads),
        cmocka_unit_test(good_forked),
        cmocka_unit_test(bad_spans_are_not_valid),
        cmocka_unit_test(bad_uncut_is_overwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
