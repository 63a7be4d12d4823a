// SPDX-License-Identifier: MIT
#include "cpu/fake.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

// --- random graphs: no operation runs before its dependencies ----------------------------------------------

enum { OPS = 300 };

struct node {
    struct pool_op *op;
    unsigned ndeps, deps[POOL_EDGES];
    struct node *all;
    atomic_uint runs;
};

static unsigned seed;

static unsigned pick(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void node_check(struct node *n)
{
    for (unsigned i = 0; i < n->ndeps; i++) {
        struct node *dep = &n->all[n->deps[i]];
        if (dep->op->kind != POOL_MARK)
            FAKE_CHECK(atomic_load(&dep->runs) == (dep->op->kind == POOL_GRID ? 3 : 1));
        FAKE_CHECK(pool_done(dep->op));
    }
    atomic_fetch_add(&n->runs, 1);
}

static void node_run(void *arg, bool run)
{
    FAKE_CHECK(run);
    node_check(arg);
}

static bool node_poll(void *arg)
{
    static atomic_uint asked;
    if (atomic_fetch_add(&asked, 1) % 3)
        return false;
    node_check(arg);
    return true;
}

static void node_release(void *arg, bool run)
{
    FAKE_CHECK(run);
}

static enum exec_step node_block(struct exec_grid *g, unsigned i)
{
    node_check(g->arg);
    return EXEC_RAN;
}

static void node_make(struct node *nodes, unsigned i, struct CUctx_st *ctx)
{
    struct node *n = &nodes[i];
    n->all = nodes;
    n->op = pool_op_new((enum pool_kind)pick(5), ctx);
    n->op->arg = n;
    switch (n->op->kind) {
    case POOL_MARK: break;
    case POOL_WORK:
    case POOL_CALLBACK: n->op->fn = node_run; break;
    case POOL_GRID:
        n->op->grid = fake_grid(node_block, 3, n);
        n->op->grid_done = fake_grid_done;
        break;
    case POOL_POLL:
        n->op->poll = node_poll;
        n->op->release = node_release;
        break;
    }
    n->ndeps = i ? pick(POOL_EDGES + 1) : 0;
    pool_lock();
    for (unsigned k = 0; k < n->ndeps; k++) {
        n->deps[k] = i - 1 - pick(i < 20 ? i : 20);
        pool_depend(n->op, nodes[n->deps[k]].op);
    }
    pool_keep(n->op);
    pool_submit(n->op);
    pool_unlock();
}

static void random_graph(unsigned s)
{
    struct CUctx_st ctx = {0};
    struct node *nodes = calloc(OPS, sizeof *nodes);
    seed = s;
    for (unsigned i = 0; i < OPS; i++)
        node_make(nodes, i, &ctx);
    for (unsigned i = 0; i < 5; i++)
        pool_wait(nodes[pick(OPS)].op);
    for (unsigned i = 0; i < OPS; i++)
        pool_wait(nodes[i].op);
    pool_lock();
    for (unsigned i = 0; i < OPS; i++) {
        assert_true(pool_done(nodes[i].op));
        pool_release(nodes[i].op);
    }
    pool_unlock();
    free(nodes);
}

static void good_random_graphs(void **state)
{
    assert_int_equal(pool_start_callbacks(), 0);
    for (unsigned width = 1; width <= 4; width++) {
        pool_limit(width);
        for (unsigned s = 0; s < 10; s++)
            random_graph(s + 100 * width);
    }
    pool_limit(0);
}

// --- grids -------------------------------------------------------------------------------------------------

static struct pool_op *submit_grid(struct CUctx_st *ctx, struct exec_grid *g)
{
    struct pool_op *op = pool_op_new(POOL_GRID, ctx);
    op->grid = g;
    op->grid_done = fake_grid_done;
    pool_lock();
    pool_keep(op);
    pool_submit(op);
    pool_unlock();
    return op;
}

static void end_op(struct pool_op *op)
{
    pool_wait(op);
    pool_lock();
    pool_release(op);
    pool_unlock();
}

struct pair {
    atomic_uint turn, last;
};

// Two grids pass a token to each other.
static enum exec_step ping(struct exec_grid *g, unsigned i)
{
    struct pair *p = g->arg;
    unsigned t = atomic_load(&p->turn);
    if (t < p->last && t % 2 == 0)
        atomic_store(&p->turn, t + 1);
    return t >= p->last ? EXEC_RAN : EXEC_SPUN;
}

static enum exec_step pong(struct exec_grid *g, unsigned i)
{
    struct pair *p = g->arg;
    unsigned t = atomic_load(&p->turn);
    if (t < p->last && t % 2 == 1)
        atomic_store(&p->turn, t + 1);
    return t >= p->last ? EXEC_RAN : EXEC_SPUN;
}

static void good_grids_need_each_other(void **state)
{
    struct CUctx_st ctx = {0};
    for (unsigned width = 1; width <= 2; width++) {
        pool_limit(width);
        struct pair p = {.last = 200};
        struct pool_op *a = submit_grid(&ctx, fake_grid(ping, 1, &p));
        struct pool_op *b = submit_grid(&ctx, fake_grid(pong, 1, &p));
        end_op(a);
        end_op(b);
        assert_int_equal(atomic_load(&p.turn), 200);
    }
    pool_limit(0);
}

static enum exec_step await_flag(struct exec_grid *g, unsigned i)
{
    return atomic_load((atomic_bool *)g->arg) ? EXEC_RAN : EXEC_SPUN;
}

// The host never waits: workers run the grid all the same, and see what the host writes.
static void good_host_polls(void **state)
{
    struct CUctx_st ctx = {0};
    for (int idle_ms = 0; idle_ms < 10; idle_ms += 5) {
        usleep((useconds_t)idle_ms * 1000);
        atomic_bool flag = false;
        struct pool_op *op = submit_grid(&ctx, fake_grid(await_flag, 4, &flag));
        usleep(3000);
        assert_false(pool_done(op));
        atomic_store(&flag, true);
        while (!pool_done(op))
            sched_yield();
        end_op(op);
    }
}

// Each block waits for the one behind it: nearly every step only waits, and yet none may cost a nap. A thread
// whose neighbour has lost its core in the middle of a block may take some.
static enum exec_step wait_for_next(struct exec_grid *g, unsigned i)
{
    atomic_fetch_add((atomic_ulong *)g->arg, 1);
    return i + 1 == g->blocks || atomic_load(&g->state[i + 1]) == 2 ? EXEC_RAN : EXEC_SPUN;
}

static void good_waiting_blocks_are_quick(void **state)
{
    struct CUctx_st ctx = {0};
    for (unsigned width = 1; width <= 2; width++) {
        atomic_ulong steps = 0;
        pool_limit(width);
        uint64_t before = pool_counts().naps;
        end_op(submit_grid(&ctx, fake_grid(wait_for_next, FAKE_BLOCKS, &steps)));
        assert_true(atomic_load(&steps) > 10 * FAKE_BLOCKS);
        assert_true(pool_counts().naps - before < atomic_load(&steps) / 2);
    }
    pool_limit(0);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// More time than any machine takes: only a test that fails reaches it.
enum { PATIENCE_S = 60 };

static enum exec_step slow_block(struct exec_grid *g, unsigned i)
{
    usleep(300);
    return EXEC_RAN;
}

// Waits until as many threads are here as the limit allows, then for a moment in which more could come.
static enum exec_step gather(struct exec_grid *g, unsigned i)
{
    for (double end = seconds() + PATIENCE_S;
         atomic_load(&fake_most) < (int)(uintptr_t)g->arg && seconds() < end;)
        sched_yield();
    FAKE_CHECK(atomic_load(&fake_most) >= (int)(uintptr_t)g->arg);
    return slow_block(g, i);
}

static void good_limit(void **state)
{
    struct CUctx_st ctx = {0};
    for (uintptr_t width = 1; width <= 3; width++) {
        pool_limit((unsigned)width);
        assert_int_equal(pool_width(), width);
        while (pool_counts().running)  // a thread that ran under another limit may keep its slot
            sched_yield();
        atomic_store(&fake_most, 0);
        struct pool_op *a = submit_grid(&ctx, fake_grid(gather, 40, (void *)width));
        struct pool_op *b = submit_grid(&ctx, fake_grid(gather, 40, (void *)width));
        end_op(b);
        end_op(a);
        assert_int_equal(atomic_load(&fake_most), width);
    }
    pool_limit(0);
}

// --- pieces of work ----------------------------------------------------------------------------------------

static struct pool_op *submit_work(struct CUctx_st *ctx, stream_fn *fn, void *arg)
{
    struct pool_op *op = pool_op_new(POOL_WORK, ctx);
    op->fn = fn;
    op->arg = arg;
    pool_lock();
    pool_keep(op);
    pool_submit(op);
    pool_unlock();
    return op;
}

static void last(void *arg, bool run)
{
    for (double end = seconds() + *(double *)arg; seconds() < end;)
        ;
}

static void meet(void *arg, bool run)
{
    atomic_uint *here = arg;
    atomic_fetch_add(here, 1);
    for (double end = seconds() + PATIENCE_S; atomic_load(here) < 2 && seconds() < end;)
        sched_yield();
    FAKE_CHECK(atomic_load(here) == 2);
}

// Waits without pool_wait, which would run the operations.
static void await_without_helping(struct pool_op *a, struct pool_op *b)
{
    while (!pool_done(a) || !pool_done(b))
        sched_yield();
    end_op(a);
    end_op(b);
}

// Two operations become ready one after the other while one thread sleeps and another spins: the spinning one
// cannot run both.
static void good_pieces_at_once(void **state)
{
    struct CUctx_st ctx = {0};
    pool_limit(2);
    for (unsigned i = 0; i < 400; i++) {
        double little = 0, much = (i % 8 + 1) * 30e-6;
        atomic_uint here = 0;
        struct pool_op *a = submit_work(&ctx, last, &little);
        await_without_helping(a, submit_work(&ctx, last, &much));
        a = submit_work(&ctx, meet, &here);
        await_without_helping(a, submit_work(&ctx, meet, &here));
    }
    pool_limit(0);
}

static void good_no_exec_after_end(void **state)
{
    struct CUctx_st ctx = {0};
    pool_limit(3);
    unsigned before = atomic_load(&fake_ended);
    for (int i = 0; i < 300; i++)
        end_op(submit_grid(&ctx, fake_grid(slow_block, i % 3 ? 1 : 2, NULL)));
    assert_int_equal(atomic_load(&fake_ended), before + 300);
    pool_limit(0);
}

// --- the caller's thread -----------------------------------------------------------------------------------

#if defined(__x86_64__)
static enum exec_step check_fp(struct exec_grid *g, unsigned i)
{
    FAKE_CHECK((__builtin_ia32_stmxcsr() & 0xffc0) == 0x1f80);
    return EXEC_RAN;
}

static void good_floating_point_state(void **state)
{
    struct CUctx_st ctx = {0};
    unsigned old = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(old | 0xe040);  // towards zero, flush, denormals are zero
    for (int i = 0; i < 50; i++)
        end_op(submit_grid(&ctx, fake_grid(check_fp, 8, NULL)));
    unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(old);
    assert_int_equal(after & 0xffc0, (old | 0xe040) & 0xffc0);
}
#endif

static atomic_bool blocked, release_it;

static void blocking_callback(void *arg, bool run)
{
    FAKE_CHECK(pool_in_callback());
    atomic_store(&blocked, true);
    while (!atomic_load(&release_it))
        usleep(100);
}

static void good_blocked_callback(void **state)
{
    struct CUctx_st ctx = {0};
    assert_int_equal(pool_start_callbacks(), 0);
    assert_false(pool_in_callback());
    pool_limit(1);
    struct pool_op *op = pool_op_new(POOL_CALLBACK, &ctx);
    op->fn = blocking_callback;
    pool_lock();
    pool_keep(op);
    pool_submit(op);
    pool_unlock();
    while (!atomic_load(&blocked))
        usleep(100);
    end_op(submit_grid(&ctx, fake_grid(slow_block, 4, NULL)));
    assert_false(pool_done(op));
    atomic_store(&release_it, true);
    end_op(op);
    pool_limit(0);
}

static void good_long_chain_of_marks(void **state)
{
    struct CUctx_st ctx = {0};
    atomic_bool flag = false;
    struct pool_op *last = submit_grid(&ctx, fake_grid(await_flag, 1, &flag));
    for (int i = 0; i < 100000; i++) {
        struct pool_op *op = pool_op_new(POOL_MARK, &ctx);
        pool_lock();
        pool_keep(op);
        pool_depend(op, last);
        pool_submit(op);
        pool_release(last);
        pool_unlock();
        last = op;
    }
    assert_false(pool_done(last));
    atomic_store(&flag, true);
    end_op(last);
}

// --- a pause -----------------------------------------------------------------------------------------------

static atomic_uint beats;
static atomic_bool beat_on;

static enum exec_step beat(struct exec_grid *g, unsigned i)
{
    atomic_fetch_add(&beats, 1);
    return atomic_load(&beat_on) ? EXEC_SPUN : EXEC_RAN;
}

static void wait_for_beats(void)
{
    unsigned now = atomic_load(&beats);
    while (atomic_load(&beats) < now + 10)
        sched_yield();
}

// Grids stop, and operations that become ready wait; all of them continue afterwards.
static void good_pause(void **state)
{
    struct CUctx_st *ctx = fake_context();
    atomic_store(&beat_on, true);
    struct CUstream_st *s = ctx->legacy;
    assert_int_equal(stream_push_grid(s, fake_grid(beat, 4, NULL), fake_grid_done, NULL, NULL), CUDA_SUCCESS);
    for (int round = 0; round < 5; round++) {
        wait_for_beats();
        pool_pause();
        unsigned still = atomic_load(&beats);
        usleep(2000);
        assert_int_equal(atomic_load(&beats), still);
        pool_resume();
    }
    pool_pause();
    atomic_store(&beat_on, false);
    unsigned ended = atomic_load(&fake_ended);
    usleep(2000);
    assert_int_equal(atomic_load(&fake_ended), ended);
    pool_resume();
    assert_int_equal(cpu_context_wait(ctx), CUDA_SUCCESS);
    assert_int_equal(atomic_load(&fake_ended), ended + 1);
    fake_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_random_graphs),
        cmocka_unit_test(good_grids_need_each_other),
        cmocka_unit_test(good_host_polls),
        cmocka_unit_test(good_waiting_blocks_are_quick),
        cmocka_unit_test(good_limit),
        cmocka_unit_test(good_pieces_at_once),
        cmocka_unit_test(good_no_exec_after_end),
#if defined(__x86_64__)
        cmocka_unit_test(good_floating_point_state),
#endif
        cmocka_unit_test(good_blocked_callback),
        cmocka_unit_test(good_long_chain_of_marks),
        cmocka_unit_test(good_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
