// SPDX-License-Identifier: MIT
// cancel_threads COUNT [SEED]: threads allocate, copy, launch, wait, load modules and free, and are cancelled
// at random moments, COUNT times in all. What a call has made when its thread is cancelled is kept in the
// thread's row, which main frees. Threads that nobody cancels do the same meanwhile and must go on, and so
// must main when the last of the others is gone.
#include "canary_kernels.h"

enum { VICTIMS = 4, OTHERS = 2, BUFFERS = 6, SECONDS = 20 };

struct row {
    pthread_t thread;
    uint64_t random;
    CUstream stream;
    CUmodule module;
    CUdeviceptr device[BUFFERS];
    CUdeviceptr ordered;
    void *pinned;
    char text[sizeof kernels_text + 64];
    bool stays;              // nobody cancels it
    _Atomic uint64_t calls;  // relaxed: a number of its own
};

static struct kernels kernels;
static _Atomic bool ending;  // relaxed: it orders nothing

static unsigned pick(struct row *r, unsigned below)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((r->random >> 33) % below);
}

// Now and then of a content that no cache has.
static void module(struct row *r)
{
    CUmodule gone = r->module;
    r->module = NULL;
    if (gone) {
        NEED(d.cuModuleUnload(gone));
        return;
    }
    snprintf(r->text, sizeof r->text, "// %u\n%s", pick(r, 60), kernels_text);
    NEED(d.cuModuleLoadData(&r->module, r->text));
}

static void one_call(struct row *r)
{
    static const size_t sizes[] = {16, 600, 5000, 70000, 3 << 20};
    unsigned which = pick(r, 12);
    CUdeviceptr *buffer = &r->device[pick(r, BUFFERS)], gone = *buffer;
    char bytes[16] = "";
    if (which < 3 && !gone) {
        NEED(d.cuMemAlloc_v2(buffer, sizes[pick(r, 5)]));
    } else if (which < 3) {
        *buffer = 0;
        NEED(d.cuMemFree_v2(gone));
    } else if (which == 3 && gone) {
        NEED(d.cuMemcpyHtoDAsync_v2(gone, bytes, sizeof bytes, r->stream));
    } else if (which == 4 && gone) {
        NEED(d.cuMemcpyDtoH_v2(bytes, gone, sizeof bytes));
    } else if ((which == 5 || which == 6) && gone) {
        kernels_fill(&kernels, gone, 16, r->stream);
    } else if (which == 7) {
        NEED(d.cuStreamSynchronize(r->stream));
    } else if (which == 8 && r->pinned) {
        void *was = r->pinned;
        r->pinned = NULL;
        NEED(d.cuStreamSynchronize(r->stream));
        NEED(d.cuMemFreeHost(was));
    } else if (which == 8) {
        NEED(d.cuMemHostAlloc(&r->pinned, 300, CU_MEMHOSTALLOC_DEVICEMAP));
    } else if (which == 9 && r->ordered) {
        CUdeviceptr was = r->ordered;
        r->ordered = 0;
        NEED(d.cuMemFreeAsync(was, r->stream));
    } else if (which == 9) {
        NEED(d.cuMemAllocAsync(&r->ordered, 1000, r->stream));
    } else if (which == 10) {
        module(r);
    } else if (gone) {
        NEED(d.cuMemsetD8Async(gone, 1, 16, r->stream));
    }
    atomic_fetch_add_explicit(&r->calls, 1, memory_order_relaxed);
}

static void *work(void *row)
{
    struct row *r = row;
    int before;
    if (r->stays)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    NEED(d.cuCtxSetCurrent(context));
    while (!atomic_load_explicit(&ending, memory_order_relaxed)) {
        one_call(r);
        pthread_testcancel();
    }
    return NULL;
}

static void empty(struct row *r)
{
    NEED(d.cuStreamSynchronize(r->stream));
    for (int i = 0; i < BUFFERS; i++)
        if (r->device[i])
            NEED(d.cuMemFree_v2(r->device[i]));
    if (r->ordered)
        NEED(d.cuMemFreeAsync(r->ordered, r->stream));
    if (r->pinned)
        NEED(d.cuMemFreeHost(r->pinned));
    if (r->module)
        NEED(d.cuModuleUnload(r->module));
    memset(r->device, 0, sizeof r->device);
    r->ordered = 0;
    r->pinned = NULL;
    r->module = NULL;
}

static void start(struct row *r)
{
    if (pthread_create(&r->thread, NULL, work, r)) {
        printf("no thread\n");
        exit(2);
    }
}

// What went wrong is for a debugger: the process ends where it hangs.
static void expect_within(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
    alarm(SECONDS);
}

int main(int argc, char **argv)
{
    static struct row rows[VICTIMS + OTHERS];
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
    struct row chance = {.random = argc > 2 ? strtoull(argv[2], NULL, 0) : 1};
    char why[300];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    kernels_load(&kernels);
    CUdeviceptr first;
    NEED(d.cuMemAlloc_v2(&first, 16));
    kernels_fill(&kernels, first, 16, NULL);
    NEED(d.cuMemFree_v2(first));
    for (unsigned i = 0; i < VICTIMS + OTHERS; i++) {
        rows[i].random = chance.random * 1000 + i;
        rows[i].stays = i >= VICTIMS;
        NEED(d.cuStreamCreate(&rows[i].stream, CU_STREAM_NON_BLOCKING));
        start(&rows[i]);
    }
    for (unsigned long i = 0; i < count; i++) {
        struct row *r = &rows[pick(&chance, VICTIMS)];
        usleep(pick(&chance, 500));
        alarm(SECONDS);
        pthread_cancel(r->thread);
        pthread_join(r->thread, NULL);
        if (!pick(&chance, 4))
            empty(r);
        start(r);
    }
    expect_within("all cancelled");
    atomic_store_explicit(&ending, true, memory_order_relaxed);
    uint64_t calls = 0;
    for (unsigned i = 0; i < VICTIMS + OTHERS; i++) {
        pthread_join(rows[i].thread, NULL);
        empty(&rows[i]);
        calls += atomic_load_explicit(&rows[i].calls, memory_order_relaxed);
    }
    NEED(d.cuCtxSynchronize());
    printf("%lu cancelled, %llu calls\n", count, (unsigned long long)calls);
    expect_within("ending");
    return 0;
}
