// SPDX-License-Identifier: MIT
// Programs that allocate inside kernels, timed.
//   kheap_load cuda|ours KERNELS.ptx HEAP_MIB RUNS ARRAYS PROGRAM:THREADS...
// KERNELS.ptx: compiled from bench/kheap_kernels.cu. cuda: malloc is the driver's, or that of a library in
// front of it, such as moat. ours: the heap of src/kheap, put into the module here, with a scan every
// millisecond by a thread of this program. For each run it prints "PROGRAM THREADS MILLISECONDS", by events
// on the device; for ours also "scan LIVE MILLISECONDS", for a scan alone. Exits with 1 if a program found an
// error, or, in the program "latency", if an overflow was not found.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/driver.h"
#include "kheap/kheap.h"

enum { BLOCK = 256, STEPS = 8, MONITOR_US = 1000, LATENCY_TURNS = 20 };

struct step {
    const char *kernel;
    unsigned argument;
};

// The kernel that is measured, then the one that cleans up.
struct program {
    const char *name;
    struct step steps[STEPS], after[2];
};

static const struct program programs[] = {
    {"alloc-dealloc", {{"alloc_dealloc", 16}}, {{0}}},
    {"alloc-cycle-dealloc",
     {{"alloc_only", 16}, {"cycle", 64}, {"cycle", 24}, {"cycle", 100}, {"dealloc_only", 0}},
     {{0}}},
    {"grid-point", {{"grid_point", 0}, {"grid_free", 0}}, {{0}}},
    {"add-string", {{"string_make", 0}, {"string_add", 1}, {"string_free", 0}}, {{0}}},
    {"random-graph", {{"random_graph", 0}}, {{0}}},
    {"malloc-16", {{"alloc_only", 16}}, {{"dealloc_only", 0}}},
    {"malloc-256", {{"alloc_only", 256}}, {{"dealloc_only", 0}}},
    {"pairs-4096", {{"alloc_dealloc", 4096}}, {{0}}},
    {"stress",
     {{"stress", 1},
      {"stress", 2},
      {"stress", 3},
      {"stress", 4},
      {"stress", 5},
      {"stress", 6},
      {"stress", 7}},
     {{"stress_end", 0}}},
    {"zero-size", {{"zero_size", 0}}, {{0}}},
    {"exhaust", {{"alloc_only", 1000}}, {{"dealloc_only", 0}}},
};

static struct driver d;
static CUmodule module;
static CUstream stream, scan_stream;
static CUdeviceptr table, wrong, base;
static CUfunction scan;
static struct error_ring *ring;
static atomic_bool stop;

static void try(CUresult r, const char *call)
{
    if (!r)
        return;
    fprintf(stderr, "kheap_load: %s: error %d\n", call, r);
    exit(1);
}
#define TRY(call) try((call), #call)

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// --- the module -------------------------------------------------------------------------------------------

static char *read_file(const char *name)
{
    FILE *f = fopen(name, "r");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || !fread(text, 1, (1 << 20) - 1, f)) {
        fprintf(stderr, "kheap_load: cannot read %s\n", name);
        exit(1);
    }
    fclose(f);
    return text;
}

static int is_word(char c)
{
    return c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Removes the declarations of malloc and free, renames calls, and puts the functions behind .address_size. As
// in the pass, kernels get no more registers than large blocks leave them.
static char *redirect(char *text)
{
    for (char *p = text; (p = strstr(p, ".extern .func"));)
        for (bool more = true; more && *p; p++) {
            more = *p != ';';
            *p = ' ';
        }
    size_t room = strlen(text) * 2 + strlen(kheap_functions_ptx) + 1000, n = 0;
    char *out = calloc(1, room);
    const char *head = strchr(strstr(text, ".address_size"), '\n') + 1, *p = text;
    bool entry = false;
    if (!out)
        exit(1);
    while (*p) {
        if (p == head)
            n += (size_t)sprintf(out + n, "%s", kheap_functions_ptx);
        entry |= !strncmp(p, ".entry", 6);
        if (entry && *p == '{') {
            n += (size_t)sprintf(out + n, ".maxnreg 64\n");
            entry = false;
        }
        size_t length = !strncmp(p, "malloc", 6) ? 6 : !strncmp(p, "free", 4) ? 4 : 0;
        if (length && !is_word(p[length]) && (p == text || !is_word(p[-1]))) {
            n += (size_t)sprintf(out + n, "%s", length == 6 ? KHEAP_MALLOC : KHEAP_FREE);
            p += length;
        } else {
            out[n++] = *p++;
        }
    }
    return out;
}

static void load(const char *text)
{
    static char log[8192];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUresult r = d.cuModuleLoadDataEx(&module, text, 2, options, values);
    if (r) {
        fprintf(stderr, "kheap_load: %s\n", log);
        try(r, "cuModuleLoadDataEx");
    }
}

static void make_heap(uint64_t limit, uint32_t arrays)
{
    const uint64_t keys[KHEAP_KEYS] = {0x9216d5d98979fb1bu, 0xd1310ba698dfb5acu, 0x2ffd72dbd01adfb7u,
                                       0xb8e1afed6a267e96u};
    struct kheap k;
    CUmodule guard;
    CUdeviceptr where, at;
    size_t bytes;
    if (kheap_plan(&k, limit, arrays, keys))
        exit(1);
    TRY(d.cuMemAlloc_v2(&base, k.bytes));
    TRY(d.cuMemHostAlloc((void **)&ring, kheap_ring_bytes(), CU_MEMHOSTALLOC_DEVICEMAP));
    memset(ring, 0, kheap_ring_bytes());
    TRY(d.cuMemHostGetDevicePointer_v2(&where, ring, 0));
    kheap_place(&k, base, where);
    TRY(d.cuMemsetD8_v2(base, 0, k.clear));
    TRY(d.cuMemcpyHtoD_v2(base, &k, sizeof k));
    TRY(d.cuModuleGetGlobal_v2(&at, &bytes, module, KHEAP_VARIABLE));
    TRY(d.cuMemcpyHtoD_v2(at, &base, sizeof base));
    TRY(d.cuModuleLoadData(&guard, kheap_scan_ptx));
    TRY(d.cuModuleGetFunction(&scan, guard, KHEAP_SCAN));
}

// --- scans ------------------------------------------------------------------------------------------------

static void launch_scan(CUstream s)
{
    unsigned zero = 0;
    void *arguments[] = {&base, &zero};
    TRY(d.cuLaunchKernel(scan, KHEAP_SCAN_BLOCKS, 1, 1, KHEAP_SCAN_THREADS, 1, 1, 0, s, arguments, NULL));
}

static void *monitor(void *context)
{
    TRY(d.cuCtxSetCurrent(context));
    while (!atomic_load(&stop)) {
        struct timespec t = {0, MONITOR_US * 1000};
        launch_scan(scan_stream);
        TRY(d.cuStreamSynchronize(scan_stream));
        nanosleep(&t, NULL);
    }
    return NULL;
}

static double timed(void (*work)(const void *), const void *what)
{
    CUevent from, to;
    float ms;
    TRY(d.cuEventCreate(&from, 0));
    TRY(d.cuEventCreate(&to, 0));
    TRY(d.cuStreamSynchronize(stream));
    TRY(d.cuEventRecord(from, stream));
    work(what);
    TRY(d.cuEventRecord(to, stream));
    TRY(d.cuEventSynchronize(to));
    TRY(d.cuEventElapsedTime_v2(&ms, from, to));
    TRY(d.cuEventDestroy_v2(from));
    TRY(d.cuEventDestroy_v2(to));
    return ms;
}

// --- programs ---------------------------------------------------------------------------------------------

struct load {
    const struct step *steps;
    unsigned threads, most;
};

static void launch(const char *name, unsigned n, unsigned argument)
{
    CUfunction f;
    void *arguments[] = {&n, &table, &wrong, &argument};
    TRY(d.cuModuleGetFunction(&f, module, name));
    TRY(d.cuLaunchKernel(f, (n + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream, arguments, NULL));
}

static void run_steps(const void *what)
{
    const struct load *l = what;
    for (unsigned i = 0; i < l->most && l->steps[i].kernel; i++)
        launch(l->steps[i].kernel, l->threads, l->steps[i].argument);
}

static void scan_alone(const void *what)
{
    (void)what;
    launch_scan(stream);
}

static unsigned wrongs(void)
{
    unsigned n;
    TRY(d.cuMemcpyDtoH_v2(&n, wrong, sizeof n));
    return n;
}

static int run_program(const struct program *p, unsigned threads, unsigned runs)
{
    for (unsigned i = 0; i <= runs; i++) {
        struct load l = {p->steps, threads, STEPS}, after = {p->after, threads, 2};
        TRY(d.cuMemsetD8_v2(table, 0, (size_t)threads * 8));
        TRY(d.cuMemsetD8_v2(wrong, 0, 8));
        double ms = timed(run_steps, &l);
        unsigned bad = wrongs();
        // The first run compiles, and wakes the device.
        if (i)
            printf("%s %u %.4f %u\n", p->name, threads, ms, bad);
        if (base && i && p->after[0].kernel)
            printf("scan %u %.4f\n", threads, timed(scan_alone, NULL));
        if (!strcmp(p->name, "zero-size")) {
            uint64_t at;
            TRY(d.cuMemcpyDtoH_v2(&at, table, sizeof at));
            printf("malloc(0) is %s\n", at ? "not NULL" : "NULL");
        }
        run_steps(&after);
        TRY(d.cuStreamSynchronize(stream));
        if (base)
            printf("scan-release %u %.4f\n", threads, timed(scan_alone, NULL));
        fflush(stdout);
        if (bad && strcmp(p->name, "exhaust"))
            return 1;
    }
    return 0;
}

// Measures from the moment at which the writing kernel has ended to the record in the ring, with a scan at
// once.
static int run_latency(unsigned threads)
{
    launch("alloc_only", threads, 16);
    for (unsigned i = 0; i < LATENCY_TURNS; i++) {
        uint64_t before = ring->taken;
        launch("overflow", threads, threads / 2 + 1 + i);
        TRY(d.cuStreamSynchronize(stream));
        double start = now_ms();
        for (;;) {
            const struct error_ring_record *r = &ring->records[before % KHEAP_RECORDS];
            if (__atomic_load_n(&r->sequence, __ATOMIC_ACQUIRE) == before + 1)
                break;
            if (now_ms() - start > 60000)
                return 1;
        }
        printf("latency %u %.4f\n", threads, now_ms() - start);
        while (__atomic_load_n(&ring->records[before % KHEAP_RECORDS].sequence, __ATOMIC_ACQUIRE) ==
               before + 1)
            __atomic_store_n(&ring->taken, ++before, __ATOMIC_RELEASE);
        struct timespec t = {0, 3000000};
        nanosleep(&t, NULL);
        while (__atomic_load_n(&ring->records[before % KHEAP_RECORDS].sequence, __ATOMIC_ACQUIRE) ==
               before + 1)
            __atomic_store_n(&ring->taken, ++before, __ATOMIC_RELEASE);
    }
    return 0;
}

static int run(const char *order, unsigned runs)
{
    const char *colon = strchr(order, ':');
    unsigned threads = colon ? (unsigned)strtoul(colon + 1, NULL, 0) : 1024;
    size_t length = colon ? (size_t)(colon - order) : strlen(order);
    TRY(d.cuMemAlloc_v2(&table, (size_t)threads * 8));
    int r = -1;
    if (length == 7 && !strncmp(order, "latency", 7))
        r = run_latency(threads);
    for (size_t i = 0; r < 0 && i < sizeof programs / sizeof *programs; i++)
        if (strlen(programs[i].name) == length && !strncmp(programs[i].name, order, length))
            r = run_program(&programs[i], threads, runs);
    TRY(d.cuMemFree_v2(table));
    if (r)
        fprintf(stderr, "kheap_load: %s failed\n", order);
    return r ? 1 : 0;
}

int main(int argc, char **argv)
{
    char why[300];
    CUcontext context;
    pthread_t thread;
    int failed = 0;
    if (argc < 7) {
        fprintf(stderr, "kheap_load cuda|ours KERNELS.ptx HEAP_MIB RUNS ARRAYS PROGRAM:THREADS...\n");
        return 2;
    }
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "kheap_load: %s\n", why);
        return 77;
    }
    int ours = !strcmp(argv[1], "ours");
    uint64_t limit = strtoull(argv[3], NULL, 0) << 20;
    TRY(d.cuInit(0));
    TRY(d.cuDevicePrimaryCtxRetain(&context, 0));
    TRY(d.cuCtxSetCurrent(context));
    TRY(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(d.cuStreamCreate(&scan_stream, CU_STREAM_NON_BLOCKING));
    TRY(d.cuMemAlloc_v2(&wrong, 8));
    if (!ours)
        TRY(d.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, limit));
    char *text = read_file(argv[2]);
    load(ours ? redirect(text) : text);
    if (ours)
        make_heap(limit, (uint32_t)strtoul(argv[5], NULL, 0));
    bool watch = ours && !getenv("KHEAP_NO_MONITOR");
    if (watch && pthread_create(&thread, NULL, monitor, context))
        return 1;
    for (int i = 6; i < argc; i++)
        failed |= run(argv[i], (unsigned)strtoul(argv[4], NULL, 0));
    atomic_store(&stop, true);
    if (watch)
        pthread_join(thread, NULL);
    if (ours) {
        struct kheap k;
        // A scan leaves out what another one holds, which may have come by before the last free.
        launch_scan(stream);
        TRY(d.cuStreamSynchronize(stream));
        TRY(d.cuMemcpyDtoH_v2(&k, base, sizeof k));
        printf("records %llu lost %llu pending %llu\n", (unsigned long long)k.errors.next,
               (unsigned long long)k.errors.lost, (unsigned long long)k.pending[0]);
    }
    return failed;
}
