// SPDX-License-Identifier: MIT
// Counts the page faults of managed memory in a CUDA program, by CUPTI: a library that the driver loads
// itself, no part of moat.
//   cc -shared -fPIC -o um_faults.so um_faults.c -lcupti     (bench/cupti_library finds CUPTI)
//   CUPTI_WATCH=FILE CUDA_INJECTION64_PATH=$PWD/um_faults.so PROGRAM
// When the process ends a line is added to FILE: "faults CPU GPU", or "none WHY". The first number counts
// faults of the CPU in managed memory, the second one groups of faults of the GPU in one page, as CUPTI
// reports them.
#include "cupti_watch.h"

// The common beginning of unified-memory records in all versions of CUPTI.
struct record {
    CUpti_ActivityKind kind;
    CUpti_ActivityUnifiedMemoryCounterKind counter;
    uint64_t value;
};

static _Atomic uint64_t cpu, gpu;  // relaxed: sums, read at the end

static void watch_record(const CUpti_Activity *record)
{
    const struct record *r = (const struct record *)record;
    if (r->kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
        return;
    if (r->counter == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT)
        atomic_fetch_add_explicit(&cpu, 1, memory_order_relaxed);  // the value is where in the program
    else if (r->counter == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT)
        atomic_fetch_add_explicit(&gpu, r->value, memory_order_relaxed);
}

// The counters exist once the driver does: with the first context.
static bool watch_begin(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig config[2];
    memset(config, 0, sizeof config);
    for (unsigned i = 0; i < 2; i++) {
        config[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
        config[i].enable = 1;
    }
    config[0].kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT;
    config[1].kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT;
    return watch_good(cuptiActivityConfigureUnifiedMemoryCounter(config, 2),
                      "cuptiActivityConfigureUnifiedMemoryCounter") &&
           watch_good(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER), "cuptiActivityEnable");
}

static void watch_end(FILE *file)
{
    fprintf(file, "faults %llu %llu\n", (unsigned long long)atomic_load_explicit(&cpu, memory_order_relaxed),
            (unsigned long long)atomic_load_explicit(&gpu, memory_order_relaxed));
}
