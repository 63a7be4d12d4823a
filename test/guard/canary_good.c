// SPDX-License-Identifier: MIT
// Correct programs for --mode=canary:
//   canary_good answers       prints what a program can query about its memory, without addresses
//   canary_good whole         buffers of many sizes and kinds: every byte is the program's, and kept
//   canary_good copies        large buffers and all ways to copy and set them
//   canary_good info          what the device says is free moves by what was asked for
//   canary_good pressure      far more than the device has, one buffer after the other, then nearly all of it
//                             at once
//   canary_good registered    memory that moat did not allocate
//   canary_good graph         memory of a graph
//   canary_good graph_pressure the same, where the device has little left but what was freed
//   canary_good contexts      two threads that make contexts and end them: the driver gives handles out again
//   canary_good captured      a capture while frees in the order of another stream wait
//   canary_good shared_device two contexts, one of which wants what the other has freed
//   canary_good ipc           another process, watched too, gets at a buffer
//   canary_good memory N SIZE prints how much less is free with N more buffers
#include <sys/wait.h>

#include "canary_kernels.h"

static struct kernels kernels;
static CUmemoryPool pool;
static const char *self;

static void wrong(const char *what, size_t size)
{
    printf("%s, size %zu\n", what, size);
    exit(2);
}

// A row for each kind of memory: how it is allocated and freed.

static CUresult make_plain(CUdeviceptr *p, size_t size)
{
    return d.cuMemAlloc_v2(p, size);
}

static CUresult make_host(CUdeviceptr *p, size_t size)
{
    return d.cuMemHostAlloc((void **)p, size, CU_MEMHOSTALLOC_DEVICEMAP);
}

static CUresult make_write_combined(CUdeviceptr *p, size_t size)
{
    return d.cuMemHostAlloc((void **)p, size, CU_MEMHOSTALLOC_WRITECOMBINED | CU_MEMHOSTALLOC_PORTABLE);
}

static CUresult make_managed(CUdeviceptr *p, size_t size)
{
    return d.cuMemAllocManaged(p, size, CU_MEM_ATTACH_GLOBAL);
}

static CUresult make_in_order(CUdeviceptr *p, size_t size)
{
    return d.cuMemAllocAsync(p, size, NULL);
}

static CUresult make_of_pool(CUdeviceptr *p, size_t size)
{
    return d.cuMemAllocFromPoolAsync(p, size, pool, NULL);
}

static CUresult free_host(CUdeviceptr p)
{
    return d.cuMemFreeHost((void *)(uintptr_t)p);
}

static CUresult free_plain(CUdeviceptr p)
{
    return d.cuMemFree_v2(p);
}

static CUresult free_in_order(CUdeviceptr p)
{
    return d.cuMemFreeAsync(p, NULL);
}

static const struct kind {
    const char *name;
    CUresult (*make)(CUdeviceptr *p, size_t size);
    CUresult (*give)(CUdeviceptr p);
} kinds[] = {
    {"plain", make_plain, free_plain},
    {"host", make_host, free_host},
    {"write-combined", make_write_combined, free_host},
    {"managed", make_managed, free_plain},
    {"in order", make_in_order, free_in_order},
    {"of a pool", make_of_pool, free_in_order},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const size_t sizes[] = {1,    4,     100,     255,     256,     257,     512,           1000,   4096,
                               5000, 65536, 1000000, 1 << 20, 1048577, 2 << 20, (2 << 20) + 1, 3000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

// Of ids and handles, which differ from run to run, only whether they exist is printed.
static void attributes(const char *kind, size_t size, const char *where, CUdeviceptr p)
{
    for (int a = CU_POINTER_ATTRIBUTE_CONTEXT; a <= CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE; a++) {
        uint64_t value[2] = {0};
        if (a == CU_POINTER_ATTRIBUTE_BUFFER_ID)
            continue;
        CUresult r = d.cuPointerGetAttribute(value, (CUpointer_attribute)a, p);
        bool address = a == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || a == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                       a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
        bool handle = a == CU_POINTER_ATTRIBUTE_CONTEXT || a == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
        long long said = address ? (long long)(value[0] - p) : (long long)value[0];
        printf("%s of %zu, %s, attribute %d: %d, %lld\n", kind, size, where, a, r,
               r        ? 0
               : handle ? value[0] != 0
                        : said);
    }
    CUdeviceptr base = 0;
    size_t range = 0;
    CUresult r = d.cuMemGetAddressRange_v2(&base, &range, p);
    printf("%s of %zu, %s, range: %d, %lld, %zu\n", kind, size, where, r, r ? 0 : (long long)(base - p),
           r ? 0 : range);
}

static void host_answers(size_t size, CUdeviceptr p)
{
    CUdeviceptr there = 0;
    unsigned flags = 0;
    CUresult r = d.cuMemHostGetDevicePointer_v2(&there, (void *)(uintptr_t)p, 0);
    printf("host of %zu: %d, the same there: %d\n", size, r, there == p);
    r = d.cuMemHostGetFlags(&flags, (void *)(uintptr_t)p);
    printf("host of %zu, flags: %d, %u\n", size, r, flags);
}

// A thread captures in some mode, and the same thread or another allocates.
struct allocation {
    size_t size;
    CUresult result;
    CUdeviceptr p;
};

static void *allocate(void *argument)
{
    struct allocation *a = argument;
    NEED(d.cuCtxSetCurrent(context));
    a->result = d.cuMemAlloc_v2(&a->p, a->size);
    return NULL;
}

static void answers_in_capture(CUstreamCaptureMode capture, CUstreamCaptureMode own, size_t size,
                               bool elsewhere)
{
    struct allocation a = {.size = size};
    CUstreamCaptureMode mode = own;
    CUstream stream;
    CUgraph captured = NULL;
    pthread_t thread;
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuThreadExchangeStreamCaptureMode(&mode));
    NEED(d.cuStreamBeginCapture_v2(stream, capture));
    if (elsewhere) {
        pthread_create(&thread, NULL, allocate, &a);
        pthread_join(thread, NULL);
    } else {
        allocate(&a);
    }
    CUresult ended = d.cuStreamEndCapture(stream, &captured);
    NEED(d.cuThreadExchangeStreamCaptureMode(&mode));
    printf("%zu bytes in a capture of mode %d, own mode %d, %s: %d, %d\n", size, capture, own,
           elsewhere ? "another thread" : "the same thread", a.result, ended);
    if (captured)
        NEED(d.cuGraphDestroy(captured));
    if (!a.result)
        NEED(d.cuMemFree_v2(a.p));
    NEED(d.cuStreamDestroy_v2(stream));
    NEED(d.cuMemAlloc_v2(&a.p, size));  // and after the capture has ended
    NEED(d.cuMemFree_v2(a.p));
}

static void answers(void)
{
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < SIZES; i++) {
            CUdeviceptr p = 0;
            CUresult r = kinds[k].make(&p, sizes[i]);
            printf("%s of %zu: %d, aligned: %d\n", kinds[k].name, sizes[i], r, p % 256 == 0);
            if (r)
                continue;
            attributes(kinds[k].name, sizes[i], "start", p);
            attributes(kinds[k].name, sizes[i], "middle", p + sizes[i] / 2);
            attributes(kinds[k].name, sizes[i], "end", p + sizes[i] - 1);
            if (kinds[k].give == free_host)
                host_answers(sizes[i], p);
            NEED(kinds[k].give(p));
        }
    for (size_t width = 1; width < 3000; width = width * 3 + 1)
        for (unsigned element = 4; element <= 16; element *= 2) {
            CUdeviceptr p = 0;
            size_t pitch = 0;
            CUresult r = d.cuMemAllocPitch_v2(&p, &pitch, width, 5, element);
            printf("pitch of %zu by 5, %u: %d, %zu, aligned: %d\n", width, element, r, pitch, p % 256 == 0);
            attributes("pitched", width, "start", p);
            NEED(d.cuMemFree_v2(p));
        }
    CUdeviceptr p;
    for (unsigned k = 0; k < KINDS; k++)
        printf("%s of 0: %d\n", kinds[k].name, kinds[k].make(&p, 0));
    for (unsigned way = 0; way < 36; way++)
        answers_in_capture((CUstreamCaptureMode)(way % 3), (CUstreamCaptureMode)(way / 3 % 3),
                           way / 9 % 2 ? 1000 : 5 << 20, way / 18);
    printf("too much: %d, %d\n", d.cuMemAlloc_v2(&p, (size_t)1 << 50), d.cuMemAlloc_v2(&p, (size_t)-1));
}

// The kernel `fill` sets byte i to i.
static void check_bytes(CUdeviceptr p, size_t size)
{
    static unsigned char bytes[4 << 20];
    NEED(d.cuMemcpyDtoH_v2(bytes, p, size));
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)i)
            wrong("a buffer has lost its bytes", size);
}

static void whole(void)
{
    CUdeviceptr p[KINDS][SIZES];
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < SIZES; i++) {
            NEED(kinds[k].make(&p[k][i], sizes[i]));
            kernels_fill(&kernels, p[k][i], sizes[i], NULL);
        }
    NEED(d.cuCtxSynchronize());
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < SIZES; i++) {
            check_bytes(p[k][i], sizes[i]);
            NEED(kinds[k].give(p[k][i]));
        }
    NEED(d.cuCtxSynchronize());
}

// A row for each way to copy from one buffer to another, of ROWS rows of ROW bytes.
enum { ROW = 3000, ROWS = 1001, COPY_SIZE = ROW * ROWS };
static unsigned char copy_host[COPY_SIZE];

static void copy_any(CUdeviceptr to, CUdeviceptr from)
{
    NEED(d.cuMemcpy(to, from, COPY_SIZE));
}

static void copy_device(CUdeviceptr to, CUdeviceptr from)
{
    NEED(d.cuMemcpyDtoDAsync_v2(to, from, COPY_SIZE, NULL));
}

static void copy_by_host(CUdeviceptr to, CUdeviceptr from)
{
    NEED(d.cuMemcpyDtoH_v2(copy_host, from, COPY_SIZE));
    NEED(d.cuMemcpyHtoD_v2(to, copy_host, COPY_SIZE));
}

static void copy_by_pinned(CUdeviceptr to, CUdeviceptr from)
{
    void *between;
    NEED(d.cuMemHostAlloc(&between, COPY_SIZE, 0));
    NEED(d.cuMemcpyDtoHAsync_v2(between, from, COPY_SIZE, NULL));
    NEED(d.cuMemcpyHtoDAsync_v2(to, between, COPY_SIZE, NULL));
    NEED(d.cuStreamSynchronize(NULL));
    NEED(d.cuMemFreeHost(between));
}

static CUDA_MEMCPY2D make_copy(CUdeviceptr to, CUdeviceptr from)  // 0: the host's buffer
{
    return (CUDA_MEMCPY2D){.srcMemoryType = from ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                           .srcDevice = from,
                           .srcHost = copy_host,
                           .srcPitch = ROW,
                           .dstMemoryType = to ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                           .dstDevice = to,
                           .dstHost = copy_host,
                           .dstPitch = ROW,
                           .Height = ROWS};
}

static const CUDA_MEMCPY2D *columns(CUDA_MEMCPY2D *copy, size_t first, size_t count)
{
    copy->srcXInBytes = copy->dstXInBytes = first;
    copy->WidthInBytes = count;
    return copy;
}

static void copy_rows(CUdeviceptr to, CUdeviceptr from)
{
    CUDA_MEMCPY2D copy = make_copy(to, from);
    NEED(d.cuMemcpy2D_v2(columns(&copy, 0, ROW / 2)));
    NEED(d.cuMemcpy2DAsync_v2(columns(&copy, ROW / 2, ROW / 2), NULL));
}

static void copy_rows_by_host(CUdeviceptr to, CUdeviceptr from)
{
    CUDA_MEMCPY2D down = make_copy(0, from), up = make_copy(to, 0);
    NEED(d.cuMemcpy2D_v2(columns(&down, 0, ROW - 1)));
    NEED(d.cuMemcpy2D_v2(columns(&up, 0, ROW - 1)));
    NEED(d.cuMemcpy2DUnaligned_v2(columns(&down, ROW - 1, 1)));
    NEED(d.cuMemcpy2DUnaligned_v2(columns(&up, ROW - 1, 1)));
}

static void copy_block(CUdeviceptr to, CUdeviceptr from)
{
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = from,
                                .srcPitch = ROW,
                                .srcHeight = ROWS / 7,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = to,
                                .dstPitch = ROW,
                                .dstHeight = ROWS / 7,
                                .WidthInBytes = ROW,
                                .Height = ROWS / 7,
                                .Depth = 7};
    NEED(d.cuMemcpy3DAsync_v2(&copy, NULL));
}

static void copy_batch(CUdeviceptr to, CUdeviceptr from)
{
    CUdeviceptr targets[2] = {to, to + COPY_SIZE / 2}, sources[2] = {from, from + COPY_SIZE / 2};
    size_t bytes[2] = {COPY_SIZE / 2, COPY_SIZE - COPY_SIZE / 2}, first = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUstream stream;
    if (!d.cuMemcpyBatchAsync_v2) {
        copy_any(to, from);
        return;
    }
    NEED(d.cuCtxSynchronize());
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuMemcpyBatchAsync_v2(targets, sources, bytes, 2, &attributes, &first, 1, stream));
    NEED(d.cuStreamSynchronize(stream));
    NEED(d.cuStreamDestroy_v2(stream));
}

static void copy_peer(CUdeviceptr to, CUdeviceptr from)
{
    NEED(d.cuMemcpyPeer(to, context, from, context, COPY_SIZE));
}

// Mapped memory may consist of several pieces, and a buffer may cross from one into the next: each is the
// target once.
static void copies(void)
{
    static void (*const ways[])(CUdeviceptr, CUdeviceptr) = {copy_any,       copy_device, copy_by_host,
                                                             copy_by_pinned, copy_rows,   copy_rows_by_host,
                                                             copy_block,     copy_batch,  copy_peer};
    enum { WAYS = sizeof ways / sizeof *ways, BUFFERS = 6 };
    CUdeviceptr p[BUFFERS];
    for (unsigned i = 0; i < BUFFERS; i++)
        NEED(d.cuMemAlloc_v2(&p[i], COPY_SIZE));
    for (unsigned w = 0; w < WAYS; w++)
        for (unsigned i = 1; i < BUFFERS; i++) {
            kernels_fill(&kernels, p[i - 1], COPY_SIZE, NULL);
            NEED(d.cuMemsetD2D8_v2(p[i], ROW, 255, ROW, ROWS));
            ways[w](p[i], p[i - 1]);
            NEED(d.cuCtxSynchronize());
            check_bytes(p[i], COPY_SIZE);
        }
    for (unsigned i = 0; i < BUFFERS; i++) {
        NEED(d.cuMemsetD32_v2(p[i], 0x04030201, COPY_SIZE / 4));
        NEED(d.cuMemcpyDtoH_v2(copy_host, p[i], COPY_SIZE));
        for (unsigned n = 0; n < COPY_SIZE; n++)
            if (copy_host[n] != n % 4 + 1)
                wrong("a buffer was not set", COPY_SIZE);
        NEED(d.cuMemFree_v2(p[i]));
    }
}

static size_t available(void)
{
    size_t now, all;
    NEED(d.cuMemGetInfo_v2(&now, &all));
    if (now > all)
        wrong("more is free than there is", now);
    return now;
}

static void info(void)
{
    size_t size = 256 << 20, slack = 8 << 20, start = available();
    CUdeviceptr p;
    NEED(d.cuMemAlloc_v2(&p, size));
    size_t taken = start - available();
    if (taken < size || taken > size + slack)
        wrong("an allocation takes something else", taken);
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuCtxSynchronize());
    // Memory in quarantine counts as free, or is released soon.
    for (unsigned i = 0; i < 3000 && available() + slack < start; i++)
        usleep(20000);
    if (available() + slack < start)
        wrong("a free gives nothing back", start - available());
}

static void pressure(void)
{
    size_t start = available();
    CUdeviceptr p;
    for (unsigned i = 0; i < 12; i++) {
        NEED(d.cuMemAlloc_v2(&p, start / 3));
        NEED(d.cuMemsetD8_v2(p, 1, 1 << 20));
        NEED(d.cuMemFree_v2(p));
    }
    for (unsigned i = 0; i < 12; i++) {
        NEED(d.cuMemAllocAsync(&p, start / 3, NULL));
        NEED(d.cuMemFreeAsync(p, NULL));
    }
    NEED(d.cuCtxSynchronize());
    CUmemoryPool own;
    NEED(d.cuDeviceGetDefaultMemPool(&own, 0));
    NEED(d.cuMemPoolTrimTo(own, 0));
    NEED(d.cuMemAlloc_v2(&p, start / 10 * 9));
    NEED(d.cuMemFree_v2(p));
}

static void registered(void)
{
    static unsigned char own[65536];
    NEED(d.cuMemHostRegister_v2(own, sizeof own, 0));
    kernels_fill(&kernels, (uintptr_t)own, sizeof own, NULL);
    NEED(d.cuCtxSynchronize());
    if (own[sizeof own - 1] != (unsigned char)(sizeof own - 1))
        wrong("registered memory was not written", sizeof own);
    NEED(d.cuMemHostUnregister(own));
}

static void graph(void)
{
    CUstream stream;
    CUgraph captured;
    CUgraphExec run;
    CUdeviceptr p;
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    NEED(d.cuMemAllocAsync(&p, 5000, stream));
    kernels_fill(&kernels, p, 5000, stream);
    NEED(d.cuMemFreeAsync(p, stream));
    NEED(d.cuStreamEndCapture(stream, &captured));
    NEED(d.cuGraphInstantiateWithFlags(&run, captured, 0));
    for (unsigned i = 0; i < 20; i++)
        NEED(d.cuGraphLaunch(run, stream));
    NEED(d.cuStreamSynchronize(stream));
    NEED(d.cuGraphExecDestroy(run));
    NEED(d.cuGraphDestroy(captured));
    NEED(d.cuStreamDestroy_v2(stream));
}

static void graph_pressure(void)
{
    size_t start = available();
    CUdeviceptr most, p;
    CUgraph made;
    CUgraphExec run;
    CUgraphNode node, last;
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                         .bytesize = start / 4 - start / 32};
    NEED(d.cuMemAlloc_v2(&most, start / 4 * 3));
    NEED(d.cuMemAlloc_v2(&p, start / 17));
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuGraphCreate(&made, 0));
    NEED(d.cuGraphAddMemAllocNode(&node, made, NULL, 0, &memory));
    NEED(d.cuGraphAddMemFreeNode(&last, made, &node, 1, memory.dptr));
    NEED(d.cuGraphInstantiateWithFlags(&run, made, 0));
    NEED(d.cuGraphLaunch(run, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuGraphExecDestroy(run));
    NEED(d.cuGraphDestroy(made));
    NEED(d.cuDeviceGraphMemTrim(0));
    NEED(d.cuMemFree_v2(most));
}

static void await(void *flag)
{
    // Relaxed: no other data depends on it.
    while (!atomic_load_explicit((_Atomic(bool) *)flag, memory_order_relaxed))
        usleep(1000);
}

static void captured(void)
{
    static _Atomic(bool) flag;
    CUstream stream, other;
    CUgraph made;
    CUdeviceptr p;
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    NEED(d.cuMemAllocAsync(&p, 5000, other));
    NEED(d.cuLaunchHostFunc(other, await, &flag));
    NEED(d.cuMemFreeAsync(p, other));
    NEED(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    usleep(100000);
    NEED(d.cuStreamEndCapture(stream, &made));
    atomic_store_explicit(&flag, true, memory_order_relaxed);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuGraphDestroy(made));
    NEED(d.cuStreamDestroy_v2(stream));
    NEED(d.cuStreamDestroy_v2(other));
}

static void shared_device(void)
{
    CUcontext first, second;
    CUdeviceptr p;
    NEED(d.cuCtxCreate_v2(&first, 0, 0));
    NEED(d.cuCtxCreate_v2(&second, 0, 0));
    size_t start = available();
    NEED(d.cuCtxSetCurrent(first));
    NEED(d.cuMemAlloc_v2(&p, start / 17));
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuCtxSetCurrent(second));
    NEED(d.cuMemAlloc_v2(&p, start - start / 25));
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuCtxDestroy_v2(second));
    NEED(d.cuCtxDestroy_v2(first));
}

static void *make_and_end(void *unused)
{
    enum { LARGE = 5000000, ROUNDS = 100 };
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t size = i % 4 ? LARGE : 1000;
        CUcontext own;
        CUdeviceptr p;
        unsigned char last = 0;
        NEED(d.cuCtxCreate_v2(&own, 0, 0));
        NEED(d.cuMemAlloc_v2(&p, size));
        NEED(d.cuMemsetD8_v2(p, 7, size));
        NEED(d.cuMemcpyDtoH_v2(&last, p + size - 1, 1));
        if (last != 7)
            wrong("a buffer has lost its bytes", size);
        NEED(d.cuMemFree_v2(p));
        NEED(d.cuCtxDestroy_v2(own));
    }
    return NULL;
}

static void contexts(void)
{
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, make_and_end, NULL);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

// A handle as text, for the child's command line.
enum { HANDLE = sizeof(CUipcMemHandle) };

static void ipc_one(size_t size)
{
    CUipcMemHandle handle;
    CUdeviceptr p, keep;
    char text[2 * HANDLE + 1], number[24];
    int status;
    NEED(d.cuMemAlloc_v2(&keep, size));
    NEED(d.cuMemAlloc_v2(&p, size));
    kernels_fill(&kernels, p, size, NULL);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuIpcGetMemHandle(&handle, p));
    for (unsigned i = 0; i < HANDLE; i++)
        snprintf(text + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
    snprintf(number, sizeof number, "%zu", size);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        execl(self, self, "import", text, number, (char *)NULL);
        _exit(3);
    }
    if (waitpid(child, &status, 0) != child || status)
        wrong("the importer is not content", size);
    unsigned char first;
    NEED(d.cuMemcpyDtoH_v2(&first, p, 1));
    if (first != 77)
        wrong("what the importer wrote is not there", size);
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuMemFree_v2(keep));
}

static void import(const char *text, size_t size)
{
    CUipcMemHandle handle;
    CUdeviceptr p;
    for (unsigned i = 0; i < HANDLE; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    NEED(d.cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    check_bytes(p, size);
    // All of it is still queued when the memory is closed, which waits for it.
    for (unsigned i = 0; i < 20; i++)
        kernels_fill(&kernels, p, size, NULL);
    NEED(d.cuMemsetD8_v2(p, 77, 1));
    NEED(d.cuIpcCloseMemHandle(p));
}

static void ipc(void)
{
    ipc_one(1000);
    ipc_one(1001);
    ipc_one(3000000);
    ipc_one(2 << 20);
}

static void memory(unsigned count, size_t size)
{
    CUdeviceptr p;
    NEED(d.cuMemAlloc_v2(&p, size));
    size_t start = available();
    for (unsigned i = 0; i < count; i++)
        NEED(d.cuMemAlloc_v2(&p, size));
    printf("taken %zu asked %zu\n", start - available(), count * size);
}

static void begin(void)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    char why[300];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        exit(77);
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuMemPoolCreate(&pool, &properties));
    kernels_load(&kernels);
}

// What a program reads before it has written: zeros, as a driver's fresh memory has them.
static void fresh(void)
{
    enum { COUNT = 400, MOST = 6000 };
    static unsigned char bytes[MOST];
    for (unsigned i = 0; i < COUNT; i++) {
        size_t size = i % 4 ? 1 + i * 37 % 460 : 1 + i * 4099 % MOST;
        CUdeviceptr p;
        NEED(d.cuMemAlloc_v2(&p, size));
        NEED(d.cuMemcpyDtoH_v2(bytes, p, size));
        for (size_t k = 0; k < size; k++)
            if (bytes[k]) {
                printf("byte %zu of fresh buffer %u, of %zu bytes, is 0x%02x\n", k, i, size, bytes[k]);
                exit(2);
            }
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } rows[] = {{"answers", answers},
                {"whole", whole},
                {"copies", copies},
                {"fresh", fresh},
                {"info", info},
                {"pressure", pressure},
                {"registered", registered},
                {"graph", graph},
                {"contexts", contexts},
                {"captured", captured},
                {"graph_pressure", graph_pressure},
                {"shared_device", shared_device}};
    if (argc < 2)
        return 2;
    self = argv[0];
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(argv[1], rows[i].name) == 0) {
            rows[i].run();
            return 0;
        }
    if (strcmp(argv[1], "ipc") == 0)
        ipc();
    else if (strcmp(argv[1], "import") == 0 && argc == 4)
        import(argv[2], strtoul(argv[3], NULL, 0));
    else if (strcmp(argv[1], "memory") == 0 && argc == 4)
        memory((unsigned)atoi(argv[2]), strtoul(argv[3], NULL, 0));
    else
        return 2;
    return 0;
}
