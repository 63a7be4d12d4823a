// SPDX-License-Identifier: MIT
// What --mode=canary finds: the paper's experiments, places, families of memory, calls; with correct twins.
// See canary_cases.h. Only the error of a case depends on `bad`.
#include "canary_cases.h"

enum { PAGE = 4096, WHOLE = 2 << 20, WIDTH = 500, ROWS = 7, DEPTH = 3, AT_ONCE = 8 };

static char host[8192];

static void behind_plain(size_t size, int bad)
{
    CUdeviceptr p = plain(size);
    behind(p, size, bad);
    NEED(d.cuMemFree_v2(p));
}

static void before_plain(size_t size, int bad)
{
    CUdeviceptr p = plain(size);
    before(p, bad);
    NEED(d.cuMemFree_v2(p));
}

// The five experiments of the paper.

static void sequential(int bad)
{
    CUdeviceptr p[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++)
        p[i] = plain(SMALL + i);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        unsigned wrong = bad && i == 5;
        kernels_fill(&kernels, p[i], SMALL + i, NULL);
        flip_and_see(p[i] + SMALL + i - 4 + 4 * wrong, 4, NULL, (int)wrong);
    }
    NEED(d.cuCtxSynchronize());
    for (unsigned i = 0; i < AT_ONCE; i++)
        NEED(d.cuMemFree_v2(p[i]));
}

static void by_stream(int bad)
{
    CUdeviceptr p[AT_ONCE];
    CUstream stream[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++) {
        p[i] = plain(SMALL);
        NEED(d.cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
    }
    for (unsigned i = 0; i < AT_ONCE; i++)
        kernels_fill(&kernels, p[i], SMALL, stream[i]);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        unsigned wrong = bad && i == 3;
        flip_and_see(p[i] + SMALL - 4 + 4 * wrong, 4, stream[i], (int)wrong);
    }
    for (unsigned i = 0; i < AT_ONCE; i++) {
        NEED(d.cuStreamSynchronize(stream[i]));
        NEED(d.cuStreamDestroy_v2(stream[i]));
        NEED(d.cuMemFree_v2(p[i]));
    }
}

struct worker {
    pthread_t thread;
    kernels_word *flag;
    unsigned wrong;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    CUstream stream;
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = plain(SMALL);
    kernels_fill(&kernels, p, SMALL, stream);
    kernels_flip(&kernels, p + SMALL - 4 + 4 * w->wrong, 4, w->flag, stream);
    double then = kernels_wait(w->flag);
    if (w->wrong)
        printf("wrote %.6f\n", then);
    NEED(d.cuStreamSynchronize(stream));
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuStreamDestroy_v2(stream));
    return NULL;
}

static void by_thread(int bad)
{
    static struct worker w[AT_ONCE];
    for (unsigned i = 0; i < AT_ONCE; i++) {
        if (!w[i].flag)
            w[i].flag = kernels_new_word();
        w[i].wrong = bad && i == 6;
        pthread_create(&w[i].thread, NULL, work, &w[i]);
    }
    for (unsigned i = 0; i < AT_ONCE; i++)
        pthread_join(w[i].thread, NULL);
}

// main forks before CUDA is used: see forks.
static void by_process(int bad)
{
    single(bad);
}

// Places.

static void underflow(int bad)
{
    before_plain(SMALL, bad);
}

static void underflow_large(int bad)
{
    before_plain(LARGE, bad);
}

static void one_byte(int bad)
{
    behind_plain(PAGE, bad);
}

static void one_byte_odd(int bad)
{
    behind_plain(ODD, bad);
}

static void one_byte_tiny(int bad)
{
    behind_plain(1, bad);
}

// As far behind as the canary reaches.
static void far_behind(size_t size, int bad)
{
    CUdeviceptr p = plain(size), next = plain(size);
    flip_and_see(p + (bad ? size + 479 : size - 1), 1, NULL, bad);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuMemFree_v2(next));
}

static void far_page(int bad)
{
    far_behind(PAGE, bad);
}

static void far_64k(int bad)
{
    far_behind(1 << 16, bad);
}

static void far_whole(int bad)
{
    far_behind(WHOLE, bad);
}

static void one_byte_256(int bad)
{
    behind_plain(256, bad);
}

static void one_byte_large(int bad)
{
    behind_plain(LARGE, bad);
}

static void one_byte_whole(int bad)
{
    behind_plain(WHOLE, bad);
}

static void one_byte_large_odd(int bad)
{
    behind_plain(LARGE + 1, bad);
}

static void long_run(int bad)
{
    CUdeviceptr p = plain(SMALL);
    flip_and_see(p + SMALL - 64 + 64 * (unsigned)bad, 64, NULL, bad);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemFree_v2(p));
}

static void both_sides(int bad)
{
    CUdeviceptr p = plain(SMALL);
    flip_and_see(p - 2 * (unsigned)bad, 2, NULL, bad);
    flip_and_see(p + SMALL - 2 + 2 * (unsigned)bad, 2, NULL, 0);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemFree_v2(p));
}

// Families.

static void pitched(int bad)
{
    CUdeviceptr p;
    size_t pitch;
    NEED(d.cuMemAllocPitch_v2(&p, &pitch, WIDTH, ROWS, 4));
    behind(p, pitch * ROWS, bad);
    NEED(d.cuMemFree_v2(p));
}

static void pitched_before(int bad)
{
    CUdeviceptr p;
    size_t pitch;
    NEED(d.cuMemAllocPitch_v2(&p, &pitch, 5000, 1024, 16));
    before(p, bad);
    NEED(d.cuMemFree_v2(p));
}

static void pitched_3d(int bad)
{
    CUdeviceptr p;
    size_t pitch;
    NEED(d.cuMemAllocPitch_v2(&p, &pitch, WIDTH, ROWS * DEPTH, 4));
    behind(p, pitch * ROWS * DEPTH, bad);
    NEED(d.cuMemFree_v2(p));
}

static void pinned(int bad)
{
    void *p;
    NEED(d.cuMemHostAlloc(&p, ODD, CU_MEMHOSTALLOC_DEVICEMAP));
    behind((uintptr_t)p, ODD, bad);
    NEED(d.cuMemFreeHost(p));
}

static void pinned_before(int bad)
{
    void *p;
    NEED(d.cuMemAllocHost_v2(&p, SMALL));
    before((uintptr_t)p, bad);
    NEED(d.cuMemFreeHost(p));
}

static void flip_by_host(unsigned char *p)
{
    *(volatile unsigned char *)p ^= 255;
}

static void pinned_by_host(int bad)
{
    void *p;
    NEED(d.cuMemHostAlloc(&p, ODD, 0));
    flip_by_host((unsigned char *)p + ODD - 1 + bad);
    NEED(d.cuMemFreeHost(p));
}

static void managed(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocManaged(&p, ODD, CU_MEM_ATTACH_GLOBAL));
    behind(p, ODD, bad);
    NEED(d.cuMemFree_v2(p));
}

static void managed_before(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocManaged(&p, LARGE, CU_MEM_ATTACH_GLOBAL));
    before(p, bad);
    NEED(d.cuMemFree_v2(p));
}

static void managed_by_host(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocManaged(&p, ODD, CU_MEM_ATTACH_GLOBAL));
    flip_by_host((unsigned char *)(uintptr_t)p + ODD - 1 + bad);
    NEED(d.cuMemFree_v2(p));
}

static void in_order(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync(&p, ODD, NULL));
    behind(p, ODD, bad);
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuCtxSynchronize());
}

static void in_order_before(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync(&p, LARGE, NULL));
    before(p, bad);
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuCtxSynchronize());
}

static void in_order_of_thread(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync_ptsz(&p, SMALL, NULL));
    NEED(d.cuStreamSynchronize_ptsz(NULL));
    behind(p, SMALL, bad);
    NEED(d.cuMemFreeAsync_ptsz(p, NULL));
    NEED(d.cuStreamSynchronize_ptsz(NULL));
}

static void of_pool(int bad)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool;
    CUdeviceptr p;
    NEED(d.cuMemPoolCreate(&pool, &properties));
    NEED(d.cuMemAllocFromPoolAsync(&p, ODD, pool, NULL));
    behind(p, ODD, bad);
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemPoolDestroy(pool));
}

// Frees, and calls that every mode checks: the canary must not be reported a second time.

static void twice(int bad)
{
    CUdeviceptr p = plain(SMALL);
    NEED(d.cuMemFree_v2(p));
    if (bad)
        d.cuMemFree_v2(p);
}

static void twice_in_order(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync(&p, SMALL, NULL));
    NEED(d.cuMemFreeAsync(p, NULL));
    if (bad)
        d.cuMemFreeAsync(p, NULL);
    NEED(d.cuCtxSynchronize());
}

static void twice_pinned(int bad)
{
    void *p;
    NEED(d.cuMemHostAlloc(&p, SMALL, 0));
    NEED(d.cuMemFreeHost(p));
    if (bad)
        d.cuMemFreeHost(p);
}

static void free_inside(int bad)
{
    CUdeviceptr p = plain(SMALL);
    if (bad)
        d.cuMemFree_v2(p + 16);
    NEED(d.cuMemFree_v2(p));
}

static void copied(int bad)
{
    CUdeviceptr p = plain(SMALL);
    TRY(d.cuMemcpyHtoD_v2(p, host, SMALL + (unsigned)bad));
    NEED(d.cuMemFree_v2(p));
}

static void copied_before(int bad)
{
    CUdeviceptr p = plain(SMALL);
    TRY(d.cuMemcpyHtoD_v2(p - 16 * (unsigned)bad, host, 64));
    NEED(d.cuMemFree_v2(p));
}

static void set(int bad)
{
    CUdeviceptr p = plain(ODD);
    TRY(d.cuMemsetD8_v2(p, 0, ODD + (unsigned)bad));
    NEED(d.cuMemFree_v2(p));
}

static void leak(int bad)
{
    // No kernel that would need it is launched.
    if (flag)
        NEED(d.cuMemFreeHost((void *)flag));
    flag = NULL;
    CUdeviceptr p = plain(ODD);
    if (!bad)
        NEED(d.cuMemFree_v2(p));
}

#define BOTH "heap-buffer-(over|under)flow.heap-buffer-(over|under)flow"
static const struct cases_row cases[] = {
    CASE(single, OVER, ""),
    CASE(sequential, OVER, ""),
    CASE(by_stream, OVER, ""),
    CASE(by_thread, OVER, ""),
    CASE(by_process, OVER, ""),
    CASE(underflow, UNDER, ""),
    CASE(underflow_large, UNDER, ""),
    CASE(one_byte, OVER, ""),
    CASE(one_byte_odd, OVER, ""),
    CASE(one_byte_tiny, OVER, ""),
    CASE(one_byte_256, OVER, ""),
    CASE(one_byte_large, OVER, ""),
    CASE(one_byte_whole, OVER, ""),
    CASE(one_byte_large_odd, OVER, ""),
    CASE(far_page, OVER, ""),
    CASE(far_64k, OVER, ""),
    CASE(far_whole, OVER, ""),
    CASE(long_run, OVER "(.heap-buffer-underflow)?", ""),
    CASE(both_sides, BOTH, ""),
    CASE(pitched, OVER, ""),
    CASE(pitched_before, UNDER, ""),
    CASE(pitched_3d, OVER, ""),
    CASE(pinned, OVER, ""),
    CASE(pinned_before, UNDER, ""),
    CASE(pinned_by_host, OVER, "host"),
    CASE(managed, OVER, ""),
    CASE(managed_before, UNDER, ""),
    CASE(managed_by_host, OVER, "host"),
    CASE(in_order, OVER, ""),
    CASE(in_order_before, UNDER, ""),
    CASE(in_order_of_thread, OVER, ""),
    CASE(of_pool, OVER, ""),
    CASE(twice, "double-free", "call"),
    CASE(twice_in_order, "double-free", "call"),
    CASE(twice_pinned, "double-free", "call"),
    CASE(free_inside, "bad-free", "call"),
    CASE(copied, OVER, "call"),
    CASE(copied_before, UNDER, "call"),
    CASE(set, OVER, "call"),
    CASE(leak, "memory-leak", "leak"),
};

int main(int argc, char **argv)
{
    return canary_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
