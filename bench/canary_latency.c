// SPDX-License-Identifier: MIT
// How long it takes from a write behind a buffer to its report, on a busy device, under `moat --mode=canary
// --log-file=LOG`:
//   canary_latency LIVE ROUNDS LOG [BLOCKS]
// LIVE buffers; one kernel keeps all multiprocessors busy (BLOCKS blocks; 0 or not given: as many as are
// resident at once), and its first thread writes where the host requests, a byte behind another buffer in
// each round. It signals that in host memory; from then on the clock runs until LOG has one more error.
// Prints a line for each round: "round N MILLISECONDS", with "lost" where no report came.
//
// Equal errors are reported once, so each buffer that is written behind is allocated by another path of
// calls.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum {
    PATHS = 10,
    WARM = 5,
    SIZE = 1000,
    PATIENCE = 5
};  // bits of a path; rounds that do not count; seconds

static struct driver d;

// Milliseconds.
static double now(void)
{
    return 1e3 * bench_now();
}
static bool patient;  // the device shares the host's cores: leave it some time

static const char text[] =
    ".version 6.3\n"
    ".target sm_70\n"
    ".address_size 64\n"
    // post: u64 where to write, u32 number of the round, u32 unused; the answer is a copy of the number.
    // Number ~0: end.
    ".visible .entry obey(.param .u64 post, .param .u64 answer, .param .u64 over)\n"
    "{\n"
    "    .reg .u64 %post, %answer, %over, %p;\n"
    "    .reg .u32 %last, %now, %v, %w;\n"
    "    .reg .f32 %f;\n"
    "    .reg .pred %q;\n"
    "    ld.param.u64 %post, [post];\n"
    "    ld.param.u64 %answer, [answer];\n"
    "    ld.param.u64 %over, [over];\n"
    "    mov.u32 %v, %ctaid.x;\n"
    "    mov.u32 %w, %tid.x;\n"
    "    or.b32 %v, %v, %w;\n"
    "    setp.ne.u32 %q, %v, 0;\n"
    "    mov.f32 %f, 0f3f800000;\n"
    "    @%q bra busy;\n"
    "    mov.u32 %last, 0;\n"
    "wait:\n"
    "    nanosleep.u32 200;\n"
    "    ld.volatile.u32 %now, [%post+8];\n"
    "    setp.eq.u32 %q, %now, %last;\n"
    "    @%q bra wait;\n"
    "    mov.u32 %last, %now;\n"
    "    setp.eq.u32 %q, %now, 0xffffffff;\n"
    "    @%q bra end;\n"
    "    membar.sys;\n"
    "    ld.volatile.u64 %p, [%post];\n"
    "    ld.volatile.u8 %v, [%p];\n"
    "    xor.b32 %v, %v, 255;\n"
    "    st.volatile.u8 [%p], %v;\n"
    "    membar.sys;\n"
    "    st.volatile.u32 [%answer], %now;\n"
    "    bra wait;\n"
    "end:\n"
    "    st.volatile.u32 [%over], 1;\n"
    "    ret;\n"
    // The others compute, and check a word of device memory now and then.
    "busy:\n"
    "    mov.u32 %w, 0;\n"
    "turn:\n"
    "    fma.rn.f32 %f, %f, 0f3f800001, 0f34000000;\n"
    "    add.u32 %w, %w, 1;\n"
    "    setp.lt.u32 %q, %w, 4096;\n"
    "    @%q bra turn;\n"
    "    ld.volatile.u32 %v, [%over];\n"
    "    setp.eq.u32 %q, %v, 0;\n"
    "    @%q bra busy;\n"
    "    setp.ne.f32 %q, %f, 0f00000000;\n"
    "    @%q ret;\n"
    "    st.volatile.u32 [%over], 2;\n"
    "    ret;\n"
    "}\n";

struct post {
    _Atomic uint64_t where;
    _Atomic uint32_t number;
};

// Calls itself from two places, one for each bit, so that the calls leave a stack of their own. The compiler
// must not see that they are the same call.
static void __attribute__((noinline)) take(unsigned path, unsigned bits, CUdeviceptr *p)
{
    if (!bits) {
        NEED(d.cuMemAlloc_v2(p, SIZE));
    } else if (path & 1) {
        __asm__ volatile("# one");
        take(path >> 1, bits - 1, p);
        __asm__ volatile("# one");
    } else {
        __asm__ volatile("# nought");
        take(path >> 1, bits - 1, p);
        __asm__ volatile("# nought");
    }
}

// Counts the errors that were added to the log.
struct log {
    int file;
    off_t read;
    char tail[64];  // the end of what was read: a word may be split
    size_t kept;
};

static unsigned new_errors(struct log *l)
{
    static const char word[] = "ERROR: moat";
    char buffer[sizeof l->tail + 65536];
    struct stat s;
    unsigned found = 0;
    // A read might make the writer wait.
    if (fstat(l->file, &s) || s.st_size == l->read)
        return 0;
    memcpy(buffer, l->tail, l->kept);
    ssize_t n = read(l->file, buffer + l->kept, 65536);
    if (n <= 0)
        return 0;
    l->read += n;
    size_t size = l->kept + (size_t)n;
    char *at = buffer;
    while ((at = memmem(at, size - (size_t)(at - buffer), word, sizeof word - 1)))
        found++, at += sizeof word - 1;
    l->kept = size < sizeof word - 2 ? size : sizeof word - 2;
    memcpy(l->tail, buffer + size - l->kept, l->kept);
    return found;
}

static double one_round(struct post *post, _Atomic uint32_t *answer, struct log *log, uint32_t number,
                        CUdeviceptr where)
{
    // Not in step with the monitor.
    usleep(1000 + (unsigned)rand() % 4000);
    while (new_errors(log))
        ;
    atomic_store_explicit(&post->where, where, memory_order_relaxed);
    // Release: pairs with the kernel's membar.sys; a kernel that sees the number sees the address.
    atomic_store_explicit(&post->number, number, memory_order_release);
    double start = now();
    // Acquire: pairs with the kernel's membar.sys before the answer.
    while (atomic_load_explicit(answer, memory_order_acquire) != number) {
        if (now() - start > PATIENCE * 1e3) {
            fprintf(stderr, "canary_latency: the kernel does not answer\n");
            exit(2);
        }
        if (patient)
            usleep(20);
    }
    start = now();
    while (!new_errors(log)) {
        if (now() - start > PATIENCE * 1e3)
            return -1;
        if (patient)
            usleep(20);
    }
    return now() - start;
}

static void start_kernel(struct post *post, _Atomic uint32_t *answer, CUdeviceptr over, unsigned blocks)
{
    CUmodule module;
    CUfunction obey;
    CUstream stream;
    int multiprocessors, each = 1;
    unsigned threads = blocks ? 1 : 1024;
    void *arguments[] = {&post, &answer, &over};
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&obey, module, "obey"));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (!blocks) {
        NEED(d.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
        NEED(d.cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, obey, (int)threads, 0));
        blocks = (unsigned)(multiprocessors * each);
    }
    NEED(d.cuLaunchKernel(obey, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
}

static void rounds(unsigned live, unsigned count, struct log *log, unsigned blocks)
{
    CUdeviceptr *target = calloc(count, sizeof *target), over, other;
    void *words;
    NEED(d.cuMemHostAlloc(&words, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(words, 0, 4096);
    struct post *post = words;
    _Atomic uint32_t *answer = (_Atomic uint32_t *)((char *)words + 256);
    NEED(d.cuMemAlloc_v2(&over, 4));
    NEED(d.cuMemsetD8_v2(over, 0, 4));
    for (unsigned i = 0, next = 0; i < live; i++) {
        if (next < count && i == (unsigned)((uint64_t)next * live / count))
            take(next, PATHS, &target[next]), next++;
        else
            NEED(d.cuMemAlloc_v2(&other, SIZE));
    }
    patient = blocks;
    start_kernel(post, answer, over, blocks);
    for (unsigned i = 0; i < count; i++) {
        double took = one_round(post, answer, log, i + 1, target[i] + SIZE);
        if (i < WARM)
            continue;
        if (took < 0)
            printf("round %u lost\n", i);
        else
            printf("round %u %.4f\n", i, took);
    }
    // Release: only the kernel's end follows.
    atomic_store_explicit(&post->number, UINT32_MAX, memory_order_release);
    NEED(d.cuCtxSynchronize());
    free(target);
}

int main(int argc, char **argv)
{
    char why[300];
    CUcontext context;
    if (argc != 4 && argc != 5)
        return 2;
    unsigned live = (unsigned)atoi(argv[1]), count = (unsigned)atoi(argv[2]) + WARM;
    if (count > live || count > 1u << PATHS) {
        fprintf(stderr, "canary_latency: %u rounds want as many buffers, and at most %u\n", count,
                1u << PATHS);
        return 2;
    }
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "no driver: %s\n", why);
        return 2;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    setvbuf(stdout, NULL, _IOLBF, 0);  // results so far are printed even if the process is killed
    struct log log = {.file = open(argv[3], O_RDONLY | O_CREAT | O_CLOEXEC, 0644)};
    if (log.file < 0) {
        perror(argv[3]);
        return 2;
    }
    rounds(live, count, &log, argc == 5 ? (unsigned)atoi(argv[4]) : 0);
    return 0;
}
