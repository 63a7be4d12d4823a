// SPDX-License-Identifier: MIT
// Adds up how long each kernel of a CUDA program ran on the GPU, by CUPTI: a library that the driver loads
// itself, no part of moat.
//   cc -shared -fPIC -o kernel_times.so kernel_times.c -lcupti     (bench/cupti_library finds CUPTI)
//   CUPTI_WATCH=FILE CUDA_INJECTION64_PATH=$PWD/kernel_times.so PROGRAM
// When the process ends a line for each kernel is added to FILE: "kernel LAUNCHES NANOSECONDS NAME", then
// "done", or "none WHY". The name is that of the driver's function, which moat's variants have of their own.
#include "cupti_watch.h"

enum { MOST = 1 << 14 };  // a power of two

struct kernel {
    char *name;
    uint64_t launches, ns;
};

// CUPTI delivers buffers one at a time.
static struct kernel kernels[MOST];
static unsigned count, dropped;

// Returns NULL if the table is full.
static struct kernel *kernel(const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (unsigned at = hash % MOST;; at = (at + 1) % MOST) {
        struct kernel *k = &kernels[at];
        if (!k->name) {
            if (count == MOST - 1 || !(k->name = strdup(name)))
                return NULL;
            count++;
            return k;
        }
        if (!strcmp(k->name, name))
            return k;
    }
}

// All versions of CUPTI put the times where the first ones did; the name has moved.
static void watch_record(const CUpti_Activity *record)
{
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL)
        return;
    const CUpti_ActivityKernel9 *r = (const CUpti_ActivityKernel9 *)record;
    struct kernel *k = kernel(r->name ? r->name : "?");
    if (!k) {
        dropped++;
        return;
    }
    k->launches++;
    k->ns += r->end - r->start;
}

static bool watch_begin(void)
{
    return watch_good(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
}

static void watch_end(FILE *file)
{
    for (unsigned i = 0; i < MOST; i++)
        if (kernels[i].name)
            fprintf(file, "kernel %llu %llu %s\n", (unsigned long long)kernels[i].launches,
                    (unsigned long long)kernels[i].ns, kernels[i].name);
    if (dropped)
        fprintf(file, "none %u records had no room\n", dropped);
    else
        fprintf(file, "done\n");
}
