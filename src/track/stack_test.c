// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "track/stack.h"

enum { THREADS = 4, DIFFERENT = 3000, ROUNDS = 4, MEETINGS = 1000 };

#define KEEP_FRAME __asm__ volatile("" ::: "memory")

static int start(void **state)
{
    return stack_init(0);
}

static int end(void **state)
{
    stack_forget();
    return 0;
}

// Returns n, opaque to the compiler: an unrolled loop would call from several places.
static unsigned rolled(unsigned n)
{
    volatile unsigned m = n;
    return m;
}

// The return addresses of the last calls.
static _Thread_local uint64_t inner_return, outer_return;

static __attribute__((noinline)) uint32_t inner(const void *skip_until, unsigned depth)
{
    inner_return = (uintptr_t)__builtin_return_address(0);
    uint32_t id = stack_capture(skip_until, depth);
    KEEP_FRAME;
    return id;
}

static __attribute__((noinline)) uint32_t outer(const void *skip_until, unsigned depth)
{
    outer_return = (uintptr_t)__builtin_return_address(0);
    uint32_t id = inner(skip_until, depth);
    KEEP_FRAME;
    return id;
}

static __attribute__((noinline)) uint32_t deep(unsigned levels, unsigned depth)
{
    uint32_t id = levels ? deep(levels - 1, depth) : inner(NULL, depth);
    KEEP_FRAME;
    return id;
}

// Returns the place of a return address in a stack; -1 if it is not there.
static int place(uint32_t id, uint64_t pc)
{
    uint64_t pcs[STACK_DEPTH_MAX];
    unsigned n = stack_frames(id, pcs, STACK_DEPTH_MAX);
    for (unsigned i = 0; i < n; i++)
        if (pcs[i] == pc)
            return (int)i;
    return -1;
}

static void callers_are_in_order(void **state)
{
    uint64_t pcs[STACK_DEPTH_MAX];
    uint32_t id = outer(NULL, STACK_DEPTH_MAX);
    assert_int_not_equal(id, 0);
    unsigned n = stack_frames(id, pcs, STACK_DEPTH_MAX);
    assert_in_range(n, 4, STACK_DEPTH_MAX);
    int at = place(id, inner_return);
    assert_in_range(at, 0, 4);
    assert_int_equal(pcs[at + 1], outer_return);
    // Stores fewer frames than there are, and returns how many there are.
    uint64_t two[3] = {0, 0, 7};
    assert_int_equal(stack_frames(id, two, 2), n);
    assert_int_equal(two[1], pcs[1]);
    assert_int_equal(two[2], 7);
}

static void depth_is_kept(void **state)
{
    uint64_t pcs[STACK_DEPTH_MAX];
    assert_int_equal(stack_frames(deep(100, 5), pcs, STACK_DEPTH_MAX), 5);
    assert_int_equal(stack_frames(deep(100, 1000), pcs, STACK_DEPTH_MAX), STACK_DEPTH_MAX);
    assert_int_equal(deep(3, 0), 0);
}

static void equal_stacks_are_one(void **state)
{
    struct stack_stats before, after;
    uint32_t ids[3];
    for (unsigned i = 0; i < rolled(3); i++)
        ids[i] = deep(i == 2 ? 11 : 10, 64);
    stack_stats(&before);
    assert_int_equal(ids[0], ids[1]);
    assert_int_not_equal(ids[0], ids[2]);
    for (unsigned i = 0; i < rolled(100); i++)
        deep(10 + i % 2, 64);
    stack_stats(&after);
    // One for each depth, because this loop's call returns to another address.
    assert_int_equal(after.stacks - before.stacks, 2);
}

static __attribute__((noinline)) uint32_t hook(unsigned depth)
{
    uint32_t id = outer(__builtin_return_address(0), depth);
    KEEP_FRAME;
    return id;
}

static void frames_before_the_call_are_skipped(void **state)
{
    uint64_t first = 0, pc = 0;
    uint32_t id = hook(3);
    assert_int_equal(stack_frames(id, &first, 1), 3);
    // The hook called outer, which returned into it: that frame is skipped, and the hook's caller is the
    // first.
    assert_int_equal(place(id, outer_return), -1);
    assert_int_equal(place(id, inner_return), -1);
    assert_true(first > (uintptr_t)frames_before_the_call_are_skipped &&
                first < (uintptr_t)frames_before_the_call_are_skipped + 4096);
    // An address that no frame returns to: nothing is skipped.
    id = outer(&pc, 64);
    assert_true(place(id, inner_return) >= 0);
}

// Two functions with frames of the same size, distinguished by where they call from.
#define CALLER(name, text)                               \
    static __attribute__((noinline)) uint32_t name(void) \
    {                                                    \
        uint32_t id = outer(NULL, 64);                   \
        __asm__ volatile(text ::: "memory");             \
        return id;                                       \
    }
CALLER(first_caller, "nop")
CALLER(second_caller, "nop; nop")

// A known stack is not unwound again; it must be distinguished from one that differs in an outer frame only.
static void stacks_from_one_frame(void **state)
{
    uint32_t (*volatile callers[])(void) = {first_caller, second_caller};
    uint32_t ids[2][2];
    for (volatile unsigned i = 0; i < 8; i++) {
        uint32_t id = callers[i / 2 % 2]();
        if (i >= 4)
            assert_int_equal(id, ids[i / 2 % 2][i % 2]);
        ids[i / 2 % 2][i % 2] = id;
        if (i % 2)
            stack_own(0, 0);  // empties the cache
    }
    assert_int_equal(ids[0][0], ids[0][1]);
    assert_int_equal(ids[1][0], ids[1][1]);
    assert_int_not_equal(ids[0][0], ids[1][0]);
}

static void known_stacks_are_not_unwound(void **state)
{
    uint32_t (*volatile caller)(void) = first_caller;
    uint32_t first = caller();
    uint64_t before = stack_walked();
    for (volatile unsigned i = 0; i < 100; i++) {
        uint32_t id = caller();
        if (i)
            assert_int_equal(id, first);
        first = id;
    }
#ifdef __x86_64__  // elsewhere nothing is cached
    assert_true(stack_walked() - before <= 1);
#else
    (void)before;
#endif
}

static void our_own_frames_are_left_out(void **state)
{
    outer(NULL, 64);
    // Treats only the code at this return address as moat's.
    stack_own(outer_return, outer_return + 1);
    uint64_t before = outer_return;
    uint32_t id = 0;
    for (unsigned i = 0; i < rolled(2); i++) {
        id = outer(NULL, 64);
        stack_own(outer_return, outer_return + 1);
    }
    assert_int_not_equal(outer_return, before);
    assert_true(place(id, inner_return) >= 0);
    assert_int_equal(place(id, outer_return), -1);
    stack_own(0, UINT64_MAX);
    assert_int_equal(outer(NULL, 64), 0);
    stack_own(0, 0);
}

static void numbers_that_are_no_stacks(void **state)
{
    uint64_t pcs[STACK_DEPTH_MAX] = {0};
    uint32_t id = outer(NULL, 64);
    assert_int_equal(stack_frames(0, pcs, 64), 0);
    assert_int_equal(stack_frames(1, pcs, 64), 0);
    assert_int_equal(stack_frames(id + 1, pcs, 64), 0);
    assert_int_equal(stack_frames(UINT32_MAX, pcs, 64), 0);
    // Frames that look like a record of five.
    pcs[0] = 5;
    id = stack_keep(pcs, 8);
    assert_int_equal(stack_frames(id, pcs, 64), 8);
    assert_int_equal(stack_frames(id + 1, pcs, 64), 0);
}

static void no_heap_is_used(void **state)
{
    deep(20, 32);
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < 60; i++)
        deep(i, 64);
    assert_int_equal(mallinfo2().uordblks, before);
}

static void objects_are_located(void **state)
{
    char object[4096], program[4096] = "", small[8];
    uint64_t offset = 0;
    Dl_info info;
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    assert_true(dladdr((void *)objects_are_located, &info));
    assert_true(stack_locate((uintptr_t)objects_are_located, object, sizeof object, &offset));
    assert_string_equal(object, program);
    assert_int_equal(offset, (uintptr_t)objects_are_located - (uintptr_t)info.dli_fbase);
    void *function = dlsym(RTLD_DEFAULT, "cmocka_set_message_output");
    assert_true(dladdr(function, &info));
    assert_true(stack_locate((uintptr_t)function, object, sizeof object, &offset));
    assert_string_equal(object, info.dli_fname);
    assert_int_equal(offset, (uintptr_t)function - (uintptr_t)info.dli_fbase);
    assert_true(stack_locate((uintptr_t)function, small, sizeof small, &offset));
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_true(stack_locate((uintptr_t)objects_are_located, small, 0, &offset));
    assert_false(stack_locate(16, object, sizeof object, &offset));
    assert_false(stack_locate(UINT64_MAX, object, sizeof object, &offset));
}

static void room_is_bounded(void **state)
{
    struct stack_stats stats;
    uint64_t pcs[16] = {0}, back[16];
    unsigned kept = 0;
    uint32_t first = 0;
    stack_forget();
    assert_int_equal(outer(NULL, 8), 0);
    assert_int_equal(stack_keep(pcs, 16), 0);
    assert_int_equal(stack_init(100 * 144), 0);
    stack_stats(&stats);
    uint64_t before = stats.bytes, had = stats.stacks;
    for (unsigned i = 1; i <= 1000; i++) {
        pcs[3] = i;
        uint32_t id = stack_keep(pcs, 16);
        kept += id != 0;
        first = i == 1 ? id : first;
    }
    // One record may be the one taken at the start.
    assert_in_range(kept, 98, 100);
    stack_stats(&stats);
    assert_int_equal(stats.stacks, had + kept);
    assert_int_equal(stats.refused, 1000 - kept);
    assert_int_equal(stats.bytes - before, 144 * kept);
    // Known stacks are still known.
    pcs[3] = 1;
    assert_int_equal(stack_keep(pcs, 16), first);
    assert_int_equal(stack_frames(first, back, 16), 16);
    assert_memory_equal(back, pcs, sizeof pcs);
    stack_forget();
    assert_int_equal(stack_init(0), 0);
}

static void make(unsigned i, uint64_t *pcs, unsigned *n)
{
    *n = 1 + i % 20;
    for (unsigned j = 0; j < *n; j++)
        pcs[j] = (uint64_t)i * 1000 + j;
}

static pthread_barrier_t meeting;
static uint32_t ids[THREADS][DIFFERENT];

static void *keep_all(void *number)
{
    uint32_t *mine = ids[(uintptr_t)number];
    uint64_t pcs[20], back[20];
    unsigned n;
    for (unsigned i = 0; i < DIFFERENT * ROUNDS; i++) {
        // In step at first, so that threads race for a new stack.
        if (i < MEETINGS)
            pthread_barrier_wait(&meeting);
        make(i % DIFFERENT, pcs, &n);
        uint32_t id = stack_keep(pcs, n);
        if (!id || (i >= DIFFERENT && id != mine[i % DIFFERENT]))
            return "a stack has two ids";
        mine[i % DIFFERENT] = id;
        if (stack_frames(id, back, 20) != n || memcmp(back, pcs, n * sizeof *pcs))
            return "a stack has changed";
        if (i % 64 == 0 && !deep(5, 16))
            return "not captured";
    }
    return NULL;
}

static void threads_share_the_depot(void **state)
{
    pthread_t threads[THREADS];
    struct stack_stats before, after;
    stack_stats(&before);
    pthread_barrier_init(&meeting, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_all, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    pthread_barrier_destroy(&meeting);
    for (unsigned i = 1; i < THREADS; i++)
        assert_memory_equal(ids[i], ids[0], sizeof ids[0]);
    stack_stats(&after);
    assert_in_range(after.stacks - before.stacks, DIFFERENT, DIFFERENT + 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_are_in_order),
        cmocka_unit_test(depth_is_kept),
        cmocka_unit_test(equal_stacks_are_one),
        cmocka_unit_test(frames_before_the_call_are_skipped),
        cmocka_unit_test(stacks_from_one_frame),
        cmocka_unit_test(known_stacks_are_not_unwound),
        cmocka_unit_test(our_own_frames_are_left_out),
        cmocka_unit_test(numbers_that_are_no_stacks),
        cmocka_unit_test(no_heap_is_used),
        cmocka_unit_test(objects_are_located),
        cmocka_unit_test(room_is_bounded),
        cmocka_unit_test(threads_share_the_depot),
    };
    return cmocka_run_group_tests(tests, start, end);
}
