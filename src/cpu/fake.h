// SPDX-License-Identifier: MIT
// An engine, a device and a context for tests of streams: a grid is a function that is called for its blocks.
#ifndef MOAT_CPU_FAKE_H
#define MOAT_CPU_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/memory.h"
#include "cpu/pool.h"
#include "cpu/stream.h"
#include "exec/space.h"

enum { FAKE_BLOCKS = 256 };

// An assertion for threads that cmocka does not know.
#define FAKE_CHECK(x) ((x) ? (void)0 : fake_fail(#x, __FILE__, __LINE__))

static void fake_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

struct exec_grid {
    // Runs a block. EXEC_RAN: it has ended; EXEC_SPUN: it must be called again; EXEC_DONE: it faults.
    enum exec_step (*block)(struct exec_grid *g, unsigned index);
    void *arg;
    unsigned blocks;
    atomic_int state[FAKE_BLOCKS];  // 0: waiting; 1: being run; 2: ended
    atomic_uint ended, cursor;
    atomic_bool stop;
    atomic_int inside;
    struct exec_fault fault;
    atomic_uint freed;
};

struct exec_runner {
    int nothing;
};

static atomic_int fake_running, fake_most;  // threads inside the engine

struct exec_runner *exec_runner_new(void)
{
    return calloc(1, sizeof(struct exec_runner));
}

void exec_runner_free(struct exec_runner *r)
{
    free(r);
}

unsigned exec_grid_parallelism(struct exec_grid *g)
{
    unsigned n = 0;
    for (unsigned i = 0; i < g->blocks; i++)
        n += atomic_load(&g->state[i]) == 0;
    return n;
}

static void fake_stop(struct exec_grid *g, enum exec_fault_kind kind)
{
    if (!atomic_exchange(&g->stop, true))
        g->fault.kind = kind;
}

void exec_grid_cancel(struct exec_grid *g, enum exec_fault_kind kind)
{
    fake_stop(g, kind);
}

const struct exec_fault *exec_grid_fault(const struct exec_grid *g)
{
    return &g->fault;
}

static enum exec_step fake_block(struct exec_grid *g, unsigned i)
{
    int waiting = 0;
    if (!atomic_compare_exchange_strong(&g->state[i], &waiting, 1))
        return EXEC_EMPTY;
    atomic_store(&g->cursor, i + 1);
    enum exec_step s = g->block(g, i);
    if (s == EXEC_DONE)
        fake_stop(g, EXEC_ILLEGAL_ADDRESS);
    atomic_store(&g->state[i], s == EXEC_SPUN ? 0 : 2);
    if (s == EXEC_RAN && atomic_fetch_add(&g->ended, 1) + 1 == g->blocks)
        return EXEC_DONE;
    return s;
}

enum exec_step exec_grid_step(struct exec_grid *g, struct exec_runner *r)
{
    FAKE_CHECK(r);
    FAKE_CHECK(!atomic_load(&g->freed));
    int running = atomic_fetch_add(&fake_running, 1) + 1;
    for (int most = atomic_load(&fake_most); most < running;)
        atomic_compare_exchange_weak(&fake_most, &most, running);
    atomic_fetch_add(&g->inside, 1);
    enum exec_step s = EXEC_EMPTY;
    unsigned start = atomic_load(&g->cursor);
    for (unsigned i = 0; i < g->blocks && s == EXEC_EMPTY && !atomic_load(&g->stop); i++)
        s = fake_block(g, (start + i) % g->blocks);
    if (atomic_load(&g->stop) || atomic_load(&g->ended) == g->blocks)
        s = EXEC_DONE;
    atomic_fetch_sub(&g->inside, 1);
    atomic_fetch_sub(&fake_running, 1);
    return s;
}

static inline struct exec_grid *fake_grid(enum exec_step (*block)(struct exec_grid *, unsigned),
                                          unsigned blocks, void *arg)
{
    struct exec_grid *g = calloc(1, sizeof *g);
    g->block = block;
    g->blocks = blocks;
    g->arg = arg;
    return g;
}

static atomic_uint fake_ended;  // grids that have ended

// Frees a grid, as the end of a launch does.
static inline void fake_grid_done(void *arg, struct exec_grid *g)
{
    FAKE_CHECK(!atomic_load(&g->inside));
    atomic_fetch_add(&g->freed, 1);
    free(g);
    atomic_fetch_add(&fake_ended, 1);
}

static struct CUctx_st *fake_current;

CUresult device_ready(void)
{
    return CUDA_SUCCESS;
}

unsigned device_count(void)
{
    return 1;
}

int device_attribute(CUdevice_attribute a)
{
    return 0;
}

// Memory counts as pinned if the space allows the access.
enum memory_where memory_block_check(uint64_t addr, uint64_t size, unsigned rights)
{
    return space_allows(addr, size, rights) ? MEMORY_PINNED : MEMORY_BAD;
}

CUresult cpu_context_current_any(struct CUctx_st **out)
{
    *out = fake_current;
    return fake_current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cpu_context_current(struct CUctx_st **out)
{
    CUresult rc = cpu_context_current_any(out);
    return rc ? rc : (CUresult)atomic_load(&(*out)->error);
}

unsigned long long cpu_context_green(void)
{
    return 0;
}

struct CUctx_st *cpu_context_named(CUcontext handle)
{
    return handle_is(handle, HANDLE_CONTEXT) ? handle : NULL;
}

CUgreenCtx green_context_of(unsigned long long id)
{
    return NULL;
}

void cpu_context_fail(struct CUctx_st *ctx, const struct exec_fault *fault)
{
    int none = 0;
    atomic_compare_exchange_strong(&ctx->error, &none, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static inline struct CUctx_st *fake_context(void)
{
    struct CUctx_st *ctx = calloc(1, sizeof *ctx);
    atomic_store(&ctx->alive, true);
    assert_int_equal(handle_add(ctx, HANDLE_CONTEXT), 0);
    assert_int_equal(stream_context_init(ctx), CUDA_SUCCESS);
    fake_current = ctx;
    return ctx;
}

static inline void fake_context_free(struct CUctx_st *ctx)
{
    stream_context_free(ctx);
    assert_null(ctx->streams);
    handle_remove(ctx);
    free(ctx);
    fake_current = NULL;
}

#endif
