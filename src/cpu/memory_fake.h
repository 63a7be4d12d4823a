// SPDX-License-Identifier: MIT
// A device, a context and streams for tests of memory: work in a stream waits until a test runs it.
#ifndef MOAT_CPU_MEMORY_FAKE_H
#define MOAT_CPU_MEMORY_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cpu/memory.h"
#include "cpu/pool.h"
#include "cpu/stream.h"
#include "exec/space.h"

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)
#define INVALID(call) assert_int_equal(call, CUDA_ERROR_INVALID_VALUE)

enum { FAKE_STREAMS = 4, FAKE_HANDLES = 64, FAKE_WORK = 4096 };

struct fake_work {
    struct CUstream_st *stream;
    stream_fn *fn;
    void *arg;
};

static struct CUctx_st fake_ctx;
static struct CUstream_st fake_legacy = {.ctx = &fake_ctx, .legacy = true, .blocking = true};
static struct CUstream_st fake_streams[FAKE_STREAMS];
static struct fake_work fake_queue[FAKE_WORK];
static unsigned fake_queued;
static uint64_t fake_total = (uint64_t)256 << 20;
static CUresult fake_state = CUDA_SUCCESS;  // error of the context
static const char *fake_unsupported;

CUresult device_ready(void)
{
    return CUDA_SUCCESS;
}

unsigned device_count(void)
{
    return 1;
}

uint64_t device_memory(void)
{
    return fake_total;
}

CUresult not_supported_notify(const char *call)
{
    fake_unsupported = call;
    return CUDA_ERROR_NOT_SUPPORTED;
}

void output_flush(void)
{
}

void pool_pause(void)
{
}

void pool_resume(void)
{
}

CUresult cpu_context_current(struct CUctx_st **out)
{
    *out = &fake_ctx;
    return fake_state;
}

CUresult cpu_context_current_any(struct CUctx_st **out)
{
    *out = &fake_ctx;
    return CUDA_SUCCESS;
}

struct CUctx_st *cpu_context_named(CUcontext handle)
{
    return handle_is(handle, HANDLE_CONTEXT) ? handle : NULL;
}

// Runs the work of one stream, or of all (NULL), in order.
static void fake_run(const struct CUstream_st *s)
{
    struct fake_work now[FAKE_WORK];
    unsigned n = 0, left = 0;
    if (!fake_queued)  // several threads may wait while there is no work
        return;
    for (unsigned i = 0; i < fake_queued; i++) {
        if (!s || fake_queue[i].stream == s)
            now[n++] = fake_queue[i];
        else
            fake_queue[left++] = fake_queue[i];
    }
    fake_queued = left;
    for (unsigned i = 0; i < n; i++)
        now[i].fn(now[i].arg, !fake_state);
}

bool cpu_context_idle(struct CUctx_st *ctx)
{
    return !fake_queued;
}

bool stream_lives(const struct CUstream_st *s)
{
    return true;
}

bool stream_idle(struct CUstream_st *s)
{
    for (unsigned i = 0; i < fake_queued; i++) {
        if (s->legacy || fake_queue[i].stream == s)
            return false;
    }
    return true;
}

CUresult cpu_context_wait(struct CUctx_st *ctx)
{
    fake_run(NULL);
    return fake_state;
}

CUresult stream_wait(struct CUstream_st *s)
{
    fake_run(s->legacy ? NULL : s);
    return fake_state;
}

CUresult stream_after_context(struct CUstream_st *s, struct CUctx_st *other)
{
    return CUDA_SUCCESS;
}

CUresult stream_before_context(struct CUstream_st *s, struct CUctx_st *other)
{
    return CUDA_SUCCESS;
}

CUresult stream_push(struct CUstream_st *s, stream_fn *fn, void *arg)
{
    assert_true(fake_queued < FAKE_WORK);
    fake_queue[fake_queued++] = (struct fake_work){s, fn, arg};
    return CUDA_SUCCESS;
}

CUresult stream_get(CUstream handle, bool per_thread, struct CUstream_st **out)
{
    *out = &fake_legacy;
    if ((uintptr_t)handle > 2) {
        if (handle < fake_streams || handle >= fake_streams + FAKE_STREAMS)
            return CUDA_ERROR_INVALID_HANDLE;
        *out = handle;
        handle->ctx = &fake_ctx;
    }
    return fake_state;
}

static const void *fake_handles[FAKE_HANDLES];

int handle_add(const void *p, enum handle_kind kind)
{
    for (unsigned i = 0; i < FAKE_HANDLES; i++) {
        if (!fake_handles[i]) {
            fake_handles[i] = p;
            return 0;
        }
    }
    return -1;
}

bool handle_is(const void *p, enum handle_kind kind)
{
    for (unsigned i = 0; i < FAKE_HANDLES; i++) {
        if (fake_handles[i] == p)
            return true;
    }
    return false;
}

void handle_remove(const void *p)
{
    for (unsigned i = 0; i < FAKE_HANDLES; i++) {
        if (fake_handles[i] == p)
            fake_handles[i] = NULL;
    }
}

static inline CUdeviceptr fake_alloc(size_t size)
{
    CUdeviceptr p = 0;
    OK(cuMemAlloc_v2(&p, size));
    return p;
}

// malloc and free of a single lane; fake_heap_free returns whether a block was freed.
static inline uint64_t fake_heap_alloc(struct CUctx_st *ctx, uint64_t size)
{
    uint64_t at;
    memory_heap_alloc(ctx, 1, &size, &at);
    return at;
}

static inline bool fake_heap_free(struct CUctx_st *ctx, uint64_t addr)
{
    return addr && !memory_heap_free(ctx, 1, &addr);
}

static inline uint32_t fake_random(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)(x >> 16);
}

// Returns the bytes that are free on the device, empty chunks included.
static inline size_t fake_free_bytes(void)
{
    size_t n = 0;
    OK(cuMemGetInfo_v2(&n, NULL));
    return n;
}

#endif
