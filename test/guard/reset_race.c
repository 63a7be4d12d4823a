// SPDX-License-Identifier: MIT
// reset_race SECONDS [launch] [order]: four threads allocate and free in the primary context, launch kernels
// and use stream-ordered memory if asked to, while the main thread resets it again and again. They expect
// errors of the driver, and nothing else: no crash, and an end.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "cases.h"

enum { THREADS = 4, AT_ONCE = 6, LARGE = 3 << 20, PATIENCE = 20 };

// It touches no memory: a reset may have freed it before the kernel runs.
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry nothing(.param .u64 at) {\nret;\n}\n";

static bool in_order, launches;
static atomic_bool stop;
static atomic_ulong rounds, went_well, errors, resets, resets_begun;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Allocates memory of several kinds, launches a kernel, and frees the memory.
static CUresult round_of(CUfunction nothing, unsigned n)
{
    static const size_t sizes[] = {64, 4096, 100000, LARGE};
    CUdeviceptr p[AT_ONCE] = {0}, ordered = 0;
    void *pinned = NULL;
    unsigned long begun = atomic_load(&resets_begun);
    CUresult r = CUDA_SUCCESS;
    for (unsigned i = 0; i < AT_ONCE && !r; i++)
        r = d.cuMemAlloc_v2(&p[i], sizes[(n + i) % 4]);
    if (!r)
        r = d.cuMemHostAlloc(&pinned, 1000, 0);
    if (!r && in_order)
        r = d.cuMemAllocAsync(&ordered, 5000, NULL);
    for (unsigned i = 0; i < AT_ONCE && !r && launches; i++)
        r = d.cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p[i]}, NULL);
    if (!r && n % 4 == 0)
        r = d.cuCtxSynchronize();
    // What a reset has freed is not this thread's any more, and another may have the address. So nothing is
    // freed after a reset that this thread can see, and pinned memory, which the host would touch, by resets
    // alone.
    if (atomic_load(&resets_begun) != begun)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!r && in_order)
        r = d.cuMemFreeAsync(ordered, NULL);
    for (unsigned i = 0; i < AT_ONCE && !r && atomic_load(&resets_begun) == begun; i++)
        r = d.cuMemFree_v2(p[i]);
    return r;
}

static CUkernel kernel;  // no context's own, and so no reset takes it away

static void *work(void *number)
{
    while (!atomic_load(&stop)) {
        CUcontext primary;
        CUresult r = d.cuDevicePrimaryCtxRetain(&primary, 0);
        if (!r)
            r = d.cuCtxSetCurrent(primary);
        for (unsigned n = (unsigned)(uintptr_t)number; !r && !atomic_load(&stop); n++) {
            r = round_of((CUfunction)kernel, n);
            atomic_fetch_add(&rounds, 1);
            atomic_fetch_add(&went_well, r == CUDA_SUCCESS);
        }
        atomic_fetch_add(&errors, r != CUDA_SUCCESS);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    CUlibrary library;
    char why[300];
    for (int i = 2; i < argc; i++) {
        launches |= strcmp(argv[i], "launch") == 0;
        in_order |= strcmp(argv[i], "order") == 0;
    }
    double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "nothing"));
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 2;
    // A context of a GPU may take longer to make than the whole time, and every second reset waits until one
    // has been of use.
    unsigned long well = 0;
    for (unsigned i = 1; now() < end || !atomic_load(&resets) || !atomic_load(&went_well); i++) {
        do
            nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        while (i % 2 == 0 && now() < end + PATIENCE && atomic_load(&went_well) == well);
        well = atomic_load(&went_well);
        atomic_fetch_add(&resets_begun, 1);
        atomic_fetch_add(&resets, !d.cuDevicePrimaryCtxReset_v2(0));
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu rounds, %lu errors, %lu resets\n", atomic_load(&rounds), atomic_load(&errors),
           atomic_load(&resets));
    return atomic_load(&rounds) && atomic_load(&resets) ? 0 : 2;
}
