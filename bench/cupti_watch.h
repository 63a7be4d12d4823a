// SPDX-License-Identifier: MIT
// For libraries that the driver loads itself (CUDA_INJECTION64_PATH) and that read CUPTI's records: buffers,
// the first failure, and the lines that are added to a file when the process ends. The library defines
// watch_record, watch_begin and watch_end.
#ifndef MOAT_BENCH_CUPTI_WATCH_H
#define MOAT_BENCH_CUPTI_WATCH_H

#include <cupti.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void watch_record(const CUpti_Activity *record);
static bool watch_begin(void);      // enables what the library counts, when the first context is made
static void watch_end(FILE *file);  // prints the results

static _Atomic uint64_t watch_lost;  // relaxed: a sum, read at the end
static atomic_bool watch_counts;
static const char *watch_failed;  // call that failed, and why
static CUptiResult watch_why;

// Records only the first failure.
static bool watch_good(CUptiResult r, const char *call)
{
    if (r && !watch_failed) {
        watch_failed = call;
        watch_why = r;
    }
    return !r;
}

static void CUPTIAPI watch_give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    enum { BUFFER = 1 << 20, ALIGNED = 8 };
    *buffer = aligned_alloc(ALIGNED, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

static void CUPTIAPI watch_take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                       size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t lost = 0;
    (void)size;
    while (valid && !cuptiActivityGetNextRecord(buffer, valid, &record))
        watch_record(record);
    if (!cuptiActivityGetNumDroppedRecords(context, stream, &lost))
        atomic_fetch_add_explicit(&watch_lost, lost, memory_order_relaxed);
    free(buffer);
}

static void CUPTIAPI watch_on_context(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                      const void *data)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    (void)unused;
    (void)data;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED &&
        !atomic_flag_test_and_set(&begun))
        atomic_store(&watch_counts, watch_begin());
}

// Adds to the file that the variable names, in one write, so that lines of processes do not mix.
static void watch_tell(void)
{
    char *text = NULL;
    size_t size = 0;
    const char *path = getenv("CUPTI_WATCH"), *words = NULL;
    if (atomic_load(&watch_counts))
        watch_good(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    if (watch_failed) {
        cuptiGetResultString(watch_why, &words);
        fprintf(out, "none %s gives %d, %s\n", watch_failed, (int)watch_why, words ? words : "unknown");
    } else if (!atomic_load(&watch_counts)) {
        fprintf(out, "none the program made no context\n");
    } else if (atomic_load_explicit(&watch_lost, memory_order_relaxed)) {
        fprintf(out, "none CUPTI lost records\n");
    } else {
        watch_end(out);
    }
    fclose(out);
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file < 0 || write(file, text, size) != (ssize_t)size)
        fprintf(stderr, "cupti_watch: %s", text);
    if (file >= 0)
        close(file);
    free(text);
}

// The driver calls it from cuInit.
int InitializeInjection(void);
int InitializeInjection(void)
{
    CUpti_SubscriberHandle subscriber;
    atexit(watch_tell);
    if (watch_good(cuptiSubscribe(&subscriber, watch_on_context, NULL), "cuptiSubscribe") &&
        watch_good(cuptiActivityRegisterCallbacks(watch_give_buffer, watch_take_buffer),
                   "cuptiActivityRegisterCallbacks"))
        watch_good(
            cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED),
            "cuptiEnableCallback");
    return 1;
}

#endif
