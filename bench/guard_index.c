// SPDX-License-Identifier: MIT
// guard_index [ITEMS]: how long the guard's index of addresses takes, with that many buffers in it (100,000).
// Prints rows of a table; each measures groups of calls and divides by the group's size.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/index.h"
#include "track/stack.h"

enum { GROUPS = 2000, GROUP = 100, FRAMES = 16 };

static struct index_item *items;
static unsigned long count = 100000;
static struct index buffers = INDEX_INIT;
static uint64_t random_state = 88172645463325252u;
static volatile uint64_t sink;

static uint64_t random_below(uint64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what, double *seconds, double target)
{
    double sum = 0;
    for (int i = 0; i < GROUPS; i++)
        sum += seconds[i];
    qsort(seconds, GROUPS, sizeof *seconds, compare);
    double unit = 1e-9 * GROUP, median = seconds[GROUPS / 2] / unit;
    printf("| %s | %d | %.0f ns | %.0f ns | %.0f ns | %.0f ns | %.0f ns: %s |\n", what, GROUPS * GROUP,
           sum / GROUPS / unit, median, seconds[GROUPS * 99 / 100] / unit, seconds[GROUPS - 1] / unit, target,
           median <= target ? "yes" : "no");
}

static void find(struct index_item **chosen)
{
    for (int i = 0; i < GROUP; i++) {
        unsigned section = epoch_enter();
        struct index_item *item = index_find(&buffers, chosen[i]->base + 100);
        sink += item->size;
        epoch_leave(section);
    }
}

static void take_out(struct index_item **chosen)
{
    for (int i = 0; i < GROUP; i++)
        sink += !index_remove(&buffers, chosen[i]->base);
}

static void put_in(struct index_item **chosen)
{
    for (int i = 0; i < GROUP; i++)
        sink += (uint64_t)-index_insert(&buffers, chosen[i]);
}

// Different ones, spread over the array at a random offset.
static void choose(struct index_item **chosen)
{
    uint64_t start = random_below(count);
    for (unsigned i = 0; i < GROUP; i++)
        chosen[i] = &items[(start + i * (count / GROUP)) % count];
}

static __attribute__((noinline)) uint64_t deep(unsigned levels)
{
    if (!levels)
        return stack_capture(NULL, FRAMES);
    uint64_t r = deep(levels - 1);
    __asm__ volatile("" ::: "memory");  // no tail call
    return r;
}

// Captures from a place on the stack that is always the same, or from one of so many that none is cached.
static __attribute__((noinline)) uint64_t somewhere(unsigned place)
{
    volatile char room[16 * (place + 1)];
    room[0] = 0;
    return deep(FRAMES) + (uint64_t)room[0];
}

static void stacks(const char *what, unsigned places)
{
    static double seconds[GROUPS];
    for (unsigned i = 0, place = 0; i < GROUPS; i++) {
        double start = now();
        for (int j = 0; j < GROUP; j++, place++)
            sink += somewhere(place % places);
        seconds[i] = now() - start;
    }
    report(what, seconds, 5000);
}

int main(int argc, char **argv)
{
    static double lookups[GROUPS], removals[GROUPS], insertions[GROUPS];
    struct index_item *chosen[GROUP];
    if (argc > 1)
        count = strtoul(argv[1], NULL, 10);
    if (count < GROUP || !(items = calloc(count, sizeof *items)))
        return 1;
    // Shuffled, because a program's buffers do not come in the order of their addresses.
    for (unsigned long i = 0; i < count; i++)
        items[i].base = 0x7f0000000000 + i * 4096, items[i].size = 2048;
    for (unsigned long i = count - 1; i > 0; i--) {
        unsigned long j = random_below(i + 1);
        struct index_item item = items[i];
        items[i] = items[j];
        items[j] = item;
    }
    for (unsigned long i = 0; i < count; i++)
        if (index_insert(&buffers, &items[i]))
            return 1;
    for (int i = 0; i < GROUPS; i++) {
        choose(chosen);
        double start = now();
        find(chosen);
        double found = now();
        take_out(chosen);
        double removed = now();
        put_in(chosen);
        insertions[i] = now() - removed;
        removals[i] = removed - found;
        lookups[i] = found - start;
    }
    printf("With %lu buffers, which take %zu KiB for the index:\n\n", count, index_mapped() / 1024);
    printf("| call | times | average | median | 99th percentile | worst | median within target |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    report("find a buffer by address", lookups, 60);
    report("remove a buffer", removals, 300);
    report("insert a buffer", insertions, 300);
    stack_init(0);
    stack_own(0, 0);
    stacks("capture a stack of 16 frames, known from before", 1);
    stacks("capture a stack of 16 frames, unwound", 4096);
    return 0;
}
