// SPDX-License-Identifier: MIT
// Stacks built in memory: a word is a frame pointer, a return address or something else.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "track/stack_cache.h"

enum { WORDS = 512, DEPTH = 16, GAP = 3, THREADS = 4, PLACES = 400, ROUNDS = 20 };

// Return addresses at every GAP-th word from 1 on.
static void make_stack(uint64_t *stack, unsigned frames, uint64_t seed)
{
    for (unsigned i = 0; i < frames * GAP; i++)
        stack[i] = seed + i;
}

static uint64_t cfa_of(const uint64_t *stack, unsigned frame)
{
    return (uintptr_t)&stack[frame * GAP + 2];
}

static void keep(const uint64_t *stack, unsigned frames, uint32_t id)
{
    struct stack_cache_walk walk;
    stack_cache_start(&walk, stack, DEPTH);
    for (unsigned i = 0; i < frames; i++)
        stack_cache_add(&walk, stack[i * GAP + 1], cfa_of(stack, i));
    stack_cache_keep(&walk, id);
}

static void good_the_same_stack(void **state)
{
    uint64_t stack[WORDS];
    make_stack(stack, 20, 1000);
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
    keep(stack, 20, 7);
    assert_int_equal(stack_cache_find(stack, DEPTH), 7);
    stack[2]++;  // words other than return addresses may change
    assert_int_equal(stack_cache_find(stack, DEPTH), 7);
    assert_int_equal(stack_cache_find(stack, DEPTH + 1), 0);
    stack_cache_clear();
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
}

static void bad_one_word_is_another(void **state)
{
    uint64_t stack[WORDS];
    make_stack(stack, 20, 1000);
    keep(stack, 20, 7);
    for (unsigned i = 0; i < 20; i++) {
        stack[i * GAP + 1]++;
        assert_int_equal(stack_cache_find(stack, DEPTH), 0);
        stack[i * GAP + 1]--;
        assert_int_equal(stack_cache_find(stack, DEPTH), 7);
    }
    stack[0]++;
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
    stack[0]--;
    // The same words at another place.
    uint64_t other[WORDS];
    memcpy(other, stack, sizeof other);
    assert_int_equal(stack_cache_find(other, DEPTH), 0);
    stack_cache_clear();
}

static void bad_walks_are_not_kept(void **state)
{
    uint64_t stack[WORDS];
    struct stack_cache_walk walk;
    make_stack(stack, STACK_CACHE_FRAMES + 1, 1000);
    keep(stack, STACK_CACHE_FRAMES + 1, 7);
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
    keep(stack, 0, 7);
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
    keep(stack, 3, 0);
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
    // A signal frame returns to an address that follows no call.
    stack_cache_start(&walk, stack, DEPTH);
    stack_cache_add(&walk, stack[1], cfa_of(stack, 0));
    stack_cache_add(&walk, stack[GAP + 1] + 1, cfa_of(stack, 1));
    stack_cache_keep(&walk, 7);
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
    // A frame below its callee's, and one on another stack.
    stack_cache_start(&walk, stack, DEPTH);
    stack_cache_add(&walk, stack[GAP + 1], cfa_of(stack, 1));
    stack_cache_add(&walk, stack[1], cfa_of(stack, 0));
    assert_true(walk.uncacheable);
    stack_cache_start(&walk, stack + GAP, DEPTH);
    stack_cache_add(&walk, stack[1], cfa_of(stack, 0));
    assert_true(walk.uncacheable);
    keep(stack, STACK_CACHE_FRAMES, 7);
    assert_int_equal(stack_cache_find(stack, DEPTH), 7);
    stack_cache_clear();
}

// Beyond a frame that differs there may be no memory.
static void good_nothing_is_read_behind_a_difference(void **state)
{
    enum { PAGE = 4096 };
    char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    uint64_t *stack = (uint64_t *)(memory + PAGE) - 4 * GAP;
    make_stack(stack, 10, 1000);
    keep(stack, 10, 7);
    assert_int_equal(stack_cache_find(stack, DEPTH), 7);
    stack[3 * GAP + 1]++;
    assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(stack_cache_find(stack, DEPTH), 0);
    munmap(memory, 2 * PAGE);
    stack_cache_clear();
}

// More places than entries: threads replace each other's entries all the time.
static void *keep_and_find(void *number)
{
    uint64_t *stack = malloc((PLACES + 20 * GAP) * sizeof *stack);
    uint64_t found = 0, seed = ((uint64_t)(uintptr_t)number + 1) << 32;
    for (unsigned round = 0; stack && round < ROUNDS; round++)
        for (unsigned i = 0; i < PLACES; i++) {
            uint32_t mine = (uint32_t)((uintptr_t)number * PLACES + i + 1);
            make_stack(stack + i, 20, seed + i * 1000);
            uint32_t id = stack_cache_find(stack + i, DEPTH);
            if (id && id != mine) {
                free(stack);
                return "another's stack";
            }
            keep(stack + i, 20, mine);
            found += stack_cache_find(stack + i, DEPTH) == mine;
        }
    free(stack);
    return found ? NULL : "never found";
}

static void good_threads(void **state)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_and_find, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    stack_cache_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_the_same_stack),    cmocka_unit_test(bad_one_word_is_another),
        cmocka_unit_test(bad_walks_are_not_kept), cmocka_unit_test(good_nothing_is_read_behind_a_difference),
        cmocka_unit_test(good_threads),
    };
#ifndef __x86_64__
    return 77;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
