// SPDX-License-Identifier: MIT
// guard_null [LIVE...]: what the guard's own code costs for an allocation and a free, over a driver whose
// calls only return addresses, or also use enough memory to evict ours from the processor's nearest caches,
// as a real driver's calls do. Prints rows of a table, nanoseconds for one call of each kind without the
// driver's; the time of the same calls while the guard is off is subtracted. With one thread and with two.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/guard.h"
#include "hook/hook.h"
#include "track/stack.h"
#include "track/track.h"

enum { ROUNDS = 400, PAIRS = 200, FRAMES = 16, STEP = 4096, SIZE = 2048, THREADS = 2 };

enum { BUSY = 2 << 20, LINE = 64 };

// What the driver returns: the address that was freed last, as allocators do, or never one twice, as pages
// mode does.
enum order { LAST_FREED, NEVER_AGAIN };

struct worker {
    pthread_t thread;
    enum order order;
    bool busy;
    unsigned rounds, frames;
    unsigned long live;
    CUdeviceptr *held;
    uint64_t random;
    double *made, *freed;  // seconds of each round
};

static __thread CUdeviceptr next_address, last_freed;
static __thread enum order given;
static __thread bool busy;
static __thread volatile char *other_memory;

static __thread double in_driver;  // seconds of the last call

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void be_busy(void)
{
    double start = now();
    for (unsigned i = 0; busy && i < BUSY; i += LINE)
        other_memory[i]++;
    in_driver = now() - start;
}

static CUresult null_alloc(CUdeviceptr *pointer, size_t size)
{
    *pointer = given == LAST_FREED && last_freed ? last_freed : (next_address += STEP);
    last_freed = 0;
    be_busy();
    return CUDA_SUCCESS;
}

static CUresult null_free(CUdeviceptr pointer)
{
    last_freed = pointer;
    be_busy();
    return CUDA_SUCCESS;
}

static CUresult null_context(CUcontext *context)
{
    static int it;
    *context = (CUcontext)&it;
    return CUDA_SUCCESS;
}

static CUresult null_device(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

static uint64_t random_below(struct worker *w, uint64_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % n;
}

// One allocation or free from so many frames down, so that a stack of FRAMES can be walked.
static __attribute__((noinline)) CUresult call(unsigned frames, bool alloc, CUdeviceptr *p)
{
    CUresult r = frames  ? call(frames - 1, alloc, p)
                 : alloc ? hook_cuMemAlloc_v2(p, SIZE)
                         : hook_cuMemFree_v2(*p);
    __asm__ volatile("" ::: "memory");  // no tail call
    return r;
}

// A buffer is freed and another allocated, so that the number of live ones is constant; all within one
// round's two sums.
static void pairs(struct worker *w, unsigned round)
{
    double freeing = 0, making = 0;
    for (int i = 0; i < PAIRS; i++) {
        CUdeviceptr *p = &w->held[random_below(w, w->live)];
        double start = now();
        call(w->frames, false, p);
        double middle = now();
        freeing += middle - start - in_driver;
        call(w->frames, true, p);
        making += now() - middle - in_driver;
    }
    w->freed[round] = freeing / PAIRS;
    w->made[round] = making / PAIRS;
}

static void *work(void *opaque)
{
    static _Atomic unsigned long arena = 1;
    struct worker *w = opaque;
    given = w->order;
    next_address = atomic_fetch_add(&arena, 1) << 36;
    for (unsigned long i = 0; i < w->live; i++)
        call(0, true, &w->held[i]);
    busy = w->busy && (other_memory = malloc(BUSY));
    for (unsigned i = 0; i < w->rounds; i++)
        pairs(w, i);
    free((void *)other_memory);
    busy = false;
    given = NEVER_AGAIN;
    for (unsigned long i = 0; i < w->live; i++)
        call(0, false, &w->held[i]);
    return NULL;
}

// Clears the records of earlier buffers, so that a row does not pay for the one before it.
static void forget_freed(void)
{
    CUdeviceptr p;
    given = LAST_FREED;
    last_freed = 0;
    for (int i = 0; i <= TRACK_FREED; i++) {
        call(0, true, &p);
        call(0, false, &p);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Nanoseconds, of the round that is slower than a tenth of all: disturbances by other programs are left out.
static void measure(struct worker like, unsigned threads, double result[2])
{
    static double made[THREADS * ROUNDS], freed[THREADS * ROUNDS];
    unsigned rounds = threads * like.rounds;
    struct worker w[THREADS];
    for (unsigned i = 0; i < threads; i++) {
        w[i] = like;
        w[i].random = 88172645463325252u + i;
        w[i].held = calloc(like.live, sizeof *w[i].held);
        w[i].made = made + i * like.rounds;
        w[i].freed = freed + i * like.rounds;
        if (!w[i].held || pthread_create(&w[i].thread, NULL, work, &w[i]))
            exit(1);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(w[i].thread, NULL);
        free(w[i].held);
    }
    qsort(made, rounds, sizeof *made, compare);
    qsort(freed, rounds, sizeof *freed, compare);
    result[0] = 1e9 * made[rounds / 10];
    result[1] = 1e9 * freed[rounds / 10];
}

static void row(enum order order, bool busy_driver, unsigned depth, unsigned long live, unsigned threads)
{
    double with[2], without[2];
    struct worker w = {.order = order,
                       .busy = busy_driver,
                       .rounds = busy_driver ? ROUNDS / 16 : ROUNDS,
                       .frames = depth,
                       .live = live / threads ? live / threads : 1};
    guard.watching = false;
    measure(w, threads, without);
    guard.watching = true;
    guard.options.stack_depth = 0;
    forget_freed();
    guard.options.stack_depth = (int)depth;
    measure(w, threads, with);
    printf("| %s | %s | %u | %lu | %u | %.0f | %.0f |\n", order == LAST_FREED ? "freed last" : "never used",
           busy_driver ? "much" : "none", depth, live, threads, with[0] - without[0], with[1] - without[1]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"1", "1000", "100000"};
    guard.real.cuMemAlloc_v2 = null_alloc;
    guard.real.cuMemFree_v2 = null_free;
    guard.real.cuCtxGetCurrent = null_context;
    guard.real.cuCtxGetDevice = null_device;
    if (stack_init(0))
        return 1;
    printf("| address given out | memory the driver uses | frames | buffers alive | threads | allocation ns "
           "| free ns |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    for (unsigned threads = 1; threads <= THREADS; threads++)
        for (int i = 0; i < (argc > 1 ? argc - 1 : 3); i++) {
            unsigned long live = strtoul(argc > 1 ? argv[i + 1] : usual[i], NULL, 10);
            row(LAST_FREED, false, 0, live, threads);
            row(NEVER_AGAIN, false, 0, live, threads);
            row(LAST_FREED, true, 0, live, threads);
            row(LAST_FREED, false, FRAMES, live, threads);
            row(LAST_FREED, true, FRAMES, live, threads);
        }
    return 0;
}
