// SPDX-License-Identifier: MIT
// heap_load NAME SCALE: only allocates and frees, and prints the nanoseconds of one allocation and its free.
// bench/heap.sh runs it with and without libmoat-heap.so.
//   pairs     one thread, 64 bytes, freed at once
//   sizes     one thread, sizes from 1 to 4096, a thousand blocks at a time, freed in any order
//   batch     one thread, 10,000 blocks allocated, then all freed
//   larson    two threads, each replaces random ones of a thousand blocks, and hands them on now and then
//   handover  one thread allocates, another frees
//   resize    one thread, blocks that grow step by step
// heap_load live BLOCKS SECONDS INTERVAL: keeps so many blocks, writes behind one of them every INTERVAL
// seconds and prints when.
// heap_load memory BLOCKS SIZE: keeps so many blocks and prints the bytes of memory that each one takes.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

static char *touch(char *p, size_t size)
{
    if (!p)
        abort();
    p[0] = p[size - 1] = 1;
    return p;
}

static long pairs(long scale)
{
    for (long i = 0; i < scale; i++) {
        char *volatile p = touch(malloc(64), 64);
        free(p);
    }
    return scale;
}

static long sizes(long scale)
{
    enum { SLOTS = 1000 };
    static char *slots[SLOTS];
    uint32_t seed = 1;
    for (long i = 0; i < scale; i++) {
        uint32_t r = next(&seed), k = r % SLOTS;
        size_t size = 1 + (r >> 10) % (r & 512 ? 4096 : 128);
        free(slots[k]);
        slots[k] = touch(malloc(size), size);
    }
    for (int k = 0; k < SLOTS; k++)
        free(slots[k]);
    return scale;
}

static long batch(long scale)
{
    enum { MANY = 10000 };
    static char *all[MANY];
    for (long i = 0; i < scale / MANY; i++) {
        for (int k = 0; k < MANY; k++)
            all[k] = touch(malloc(24 + (size_t)k % 100), 24);
        for (int k = 0; k < MANY; k++)
            free(all[k]);
    }
    return scale;
}

enum { LARSON_SLOTS = 1000, LARSON_THREADS = 2 };
static char *_Atomic larson_slots[LARSON_THREADS][LARSON_SLOTS];
static long larson_scale;

static void *larson_thread(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    uint32_t seed = 7 + me;
    for (long i = 0; i < larson_scale; i++) {
        uint32_t r = next(&seed);
        unsigned whose = r % 64 ? me : (me + 1) % LARSON_THREADS;
        size_t size = 16 + (r >> 12) % 500;
        free(atomic_exchange(&larson_slots[whose][(r >> 6) % LARSON_SLOTS], touch(malloc(size), size)));
    }
    return NULL;
}

static long larson(long scale)
{
    pthread_t threads[LARSON_THREADS];
    larson_scale = scale / LARSON_THREADS;
    for (unsigned i = 0; i < LARSON_THREADS; i++)
        pthread_create(&threads[i], NULL, larson_thread, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < LARSON_THREADS; i++)
        pthread_join(threads[i], NULL);
    return scale;
}

enum { LANE = 4096 };
static char *_Atomic lane[LANE];

static void *handover_consumer(void *arg)
{
    long scale = (long)(intptr_t)arg;
    for (long i = 0; i < scale; i++) {
        char *p;
        while (!(p = atomic_exchange(&lane[i % LANE], NULL)))
            ;
        free(p);
    }
    return NULL;
}

static long handover(long scale)
{
    pthread_t consumer;
    pthread_create(&consumer, NULL, handover_consumer, (void *)(intptr_t)scale);
    for (long i = 0; i < scale; i++) {
        char *p = touch(malloc(100), 100);
        while (atomic_load(&lane[i % LANE]))
            ;
        atomic_store(&lane[i % LANE], p);
    }
    pthread_join(consumer, NULL);
    return scale;
}

static long resize(long scale)
{
    long count = 0;
    while (count < scale) {
        char *p = NULL;
        for (size_t size = 16; size < 100000; size += size / 4, count++)
            p = touch(realloc(p, size), size);
        free(p);
    }
    return count;
}

static char **keep(long blocks)
{
    char **all = calloc((size_t)blocks, sizeof *all);
    if (!all)
        abort();
    memset(all, 1, (size_t)blocks * sizeof *all);  // maps its pages before memory is counted
    return all;
}

static void fill(char **all, long blocks, size_t size)
{
    for (long i = 0; i < blocks; i++)
        all[i] = touch(malloc(size), size);
}

// No block twice, because an error is reported only once.
static void live(long blocks, double seconds, double interval)
{
    enum { SIZE = 32, STRIDE = 7919 };
    char **all = keep(blocks);
    fill(all, blocks, SIZE);
    usleep(100000);
    uint32_t seed = (uint32_t)getpid() | 1;
    double end = now(CLOCK_MONOTONIC) + seconds;
    for (long i = 0; i < blocks && now(CLOCK_MONOTONIC) < end; i++) {
        usleep(next(&seed) % (useconds_t)(interval * 1e5 + 1));
        volatile char *p = all[i * STRIDE % blocks];
        double at = now(CLOCK_REALTIME);
        p[SIZE] ^= 0x55;
        printf("%p %.6f\n", (void *)(uintptr_t)(p + SIZE), at);
        fflush(stdout);
        usleep((useconds_t)(interval * 1e6));
    }
    exit(0);
}

static long resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        abort();
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

// Some seconds later, when all records of the blocks are in their final place.
static void memory(long blocks, size_t size)
{
    char **all = keep(blocks);
    long before = resident();
    fill(all, blocks, size);
    sleep(1);
    printf("%.1f\n", (double)(resident() - before) / (double)blocks);
    exit(0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        long (*run)(long scale);
    } works[] = {{"pairs", pairs},   {"sizes", sizes},       {"batch", batch},
                 {"larson", larson}, {"handover", handover}, {"resize", resize}};
    if (argc == 5 && strcmp(argv[1], "live") == 0)
        live(atol(argv[2]), atof(argv[3]), atof(argv[4]));
    if (argc == 4 && strcmp(argv[1], "memory") == 0)
        memory(atol(argv[2]), (size_t)atol(argv[3]));
    for (size_t i = 0; argc == 3 && i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, argv[1]) == 0) {
            double start = now(CLOCK_MONOTONIC);
            long count = works[i].run(atol(argv[2]));
            printf("%.2f\n", (now(CLOCK_MONOTONIC) - start) * 1e9 / (double)count);
            return 0;
        }
    fprintf(stderr, "usage: heap_load NAME SCALE | live BLOCKS SECONDS INTERVAL | memory BLOCKS SIZE\n");
    return 2;
}
