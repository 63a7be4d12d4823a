// SPDX-License-Identifier: MIT
#include "heap/producer.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "heap/block.h"
#include "heap/deliver.h"
#include "heap/word_bag.h"

enum { THREADS = 3, SLOTS = 700 };

static uint32_t next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

// What a monitor would make of the list: words without a notice, notices without a word.
static struct word_bag words, notices;

static bool collect(void *ctx, _Atomic uint64_t *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word = atomic_exchange(&all[i], 0);
        if (!word)
            continue;
        bool notice = word & BLOCK_NOTICE;
        word &= ~BLOCK_NOTICE;
        if (!word_bag_take(notice ? &words : &notices, word))
            word_bag_add(notice ? &notices : &words, word);
    }
    return true;
}

static void collect_all(void)
{
    for (unsigned i = 0; i < deliver_lists(); i++)
        block_list_pass(deliver_list(i), collect, NULL);
}

struct slot {
    uint64_t place, word;
};

// Blocks that any thread may free.
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot shared[SLOTS];
static uint64_t live_words;
static atomic_bool stop;

// Replaces a block's word, as if the block had moved.
static void rename_it(struct producer *w, struct slot *s, uint64_t number)
{
    uint64_t *word = s->word ? producer_hold(w, s->place, s->word) : NULL;
    if (!word)
        return;
    *word = s->word = number;
    producer_let_go(w);
}

static void replace(struct producer *w, struct slot *s, uint64_t number)
{
    if (s->word) {
        assert_true(producer_remove(w, s->place, s->word));
        s->word = 0;
    }
    if (number) {
        s->place = producer_reserve(w);
        assert_true(s->place != PRODUCER_UNWATCHED);
        s->word = number;
        producer_commit(w, s->place, number);
    }
}

static void *mutate(void *arg)
{
    uint32_t seed = 17 + (uint32_t)(uintptr_t)arg;
    uint64_t number = ((uint64_t)(uintptr_t)arg + 1) << 40;
    static __thread struct slot own[SLOTS];
    struct producer *w = producer_new();
    for (int i = 0; !atomic_load(&stop); i++) {
        uint32_t r = next(&seed);
        uint64_t fresh = r % 8 ? ++number : 0;
        if (r % 16 == 1) {
            pthread_mutex_lock(&shared_lock);
            replace(w, &shared[r / 16 % SLOTS], fresh);
            pthread_mutex_unlock(&shared_lock);
        } else {
            // Mostly few slots, so that words are removed soon; sometimes bursts that fill windows.
            struct slot *s = &own[r / 16 % (i / 4096 % 2 ? SLOTS : 5)];
            if (fresh && r % 64 > 48)
                rename_it(w, s, fresh);
            else
                replace(w, s, fresh);
        }
    }
    for (int i = 0; i < SLOTS; i++)
        replace(w, &own[i], 0);
    producer_retire(w);
    return NULL;
}

static void *deliver(void *unused)
{
    for (int i = 0; !atomic_load(&stop); i++) {
        deliver_lock();
        deliver_round(i % 2);
        deliver_unlock();
        collect_all();
        if (i % 16 == 0)
            usleep(500);
    }
    return NULL;
}

// Threads start, work, free each other's blocks and end, while a deliverer empties windows and rings. In the
// end there is one word for each live block, and no other.
static void good_nothing_lost_nothing_twice(void **state)
{
    pthread_t deliverer, threads[THREADS];
    deliver_init(2);
    for (unsigned turn = 0; turn < unit_cases(20); turn++) {
        atomic_store(&stop, false);
        pthread_create(&deliverer, NULL, deliver, NULL);
        for (uintptr_t i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, mutate, (void *)(i + THREADS * (uintptr_t)turn));
        usleep(100000);
        atomic_store(&stop, true);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_join(deliverer, NULL);
        deliver_lock();
        for (int i = 0; i < 3; i++)
            deliver_round(true);
        assert_true(deliver_valid());
        deliver_unlock();
        collect_all();
        live_words = 0;
        for (int i = 0; i < SLOTS; i++)
            if (shared[i].word) {
                live_words++;
                assert_true(word_bag_has(&words, shared[i].word));
            }
        assert_int_equal(words.count, live_words);
        assert_int_equal(notices.count, 0);
        for (struct producer *w = producer_all(); w; w = atomic_load(&w->older))
            assert_true(producer_valid(w));
    }
}

// Breaks each equation of producer.h.
static void bad_writers_are_not_valid(void **state)
{
    struct producer *w = producer_new();
    uint64_t place = producer_reserve(w), id = w->id, base = w->base;
    producer_commit(w, place, 5);
    assert_true(producer_valid(w));
    w->window[0] = 0;
    assert_false(producer_valid(w));
    w->window[0] = 5;
    w->count = PRODUCER_WINDOW + 1;
    assert_false(producer_valid(w));
    w->count = 1;
    w->base = 0;
    assert_false(producer_valid(w));
    w->base = 1ull << 48;
    assert_false(producer_valid(w));
    w->base = base;
    w->id = id | 1;
    assert_false(producer_valid(w));
    w->id = id;
    w->busy = PRODUCER_IN_RING;
    assert_false(producer_valid(w));
    w->busy = PRODUCER_IDLE;
    w->steal = PRODUCER_TAKEN;
    assert_false(producer_valid(w));
    w->steal = PRODUCER_NOT_ASKED;
    w->cache.held++;
    assert_false(producer_valid(w));
    w->cache.held--;
    w->quarantine.bytes++;
    assert_false(producer_valid(w));
    w->quarantine.bytes--;
    assert_true(producer_valid(w));
    assert_true(producer_remove(w, place, 5));
    producer_retire(w);
}

int main(void)
{
    producer_set_barrier(true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_writers_are_not_valid),
        cmocka_unit_test(good_nothing_lost_nothing_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
