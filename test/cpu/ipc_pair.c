// SPDX-License-Identifier: MIT
// Two processes share memory, events, physical memory and pools. The first starts the second before it uses
// the driver, and they communicate through a socket. Status 0, or 1 after printing what was wrong.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_check.h"

enum { LAZY = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, TURNS = 50, UNIT = 2 << 20 };
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static int line;  // to the other process
static bool first;

// --- speaking ---------------------------------------------------------------------------------------------

static void say(const void *bytes, size_t size)
{
    check_need(write(line, bytes, size) == (ssize_t)size);
}

static void hear(void *bytes, size_t size)
{
    for (size_t n = 0; n < size;) {
        ssize_t more = read(line, (char *)bytes + n, size - n);
        check_need(more > 0);
        n += (size_t)more;
    }
}

// Both processes arrive here before either continues.
static void meet(void)
{
    char c = 0;
    say(&c, 1);
    hear(&c, 1);
}

static void say_fd(int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    char c = 0;
    struct iovec part = {&c, 1};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof fd);
    check_need(sendmsg(line, &m, 0) == 1);
}

static int hear_fd(void)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    char c;
    int fd = -1;
    struct iovec part = {&c, 1};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    check_need(recvmsg(line, &m, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&m));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static bool all_are(CUdeviceptr p, size_t size, unsigned char c)
{
    unsigned char *bytes = malloc(size);
    TRY(cuMemcpyDtoH_v2(bytes, p, size));
    size_t n = 0;
    while (n < size && bytes[n] == c)
        n++;
    free(bytes);
    return n == size;
}

// --- memory -----------------------------------------------------------------------------------------------

static const size_t sizes[] = {100, 100, 4096, (3 << 20) + 17};
enum { BUFFERS = sizeof sizes / sizeof *sizes };

static void memory_first(void)
{
    CUdeviceptr p[BUFFERS], q;
    CUipcMemHandle handle[BUFFERS], again;
    for (unsigned i = 0; i < BUFFERS; i++) {
        TRY(cuMemAlloc_v2(&p[i], sizes[i]));
        TRY(cuMemsetD8_v2(p[i], (unsigned char)(10 + i), sizes[i]));
        TRY(cuIpcGetMemHandle(&handle[i], p[i]));
        TRY(cuIpcGetMemHandle(&again, p[i] + 50));
        CHECK(memcmp(&again, &handle[i], sizeof again) == 0);
        CHECK(all_are(p[i], sizes[i], (unsigned char)(10 + i)));
        EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&q, handle[i], LAZY));
        say(&handle[i], sizeof handle[i]);
    }
    CHECK(memcmp(&handle[0], &handle[1], sizeof again) != 0);
    meet();
    for (unsigned i = 0; i < BUFFERS; i++)
        CHECK(all_are(p[i], sizes[i], (unsigned char)(20 + i)));
    // The second takes the place of the first, and the third that of the large one.
    TRY(cuMemFree_v2(p[0]));
    TRY(cuMemFree_v2(p[3]));
    TRY(cuMemAlloc_v2(&p[3], sizes[3]));
    CHECK(all_are(p[1], sizes[1], 21));
    TRY(cuMemsetD8_v2(p[3], 99, sizes[3]));
    meet();
    meet();
    CHECK(all_are(p[1], sizes[1], 31) && all_are(p[3], sizes[3], 99));
    for (unsigned i = 1; i < BUFFERS; i++)
        TRY(cuMemFree_v2(p[i]));
}

static void memory_second(void)
{
    CUdeviceptr p[BUFFERS], again, base;
    CUipcMemHandle handle[BUFFERS], other;
    size_t size, before, after;
    int value = -1;
    TRY(cuMemGetInfo_v2(&before, NULL));
    for (unsigned i = 0; i < BUFFERS; i++) {
        hear(&handle[i], sizeof handle[i]);
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&p[i], handle[i], 0));
        TRY(cuIpcOpenMemHandle_v2(&p[i], handle[i], LAZY));
        TRY(cuIpcOpenMemHandle_v2(&again, handle[i], LAZY));
        EQUAL(again, p[i]);
        TRY(cuMemGetAddressRange_v2(&base, &size, p[i] + 1));
        EQUAL(base, p[i]);
        EQUAL(size, sizes[i]);
        TRY(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p[i]));
        EQUAL(value, CU_MEMORYTYPE_DEVICE);
        CHECK(all_are(p[i], sizes[i], (unsigned char)(10 + i)));
        TRY(cuMemsetD8_v2(p[i], (unsigned char)(20 + i), sizes[i]));
        // The pointer is no allocation of this process, and its memory ends where the other's does.
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p[i]));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&other, p[0]));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(p[i], 0, sizes[i] + 1));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p[i] + 1));
        TRY(cuIpcCloseMemHandle(p[i]));
        CHECK(all_are(p[i], sizes[i], (unsigned char)(20 + i)));
    }
    TRY(cuMemGetInfo_v2(&after, NULL));
    CHECK(before == after);
    TRY(cuCtxSynchronize());
    meet();
    meet();
    // What was opened stays valid; what was freed cannot be opened again, whatever lies there now.
    CHECK(all_are(p[3], sizes[3], 23) && all_are(p[0], sizes[0], 20));
    for (unsigned i = 0; i < BUFFERS; i += 3) {
        TRY(cuIpcCloseMemHandle(p[i]));
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&again, handle[i], LAZY));
    }
    TRY(cuMemsetD8_v2(p[1], 31, sizes[1]));
    TRY(cuCtxSynchronize());
    for (unsigned i = 1; i < 3; i++)
        TRY(cuIpcCloseMemHandle(p[i]));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p[1]));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(p[1], 0, 1));
    meet();
}

static void odd_memory(void)
{
    CUipcMemHandle handle;
    CUdeviceptr p;
    void *host;
    memset(&handle, 77, sizeof handle);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&p, handle, LAZY));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, 12345));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(12345));
    TRY(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, p));
    TRY(cuMemFree_v2(p));
    TRY(cuMemHostAlloc(&host, 100, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, (uintptr_t)host));
    TRY(cuMemFreeHost(host));
}

// --- kernels that talk, while memory becomes shared -------------------------------------------------------

static void talk(CUmodule module)
{
    CUfunction ping = check_function(module, "ping");
    CUipcMemHandle handle;
    CUdeviceptr flag;
    CUstream s;
    unsigned side = first, turns = TURNS, value = 0;
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    if (first) {
        flag = check_zeroed(4);
        TRY(cuCtxSynchronize());
        TRY(LAUNCH(ping, 1, 1, 0, s, &flag, &side, &turns));
        EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
        TRY(cuIpcGetMemHandle(&handle, flag));
        say(&handle, sizeof handle);
    } else {
        hear(&handle, sizeof handle);
        TRY(cuIpcOpenMemHandle_v2(&flag, handle, LAZY));
        TRY(LAUNCH(ping, 1, 1, 0, s, &flag, &side, &turns));
    }
    TRY(cuStreamSynchronize(s));
    meet();
    TRY(cuMemcpyDtoH_v2(&value, flag, 4));
    EQUAL(value, 2 * TURNS);
    TRY(cuStreamDestroy_v2(s));
    TRY(first ? cuMemFree_v2(flag) : cuIpcCloseMemHandle(flag));
    meet();
}

// p[256 * i] += 1, turns times
static const char count_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry count(.param .u64 p, .param .u32 turns)\n"
    "{\n.reg .pred %q;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [turns];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "mul.wide.u32 %d2, %r5, 1024;\nadd.u64 %d3, %d1, %d2;\n"
    "again:\nld.volatile.global.u32 %r6, [%d3];\nadd.u32 %r6, %r6, 1;\nst.volatile.global.u32 [%d3], %r6;\n"
    "sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %q, %r1, 0;\n@%q bra again;\nret;\n}\n";

static atomic_bool stop;
static CUcontext our_context;

// Copies that the host makes itself: it must find all that it wrote.
static void *copy_on(void *arg)
{
    CUdeviceptr p = *(CUdeviceptr *)arg;
    CUstream s;
    unsigned back = 0, lost = 0;
    TRY(cuCtxSetCurrent(our_context));
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned n = 1; !atomic_load(&stop); n++) {
        TRY(cuMemcpyHtoDAsync_v2(p, &n, sizeof n, s));
        TRY(cuMemcpyDtoHAsync_v2(&back, p, sizeof back, s));
        lost += back != n;
    }
    EQUAL(lost, 0);
    TRY(cuStreamDestroy_v2(s));
    return NULL;
}

// A kernel and a thread write into memory while it becomes shared: no write is lost.
static void move_under_load(void)
{
    enum { BLOCKS = 15, THREADS = 128, STRIDE = 1024, TURNS_EACH = 4000 };
    static unsigned char bytes[BLOCKS * THREADS * STRIDE];
    CUmodule module;
    CUipcMemHandle handle;
    CUstream s;
    pthread_t thread;
    unsigned turns = TURNS_EACH, wrong = 0, value;
    TRY(cuModuleLoadData(&module, count_ptx));
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = check_zeroed(sizeof bytes), beside = check_zeroed(100);
    TRY(cuCtxSynchronize());
    atomic_store(&stop, false);
    check_need(!pthread_create(&thread, NULL, copy_on, &beside));
    TRY(LAUNCH(check_function(module, "count"), BLOCKS, THREADS, 0, s, &p, &turns));
    usleep(2000);
    TRY(cuIpcGetMemHandle(&handle, beside));
    TRY(cuStreamSynchronize(s));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    TRY(cuMemcpyDtoH_v2(bytes, p, sizeof bytes));
    for (unsigned i = 0; i < BLOCKS * THREADS; i++) {
        memcpy(&value, bytes + i * STRIDE, sizeof value);
        wrong += value != TURNS_EACH;
    }
    EQUAL(wrong, 0);
    TRY(cuMemFree_v2(p));
    TRY(cuMemFree_v2(beside));
    TRY(cuStreamDestroy_v2(s));
    TRY(cuModuleUnload(module));
}

// --- events -----------------------------------------------------------------------------------------------

static void events_first(CUmodule module)
{
    CUfunction ping = check_function(module, "ping");
    CUevent e, plain;
    CUipcEventHandle handle;
    CUipcMemHandle memory;
    CUstream s;
    unsigned *flag, side = 1, turns = 1;
    CUdeviceptr p = check_zeroed(4);
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    TRY(cuMemHostAlloc((void **)&flag, 4, 0));
    *flag = 0;
    TRY(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, CU_EVENT_INTERPROCESS));
    TRY(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    TRY(cuIpcGetEventHandle(&handle, e));
    TRY(cuIpcGetMemHandle(&memory, p));
    say(&handle, sizeof handle);
    say(&memory, sizeof memory);
    meet();  // the other has opened it, and found it never recorded
    TRY(LAUNCH(ping, 1, 1, 0, s, &flag, &side, &turns));
    TRY(cuMemsetD32Async(p, 1234, 1, s));
    TRY(cuEventRecord(e, s));
    EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    meet();
    meet();  // the other waits now
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    TRY(cuEventSynchronize(e));
    TRY(cuEventQuery(e));
    meet();
    meet();  // the other has recorded it, behind work that waits for us
    EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    TRY(cuStreamWaitEvent(s, e, 0));
    TRY(cuMemcpyDtoHAsync_v2(flag, p, 4, s));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    meet();
    TRY(cuStreamSynchronize(s));
    EQUAL(*flag, 4321);
    meet();
    TRY(cuEventDestroy_v2(e));
    TRY(cuEventDestroy_v2(plain));
    meet();
    TRY(cuMemFreeHost(flag));
    TRY(cuStreamDestroy_v2(s));
    TRY(cuMemFree_v2(p));
}

static void events_second(CUmodule module)
{
    CUfunction ping = check_function(module, "ping");
    CUevent e, again;
    CUipcEventHandle handle;
    CUipcMemHandle memory;
    CUstream s;
    CUdeviceptr p;
    unsigned *flag, *out, side = 1, turns = 1;
    float ms;
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    TRY(cuMemHostAlloc((void **)&flag, 8, 0));
    out = flag + 1;
    *flag = *out = 0;
    hear(&handle, sizeof handle);
    hear(&memory, sizeof memory);
    TRY(cuIpcOpenMemHandle_v2(&p, memory, LAZY));
    TRY(cuIpcOpenEventHandle(&e, handle));
    TRY(cuIpcOpenEventHandle(&again, handle));
    TRY(cuEventQuery(e));
    TRY(cuEventSynchronize(e));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&ms, e, e));
    meet();
    meet();
    EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(again));
    TRY(cuStreamWaitEvent(s, e, 0));
    TRY(cuMemcpyDtoHAsync_v2(out, p, 4, s));
    EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    meet();
    TRY(cuStreamSynchronize(s));
    EQUAL(*out, 1234);
    TRY(cuEventSynchronize(again));
    TRY(cuEventQuery(e));
    meet();
    TRY(LAUNCH(ping, 1, 1, 0, s, &flag, &side, &turns));
    TRY(cuMemsetD32Async(p, 4321, 1, s));
    TRY(cuEventRecord(e, s));
    meet();
    meet();
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    TRY(cuEventSynchronize(again));
    meet();
    TRY(cuEventDestroy_v2(e));
    meet();
    TRY(cuEventQuery(again));
    TRY(cuEventDestroy_v2(again));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&e, handle));
    TRY(cuIpcCloseMemHandle(p));
    TRY(cuMemFreeHost(flag));
    TRY(cuStreamDestroy_v2(s));
}

// --- physical memory --------------------------------------------------------------------------------------

static CUdeviceptr map(CUmemGenericAllocationHandle physical, size_t size)
{
    CUdeviceptr p;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    TRY(cuMemAddressReserve(&p, size, 0, 0, 0));
    TRY(cuMemMap(p, size, 0, physical, 0));
    TRY(cuMemSetAccess(p, size, &access, 1));
    return p;
}

static void physical(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                .requestedHandleTypes = FD};
    CUmemAllocationProp have;
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    size_t size = 2 * UNIT;
    int fd;
    if (first) {
        TRY(cuMemCreate(&h, size, &prop, 0));
        TRY(cuMemExportToShareableHandle(&fd, h, FD, 0));
        p = map(h, size);
        TRY(cuMemsetD8_v2(p, 7, size));
        TRY(cuCtxSynchronize());
        say_fd(fd);
        close(fd);
        meet();
        CHECK(all_are(p, size, 8));
    } else {
        fd = hear_fd();
        TRY(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, FD));
        close(fd);
        TRY(cuMemGetAllocationPropertiesFromHandle(&have, h));
        EQUAL(have.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
        EQUAL(have.location.id, 0);
        p = map(h, size);
        CHECK(all_are(p, size, 7));
        TRY(cuMemsetD8_v2(p, 8, size));
        TRY(cuCtxSynchronize());
        meet();
        EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)line, FD));
    }
    TRY(cuMemUnmap(p, size));
    TRY(cuMemAddressFree(p, size));
    TRY(cuMemRelease(h));
    meet();
}

// --- pools ------------------------------------------------------------------------------------------------

static void pools_first(CUstream s)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            .handleTypes = FD};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool, standard;
    CUdeviceptr p[2], q;
    int fd;
    TRY(cuDeviceGetDefaultMemPool(&standard, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, standard, FD, 0));
    TRY(cuMemPoolCreate(&pool, &props));
    TRY(cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
    say_fd(fd);
    close(fd);
    for (int i = 0; i < 2; i++) {
        TRY(cuMemAllocFromPoolAsync(&p[i], i ? 40 << 20 : 1000, pool, s));
        TRY(cuMemsetD8Async(p[i] + (i ? 256 : 0), (unsigned char)(40 + i), 1000, s));
        TRY(cuStreamSynchronize(s));
        TRY(cuMemPoolExportPointer(&data, p[i] + (i ? 256 : 0)));
        say(&data, sizeof data);
    }
    TRY(cuMemAllocAsync(&q, 100, s));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, q));
    TRY(cuMemFreeAsync(q, s));
    meet();
    for (int i = 0; i < 2; i++) {
        CHECK(all_are(p[i] + (i ? 256 : 0), 1000, (unsigned char)(50 + i)));
        TRY(cuMemFreeAsync(p[i], s));
    }
    TRY(cuMemPoolDestroy(pool));
}

static void pools_second(CUstream s)
{
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr p[2], q;
    size_t size;
    int fd = hear_fd();
    TRY(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD, 0));
    close(fd);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&q, 1000, pool, s));
    for (int i = 0; i < 2; i++) {
        hear(&data, sizeof data);
        TRY(cuMemPoolImportPointer(&p[i], pool, &data));
        TRY(cuMemGetAddressRange_v2(&q, &size, p[i]));
        EQUAL(q, p[i]);
        EQUAL(size, i ? (40 << 20) - 256 : 1000);
        CHECK(all_are(p[i], 1000, (unsigned char)(40 + i)));
        TRY(cuMemsetD8_v2(p[i], (unsigned char)(50 + i), 1000));
    }
    memset(&data, 1, sizeof data);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&q, pool, &data));
    TRY(cuMemFreeAsync(p[0], s));
    TRY(cuStreamSynchronize(s));
    TRY(cuMemFree_v2(p[1]));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(p[1], 0, 1));
    TRY(cuMemPoolDestroy(pool));
    meet();
}

// --- both -------------------------------------------------------------------------------------------------

static int both(void)
{
    CUcontext context = our_context = check_context();
    CUmodule module = check_module("talk.ptx");
    CUstream s;
    TRY(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    odd_memory();
    first ? memory_first() : memory_second();
    talk(module);
    for (int i = 0; i < 4; i++)
        move_under_load();
    first ? events_first(module) : events_second(module);
    physical();
    first ? pools_first(s) : pools_second(s);
    meet();
    TRY(cuStreamDestroy_v2(s));
    TRY(cuModuleUnload(module));
    TRY(cuCtxDestroy_v2(context));
    return check_end(first ? "ipc_pair, first" : "ipc_pair, second");
}

int main(int argc, char **argv)
{
    int ends[2], status = 0;
    char number[16];
    alarm(250);
    if (argc == 2) {
        line = atoi(argv[1]);
        return both();
    }
    check_need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    snprintf(number, sizeof number, "%d", ends[1]);
    pid_t child = fork();
    if (!child) {
        close(ends[0]);
        execl("/proc/self/exe", argv[0], number, (char *)NULL);
        _exit(3);
    }
    close(ends[1]);
    line = ends[0];
    first = true;
    int wrong = both();
    check_need(waitpid(child, &status, 0) == child);
    return wrong || !WIFEXITED(status) || WEXITSTATUS(status);
}
