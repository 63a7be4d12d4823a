// SPDX-License-Identifier: MIT
// Correct programs for --mode=pages:
//   pages_good answers            prints what a program can query about its memory, without addresses
//   pages_good many SIZE COUNT    buffers that live at once: none may lie in another, all keep their bytes
//   pages_good churn SIZE COUNT   one after the other
//   pages_good threads [ROUNDS]   several threads at once, 200 rounds each
//   pages_good order              stream-ordered memory beyond what the device has, in a loop without waits
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

static struct driver d;
static CUcontext context;

#define NEED(call) need((call), #call, __LINE__)

static void need(CUresult r, const char *call, int line)
{
    if (!r)
        return;
    printf("pages_good.c:%d: %s gives %d\n", line, call, r);
    exit(2);
}

static void attributes(const char *what, CUdeviceptr p)
{
    for (int a = CU_POINTER_ATTRIBUTE_CONTEXT; a <= CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE; a++) {
        uint64_t value[2] = {0};
        // Ids differ by nature; memory in pages can be shared by a legacy handle even where plain memory
        // cannot.
        if (a == CU_POINTER_ATTRIBUTE_BUFFER_ID || a == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
            continue;
        CUresult r = d.cuPointerGetAttribute(value, (CUpointer_attribute)a, p);
        bool address = a == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
        bool handle = a == CU_POINTER_ATTRIBUTE_CONTEXT || a == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
        printf("%s, attribute %d: %d, %lld\n", what, a, r,
               r         ? 0
               : address ? (long long)(value[0] - p)
               : handle  ? (long long)(value[0] != 0)
                         : (long long)value[0]);
    }
    CUdeviceptr base = 0;
    size_t size = 0;
    CUresult r = d.cuMemGetAddressRange_v2(&base, &size, p);
    printf("%s, range: %d, %lld, %zu\n", what, r, r ? 0 : (long long)(base - p), r ? 0 : size);
    unsigned on = 1;
    printf("%s, set: %d\n", what, d.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
}

static void several(CUdeviceptr p)
{
    CUpointer_attribute list[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_CONTEXT,
                                  CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    size_t size = 0;
    CUcontext owner = NULL;
    int type = 0;
    void *values[] = {&size, &owner, &type};
    CUresult r = d.cuPointerGetAttributes(3, list, values, p);
    printf("several: %d, %zu, %d, %d\n", r, size, owner == context, type);
}

static void answers(void)
{
    static const size_t sizes[] = {1, 100, 512, 1000, 100000, 1 << 20, (2 << 20) + 1, 3000000, 5 << 20};
    char what[40];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr p;
        NEED(d.cuMemAlloc_v2(&p, sizes[i]));
        snprintf(what, sizeof what, "%zu", sizes[i]);
        printf("%s, aligned: %d\n", what, p % 512 == 0);
        attributes(what, p);
        snprintf(what, sizeof what, "%zu at its last byte", sizes[i]);
        attributes(what, p + sizes[i] - 1);
        snprintf(what, sizeof what, "%zu behind", sizes[i]);
        if (sizes[i] % 512)
            attributes(what, p + sizes[i]);
        several(p);
        NEED(d.cuMemFree_v2(p));
        attributes("freed", p);
        NEED(d.cuMemAllocAsync(&p, sizes[i], NULL));
        attributes("pool", p);
        NEED(d.cuMemFreeAsync(p, NULL));
        NEED(d.cuMemAllocAsync(&p, sizes[i], NULL));
        NEED(d.cuMemFree_v2(p));
    }
    static const size_t widths[] = {1, 100, 512, 513, 4096, 5000, 1 << 20, (1 << 20) + 1};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        CUdeviceptr p = 0;
        size_t pitch = 0;
        CUresult r = d.cuMemAllocPitch_v2(&p, &pitch, widths[i], 3, 4);
        printf("pitch of %zu: %d, %zu\n", widths[i], r, pitch);
        attributes("pitched", p);
        NEED(d.cuMemFree_v2(p));
        printf("wrong: %d\n", d.cuMemAllocPitch_v2(&p, &pitch, widths[i], 3, 5));
    }
    CUdeviceptr p;
    printf("nothing: %d, too much: %d\n", d.cuMemAlloc_v2(&p, 0), d.cuMemAlloc_v2(&p, (size_t)1 << 50));
    printf("free of 0: %d\n", d.cuMemFree_v2(0));
}

static unsigned mark(CUdeviceptr p, size_t size, unsigned n)
{
    NEED(d.cuMemsetD8_v2(p, (unsigned char)n, size));
    NEED(d.cuMemcpyHtoD_v2(p, &n, size < sizeof n ? size : sizeof n));
    return n;
}

static void check(CUdeviceptr p, size_t size, unsigned n)
{
    unsigned first = 0;
    unsigned char last = 0;
    NEED(d.cuMemcpyDtoH_v2(&first, p, sizeof first));
    NEED(d.cuMemcpyDtoH_v2(&last, p + size - 1, 1));
    if (first != n || last != (unsigned char)n) {
        printf("a buffer has lost its bytes: %u is %u, %u\n", n, first, last);
        exit(2);
    }
}

static void many(size_t size, unsigned count)
{
    CUdeviceptr *p = calloc(count, sizeof *p);
    for (unsigned i = 0; i < count; i++) {
        NEED(d.cuMemAlloc_v2(&p[i], size));
        mark(p[i], size, i);
    }
    for (unsigned i = 0; i < count; i++)
        check(p[i], size, i);
    for (unsigned i = 0; i < count; i++)
        NEED(d.cuMemFree_v2(p[i]));
    free(p);
}

static void churn(size_t size, unsigned count)
{
    CUdeviceptr keep[8] = {0};
    for (unsigned i = 0; i < count; i++) {
        CUdeviceptr *p = &keep[i % 8];
        if (*p) {
            check(*p, size, i - 8);
            NEED(d.cuMemFree_v2(*p));
        }
        NEED(d.cuMemAlloc_v2(p, size));
        mark(*p, size, i);
    }
    for (unsigned i = 0; i < 8; i++)
        NEED(d.cuMemFree_v2(keep[i]));
}

static unsigned rounds;

static void *thread(void *argument)
{
    size_t size = (size_t)(uintptr_t)argument;
    CUstream stream;
    CUdeviceptr p;
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < rounds; i++) {
        NEED(d.cuMemAlloc_v2(&p, size));
        check(p, size, mark(p, size, i));
        NEED(d.cuMemFree_v2(p));
        NEED(d.cuMemAllocAsync(&p, size, stream));
        NEED(d.cuMemsetD8Async(p, 1, size, stream));
        NEED(d.cuMemFreeAsync(p, stream));
    }
    NEED(d.cuStreamSynchronize(stream));
    NEED(d.cuStreamDestroy_v2(stream));
    return NULL;
}

struct borrowed {
    CUstream stream;
    CUdeviceptr pointer;
};

// A stream knows its context, so a thread without one may free in its order.
static void *free_without_context(void *argument)
{
    const struct borrowed *b = argument;
    NEED(d.cuMemFreeAsync(b->pointer, b->stream));
    return NULL;
}

static void free_elsewhere(size_t size)
{
    struct borrowed b;
    pthread_t t;
    NEED(d.cuStreamCreate(&b.stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuMemAllocAsync(&b.pointer, size, b.stream));
    pthread_create(&t, NULL, free_without_context, &b);
    pthread_join(t, NULL);
    NEED(d.cuStreamSynchronize(b.stream));
    NEED(d.cuStreamDestroy_v2(b.stream));
}

static void threads(unsigned count)
{
    pthread_t t[6];
    rounds = count;
    free_elsewhere(1000);
    free_elsewhere(3000000);
    for (unsigned i = 0; i < 6; i++)
        pthread_create(&t[i], NULL, thread, (void *)(uintptr_t)(1000 + (i % 3) * 1700000));
    for (unsigned i = 0; i < 6; i++)
        pthread_join(t[i], NULL);
}

static void order(void)
{
    size_t available, all;
    CUstream stream;
    NEED(d.cuMemGetInfo_v2(&available, &all));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    size_t size = available / 20 & ~(size_t)511;
    for (unsigned i = 0; i < 60; i++) {
        CUdeviceptr p;
        NEED(d.cuMemAllocAsync(&p, size, stream));
        NEED(d.cuMemsetD8Async(p, 1, 1 << 20, stream));
        NEED(d.cuMemFreeAsync(p, stream));
    }
    NEED(d.cuStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
    char why[300];
    if (argc < 2)
        return 2;
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    if (!strcmp(argv[1], "answers"))
        answers();
    else if (!strcmp(argv[1], "many") && argc == 4)
        many(strtoul(argv[2], NULL, 0), (unsigned)atoi(argv[3]));
    else if (!strcmp(argv[1], "churn") && argc == 4)
        churn(strtoul(argv[2], NULL, 0), (unsigned)atoi(argv[3]));
    else if (!strcmp(argv[1], "threads"))
        threads(argc == 3 ? (unsigned)atoi(argv[2]) : 200);
    else if (!strcmp(argv[1], "order"))
        order();
    else
        return 2;
    return 0;
}
