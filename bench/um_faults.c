// SPDX-License-Identifier: MIT
// Counts the page faults of managed memory in a CUDA program, by CUPTI: a library that the driver loads
// itself, no part of moat.
//   cc -shared -fPIC -o um_faults.so um_faults.c -lcupti     (bench/canary_programs finds CUPTI)
//   UM_FAULTS=FILE CUDA_INJECTION64_PATH=$PWD/um_faults.so PROGRAM
// When the process ends a line is added to FILE: "faults CPU GPU", or "none WHY". The first number counts
// faults of the CPU in managed memory, the second one groups of faults of the GPU in one page, as CUPTI
// reports them.
#include <cupti.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, ALIGNED = 8 };

// The common beginning of unified-memory records in all versions of CUPTI.
struct record {
    CUpti_ActivityKind kind;
    CUpti_ActivityUnifiedMemoryCounterKind counter;
    uint64_t value;
};

static _Atomic uint64_t cpu, gpu, dropped;  // relaxed: sums, read at the end
static atomic_bool counting;
static const char *failed;  // call that failed, and why
static CUptiResult why;

// Records only the first failure.
static bool good(CUptiResult r, const char *call)
{
    if (r && !failed) {
        failed = call;
        why = r;
    }
    return !r;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(ALIGNED, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

static void count(const struct record *r)
{
    if (r->kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
        return;
    if (r->counter == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT)
        atomic_fetch_add_explicit(&cpu, 1, memory_order_relaxed);  // the value is where in the program
    else if (r->counter == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT)
        atomic_fetch_add_explicit(&gpu, r->value, memory_order_relaxed);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t lost = 0;
    (void)size;
    while (valid && !cuptiActivityGetNextRecord(buffer, valid, &record))
        count((const struct record *)record);
    if (!cuptiActivityGetNumDroppedRecords(context, stream, &lost))
        atomic_fetch_add_explicit(&dropped, lost, memory_order_relaxed);
    free(buffer);
}

// The counters exist once the driver does: with the first context.
static void begin(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig config[2];
    memset(config, 0, sizeof config);
    for (unsigned i = 0; i < 2; i++) {
        config[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
        config[i].enable = 1;
    }
    config[0].kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT;
    config[1].kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT;
    if (good(cuptiActivityConfigureUnifiedMemoryCounter(config, 2),
             "cuptiActivityConfigureUnifiedMemoryCounter") &&
        good(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER), "cuptiActivityEnable"))
        atomic_store(&counting, true);
}

static void CUPTIAPI on_context(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                const void *data)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    (void)unused;
    (void)data;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED &&
        !atomic_flag_test_and_set(&begun))
        begin();
}

static void tell(void)
{
    char line[300];
    const char *path = getenv("UM_FAULTS"), *words = NULL;
    if (atomic_load(&counting))
        good(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    int n;
    if (failed) {
        cuptiGetResultString(why, &words);
        n = snprintf(line, sizeof line, "none %s gives %d, %s\n", failed, (int)why,
                     words ? words : "unknown");
    } else if (!atomic_load(&counting)) {
        n = snprintf(line, sizeof line, "none the program made no context\n");
    } else if (atomic_load_explicit(&dropped, memory_order_relaxed)) {
        n = snprintf(line, sizeof line, "none CUPTI lost records\n");
    } else {
        n = snprintf(line, sizeof line, "faults %llu %llu\n",
                     (unsigned long long)atomic_load_explicit(&cpu, memory_order_relaxed),
                     (unsigned long long)atomic_load_explicit(&gpu, memory_order_relaxed));
    }
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file < 0 || write(file, line, (size_t)n) != n)
        fprintf(stderr, "um_faults: %s", line);
    if (file >= 0)
        close(file);
}

// The driver calls it from cuInit.
int InitializeInjection(void);
int InitializeInjection(void)
{
    CUpti_SubscriberHandle subscriber;
    atexit(tell);
    if (good(cuptiSubscribe(&subscriber, on_context, NULL), "cuptiSubscribe") &&
        good(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks"))
        good(
            cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED),
            "cuptiEnableCallback");
    return 1;
}
