// SPDX-License-Identifier: MIT
// Programs with one error each that --mode=pages finds, and their twins without it: `pages_errors bad NAME`,
// `pages_errors good NAME`, `pages_errors list`. Most are errors of kernels, which nothing else finds without
// rewriting them. Only the error of a case depends on `bad`.
#include "cases.h"

enum { SMALL = 1000, LARGE = 3 << 20, WHOLE = 4 << 20, ODD = LARGE - 100 };

static char host[8 << 20];

static CUdeviceptr plain(size_t size)
{
    CUdeviceptr p;
    NEED(d.cuMemAlloc_v2(&p, size));
    NEED(d.cuMemsetD8_v2(p, 1, size));
    return p;
}

// One thread stores p[offset / 4] = 7 and reads p[0].
static const char text[] = ".version 6.0\n"
                           ".target sm_50\n"
                           ".address_size 64\n"
                           ".visible .entry touch(.param .u64 p, .param .u64 offset)\n"
                           "{\n"
                           "    .reg .u64 %a, %b;\n"
                           "    .reg .u32 %v;\n"
                           "    ld.param.u64 %a, [p];\n"
                           "    ld.param.u64 %b, [offset];\n"
                           "    add.u64 %b, %a, %b;\n"
                           "    ld.global.u32 %v, [%a];\n"
                           "    st.global.u32 [%b], 7;\n"
                           "    ret;\n"
                           "}\n";

static void touch(CUdeviceptr p, int64_t offset, CUstream stream)
{
    static CUfunction f;
    CUmodule module;
    void *arguments[] = {&p, &offset};
    if (!f) {
        NEED(d.cuModuleLoadData(&module, text));
        NEED(d.cuModuleGetFunction(&f, module, "touch"));
    }
    // The launch itself may return the fault.
    d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static void touch_and_wait(CUdeviceptr p, int64_t offset, int bad)
{
    touch(p, offset, NULL);
    TRY(d.cuCtxSynchronize());
}

// Behind and before a large buffer.

static void one_behind(int bad)
{
    CUdeviceptr p = plain(LARGE);
    touch_and_wait(p, LARGE - 4 + 4 * bad, bad);
    TRY(d.cuMemFree_v2(p));
}

static void far_behind(int bad)
{
    CUdeviceptr p = plain(LARGE), q = plain(LARGE);
    touch_and_wait(p, LARGE - 4 + bad * (2 << 20), bad);
    TRY(d.cuMemFree_v2(p));
    TRY(d.cuMemFree_v2(q));
}

static void one_before(int bad)
{
    CUdeviceptr p = plain(WHOLE);
    touch_and_wait(p, -4 * bad, bad);
    TRY(d.cuMemFree_v2(p));
}

static void behind_pitched(int bad)
{
    CUdeviceptr p;
    size_t pitch;
    NEED(d.cuMemAllocPitch_v2(&p, &pitch, 3000, 1024, 4));
    touch_and_wait(p, (int64_t)pitch * 1024 - 4 + 4 * bad, bad);
    TRY(d.cuMemFree_v2(p));
}

static void behind_in_order(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync(&p, LARGE, NULL));
    touch_and_wait(p, LARGE - 4 + 4 * bad, bad);
    TRY(d.cuMemFreeAsync(p, NULL));
    TRY(d.cuCtxSynchronize());
}

// In the slack, where nothing faults: canaries show it when the buffer is freed.

static void slack_behind(int bad)
{
    CUdeviceptr p = plain(ODD);
    touch_and_wait(p, ODD - 4 + 4 * bad, 0);
    NEED(d.cuMemFree_v2(p));
}

static void slack_before(int bad)
{
    CUdeviceptr p = plain(LARGE);
    touch_and_wait(p, -4 * bad, 0);
    NEED(d.cuMemFree_v2(p));
}

static void slack_at_exit(int bad)
{
    CUdeviceptr p = plain(ODD);
    touch_and_wait(p, ODD - 4 + 40 * bad, 0);
}

static void slack_of_context(int bad)
{
    CUcontext other;
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    CUdeviceptr p = plain(ODD);
    NEED(d.cuMemsetD8_v2(p, 0, ODD));
    CUmodule module;
    CUfunction f;
    int64_t offset = ODD - 4 + 8 * bad;
    void *arguments[] = {&p, &offset};
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&f, module, "touch"));
    NEED(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuCtxDestroy_v2(other));
}

static void slack_in_order(int bad)
{
    CUdeviceptr p, q;
    NEED(d.cuMemAllocAsync(&p, ODD, NULL));
    touch(p, ODD - 4 + 4 * bad, NULL);
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuStreamSynchronize(NULL));
    NEED(d.cuMemAllocAsync(&q, ODD, NULL));
    NEED(d.cuMemFreeAsync(q, NULL));
    NEED(d.cuStreamSynchronize(NULL));
}

// Freed buffers: others were allocated in the meantime, as large and in plain memory at the same place.

static void freed_large(int bad)
{
    CUdeviceptr p = plain(WHOLE), q;
    if (bad)
        NEED(d.cuMemFree_v2(p));
    q = plain(WHOLE);
    touch_and_wait(p, 100, bad);
    if (!bad)
        NEED(d.cuMemFree_v2(p));
    TRY(d.cuMemFree_v2(q));
}

static void freed_small(int bad)
{
    CUdeviceptr keep = plain(SMALL), p = plain(SMALL), q;
    if (bad)
        NEED(d.cuMemFree_v2(p));
    q = plain(SMALL);
    touch_and_wait(p, 100, bad);
    if (!bad)
        NEED(d.cuMemFree_v2(p));
    TRY(d.cuMemFree_v2(q));
    TRY(d.cuMemFree_v2(keep));
}

static void freed_in_order(int bad)
{
    CUdeviceptr p, q;
    CUstream stream;
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuMemAllocAsync(&p, SMALL, stream));
    touch(p, 0, stream);
    if (bad)
        NEED(d.cuMemFreeAsync(p, stream));
    NEED(d.cuMemAllocAsync(&q, SMALL, stream));
    NEED(d.cuStreamSynchronize(stream));
    touch(p, 4, stream);
    TRY(d.cuStreamSynchronize(stream));
    if (!bad)
        NEED(d.cuMemFreeAsync(p, stream));
    TRY(d.cuMemFreeAsync(q, stream));
    TRY(d.cuStreamSynchronize(stream));
}

// Calls, which every mode checks, must be distinguished from what is mapped around a buffer.

static void copy_in_slack(int bad)
{
    CUdeviceptr p = plain(ODD);
    TRY(d.cuMemcpyDtoH_v2(host, p + ODD - 4 + 4 * (unsigned)bad, 4));
    NEED(d.cuMemFree_v2(p));
}

static void copy_before(int bad)
{
    CUdeviceptr p = plain(LARGE);
    TRY(d.cuMemcpyDtoH_v2(host, p - 16 * (unsigned)bad, 64));
    NEED(d.cuMemFree_v2(p));
}

static void twice(int bad)
{
    CUdeviceptr p = plain(LARGE);
    NEED(d.cuMemFree_v2(p));
    if (bad)
        d.cuMemFree_v2(p);
}

static void twice_small_in_order(int bad)
{
    CUdeviceptr p;
    NEED(d.cuMemAllocAsync(&p, SMALL, NULL));
    NEED(d.cuMemFreeAsync(p, NULL));
    if (bad)
        d.cuMemFreeAsync(p, NULL);
}

static void free_inside(int bad)
{
    CUdeviceptr p = plain(LARGE);
    if (bad)
        d.cuMemFree_v2(p + 512);
    NEED(d.cuMemFree_v2(p));
}

static void free_mapping(int bad)
{
    CUdeviceptr p = plain(LARGE);
    if (bad)
        d.cuMemFree_v2(p & ~(CUdeviceptr)((2 << 20) - 1));
    NEED(d.cuMemFree_v2(p));
}

static void leak(int bad)
{
    CUdeviceptr p = plain(LARGE);
    if (!bad)
        NEED(d.cuMemFree_v2(p));
}

// Traits: leak: needs --leak-check; vague: a fault, on a GPU without address.
static const struct cases_row cases[] = {
    CASE(one_behind, "heap-buffer-overflow", "vague"),
    CASE(far_behind, "heap-buffer-overflow", "vague"),
    CASE(one_before, "heap-buffer-underflow", "vague"),
    CASE(behind_pitched, "heap-buffer-overflow", "vague"),
    CASE(behind_in_order, "heap-buffer-overflow", "vague"),
    CASE(slack_behind, "heap-buffer-overflow", ""),
    CASE(slack_before, "heap-buffer-underflow", ""),
    CASE(slack_at_exit, "heap-buffer-overflow", ""),
    CASE(slack_of_context, "heap-buffer-overflow", ""),
    CASE(slack_in_order, "heap-buffer-overflow", ""),
    CASE(freed_large, "heap-use-after-free", "vague"),
    CASE(freed_small, "heap-use-after-free", "vague"),
    CASE(freed_in_order, "heap-use-after-free", "vague"),
    CASE(copy_in_slack, "heap-buffer-overflow", ""),
    CASE(copy_before, "heap-buffer-underflow", ""),
    CASE(twice, "double-free", ""),
    CASE(twice_small_in_order, "double-free", ""),
    CASE(free_inside, "bad-free", ""),
    CASE(free_mapping, "bad-free", ""),
    CASE(leak, "memory-leak", "leak"),
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
