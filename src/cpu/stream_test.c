// SPDX-License-Identifier: MIT
#include "cpu/fake.h"

#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#if defined(__SANITIZE_THREAD__)
#define SANITIZE_THREAD 1
#elif defined(__has_feature)
#define SANITIZE_THREAD __has_feature(thread_sanitizer)
#else
#define SANITIZE_THREAD 0
#endif

static int setup(void **state)
{
    *state = fake_context();
    return 0;
}

static int teardown(void **state)
{
    fake_context_free(*state);
    return 0;
}

// --- operations whose order can be seen --------------------------------------------------------------------

static atomic_uint clock_now;

// An operation that can be held back, and that records when it ran.
struct step {
    atomic_bool go;
    atomic_uint at;  // 0: has not run
    atomic_bool dropped;
};

static enum exec_step step_block(struct exec_grid *g, unsigned i)
{
    struct step *s = g->arg;
    if (!atomic_load(&s->go))
        return EXEC_SPUN;
    atomic_store(&s->at, atomic_fetch_add(&clock_now, 1) + 1);
    return EXEC_RAN;
}

static void push_step(CUstream handle, struct step *s)
{
    struct CUstream_st *stream;
    assert_int_equal(stream_get(handle, false, &stream), CUDA_SUCCESS);
    assert_int_equal(stream_push_grid(stream, fake_grid(step_block, 1, s), fake_grid_done, s, NULL),
                     CUDA_SUCCESS);
}

static void note(void *arg, bool run)
{
    struct step *s = arg;
    if (run)
        atomic_store(&s->at, atomic_fetch_add(&clock_now, 1) + 1);
    else
        atomic_store(&s->dropped, true);
}

static void push_note(CUstream handle, struct step *s)
{
    struct CUstream_st *stream;
    assert_int_equal(stream_get(handle, false, &stream), CUDA_SUCCESS);
    assert_int_equal(stream_push(stream, note, s), CUDA_SUCCESS);
}

static bool ran(struct step *s)
{
    return atomic_load(&s->at) != 0;
}

static void settle(void)
{
    usleep(2000);
}

static CUstream make(unsigned flags)
{
    CUstream s;
    assert_int_equal(cuStreamCreate(&s, flags), CUDA_SUCCESS);
    return s;
}

// --- order -------------------------------------------------------------------------------------------------

static void good_order_in_stream(void **state)
{
    CUstream s = make(0);
    struct step a = {0}, b = {0}, c = {0};
    push_step(s, &a);
    push_note(s, &b);
    push_note(s, &c);
    settle();
    assert_false(ran(&b));
    assert_int_equal(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    assert_false(cpu_context_idle(*state));
    atomic_store(&a.go, true);
    assert_int_equal(cuStreamSynchronize(s), CUDA_SUCCESS);
    assert_true(ran(&a) && a.at < b.at && b.at < c.at);
    assert_int_equal(cuStreamQuery(s), CUDA_SUCCESS);
    assert_true(cpu_context_idle(*state));
    assert_int_equal(cuStreamDestroy_v2(s), CUDA_SUCCESS);
}

static void good_legacy_waits_for_blocking(void **state)
{
    CUstream s = make(0), free_one = make(CU_STREAM_NON_BLOCKING);
    struct step a = {0}, b = {0}, c = {0}, d = {0};
    push_step(s, &a);
    push_note(NULL, &b);
    push_note(free_one, &c);
    push_note(s, &d);
    assert_int_equal(cuStreamSynchronize(free_one), CUDA_SUCCESS);
    assert_true(ran(&c));
    assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    settle();
    assert_false(ran(&b));
    atomic_store(&a.go, true);
    assert_int_equal(cuStreamSynchronize(CU_STREAM_LEGACY), CUDA_SUCCESS);
    assert_true(a.at < b.at);
    assert_int_equal(cuStreamSynchronize(s), CUDA_SUCCESS);
    assert_true(b.at < d.at);
}

static void good_blocking_waits_for_legacy(void **state)
{
    CUstream s = make(0), free_one = make(CU_STREAM_NON_BLOCKING);
    struct step a = {0}, b = {0}, c = {0};
    push_step(NULL, &a);
    assert_int_equal(cuStreamSynchronize(s), CUDA_SUCCESS);  // has no work of its own
    push_note(s, &b);
    push_note(free_one, &c);
    assert_int_equal(cuStreamSynchronize(free_one), CUDA_SUCCESS);
    settle();
    assert_false(ran(&b));
    atomic_store(&a.go, true);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    assert_true(a.at < b.at);
}

static void good_legacy_waits_for_many(void **state)
{
    enum { N = 40 };
    struct step a[N] = {0}, last = {0};
    for (int i = 0; i < N; i++)
        push_step(make(0), &a[i]);
    push_note(NULL, &last);
    for (int i = 0; i < N; i++) {
        settle();
        assert_false(ran(&last));
        atomic_store(&a[i].go, true);
    }
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    for (int i = 0; i < N; i++)
        assert_true(ran(&a[i]) && a[i].at < last.at);
}

static void good_wait_for_event(void **state)
{
    CUstream s = make(CU_STREAM_NON_BLOCKING), t = make(CU_STREAM_NON_BLOCKING);
    CUevent e;
    assert_int_equal(cuEventCreate(&e, 0), CUDA_SUCCESS);
    struct step a = {0}, b = {0}, c = {0}, d = {0};
    push_step(s, &a);
    assert_int_equal(cuEventRecord(e, s), CUDA_SUCCESS);
    push_step(s, &d);
    assert_int_equal(cuStreamWaitEvent(t, e, 0), CUDA_SUCCESS);
    assert_int_equal(cuEventRecord(e, s), CUDA_SUCCESS);  // does not affect t
    push_note(t, &b);
    assert_int_equal(cuEventDestroy_v2(e), CUDA_SUCCESS);
    push_note(t, &c);
    settle();
    assert_false(ran(&b));
    atomic_store(&a.go, true);
    assert_int_equal(cuStreamSynchronize(t), CUDA_SUCCESS);
    assert_true(a.at < b.at && b.at < c.at && !ran(&d));
    atomic_store(&d.go, true);
    assert_int_equal(cuStreamSynchronize(s), CUDA_SUCCESS);
}

static void good_context_events(void **state)
{
    CUstream s = make(CU_STREAM_NON_BLOCKING), t = make(0);
    CUevent e;
    assert_int_equal(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    struct step a = {0}, b = {0}, after[4] = {0};
    push_step(s, &a);
    push_step(t, &b);
    assert_int_equal(cuCtxRecordEvent(*state, e), CUDA_SUCCESS);
    atomic_store(&a.go, true);
    settle();
    assert_int_equal(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    assert_int_equal(cuCtxWaitEvent(*state, e), CUDA_SUCCESS);
    push_note(s, &after[0]);
    push_note(make(CU_STREAM_NON_BLOCKING), &after[1]);
    push_note(make(0), &after[2]);
    push_note(NULL, &after[3]);
    settle();
    for (int i = 0; i < 4; i++)
        assert_false(ran(&after[i]));
    atomic_store(&b.go, true);
    assert_int_equal(cuCtxSynchronize_v2(*state), CUDA_SUCCESS);
    for (int i = 0; i < 4; i++)
        assert_true(after[i].at > a.at && after[i].at > b.at);
    assert_int_equal(cuEventQuery(e), CUDA_SUCCESS);
    assert_int_equal(cuCtxRecordEvent(NULL, e), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxWaitEvent(NULL, e), CUDA_ERROR_INVALID_CONTEXT);
}

// --- random programs ---------------------------------------------------------------------------------------

// Every operation knows, from a model of the rules, which operations must have run before it.
enum { STREAMS = 5, OPS = 120 };

struct random_op {
    struct step step;
    bool before[OPS];
    struct random_op *all;
};

static void random_run(void *arg, bool run)
{
    struct random_op *op = arg;
    FAKE_CHECK(run);
    for (unsigned i = 0; i < OPS; i++)
        FAKE_CHECK(!op->before[i] || ran(&op->all[i].step));
    atomic_store(&op->step.at, 1);
}

static enum exec_step random_block(struct exec_grid *g, unsigned i)
{
    static atomic_uint n;
    if (atomic_fetch_add(&n, 1) % 4 == 0)
        return EXEC_SPUN;
    random_run(g->arg, true);
    return EXEC_RAN;
}

static unsigned seed;

static unsigned pick(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void merge(bool *into, const bool *from)
{
    for (unsigned i = 0; i < OPS; i++)
        into[i] |= from[i];
}

static void random_program(unsigned start)
{
    // Stream 0 is the legacy one, 1 to 3 are blocking. seen: the operations before the next one in a stream.
    static bool seen[STREAMS][OPS], recorded[OPS];
    struct random_op *ops = calloc(OPS, sizeof *ops);
    CUstream streams[STREAMS] = {NULL, make(0), make(0), CU_STREAM_PER_THREAD, make(CU_STREAM_NON_BLOCKING)};
    CUevent e;
    assert_int_equal(cuEventCreate(&e, 0), CUDA_SUCCESS);
    memset(seen, 0, sizeof seen);
    memset(recorded, 0, sizeof recorded);
    seed = start;
    for (unsigned i = 0; i < OPS; i++) {
        unsigned k = pick(STREAMS), what = pick(6);
        struct CUstream_st *s;
        assert_int_equal(stream_get(streams[k], false, &s), CUDA_SUCCESS);
        for (unsigned j = 0; j < 4; j++) {
            if (k == 0 || (j == 0 && k < 4))
                merge(seen[k], seen[j]);
        }
        ops[i].all = ops;
        memcpy(ops[i].before, seen[k], sizeof seen[k]);
        if (what == 0) {
            assert_int_equal(cuEventRecord(e, streams[k]), CUDA_SUCCESS);
            memcpy(recorded, seen[k], sizeof recorded);
            continue;
        }
        if (what == 1) {
            assert_int_equal(cuStreamWaitEvent(streams[k], e, 0), CUDA_SUCCESS);
            merge(seen[k], recorded);
            continue;
        }
        if (what == 2)
            assert_int_equal(stream_push_callback(s, random_run, &ops[i]), CUDA_SUCCESS);
        else if (what == 3)
            assert_int_equal(stream_push(s, random_run, &ops[i]), CUDA_SUCCESS);
        else
            assert_int_equal(
                stream_push_grid(s, fake_grid(random_block, 1, &ops[i]), fake_grid_done, NULL, NULL),
                CUDA_SUCCESS);
        seen[k][i] = true;
        if (pick(20) == 0)
            assert_int_equal(cuStreamSynchronize(streams[pick(STREAMS)]), CUDA_SUCCESS);
    }
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    for (unsigned k = 0; k < STREAMS; k++) {
        for (unsigned i = 0; i < OPS; i++)
            assert_true(!seen[k][i] || ran(&ops[i].step));
    }
    for (unsigned k = 1; k < STREAMS; k++) {
        if (k != 3)
            assert_int_equal(cuStreamDestroy_v2(streams[k]), CUDA_SUCCESS);
    }
    assert_int_equal(cuEventDestroy_v2(e), CUDA_SUCCESS);
    free(ops);
}

static void good_random_programs(void **state)
{
    for (unsigned width = 1; width <= 3; width++) {
        pool_limit(width);
        for (unsigned i = 0; i < 30; i++)
            random_program(1000 * width + i);
    }
    pool_limit(0);
}

// --- events ------------------------------------------------------------------------------------------------

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void good_elapsed_time(void **state)
{
    CUevent a, b, untimed;
    float ms = -1;
    assert_int_equal(cuEventCreate(&a, 0), CUDA_SUCCESS);
    assert_int_equal(cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC), CUDA_SUCCESS);
    assert_int_equal(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    assert_int_equal(cuEventQuery(a), CUDA_SUCCESS);
    assert_int_equal(cuEventSynchronize(a), CUDA_SUCCESS);
    assert_int_equal(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    struct step s = {0};
    double before = milliseconds();
    assert_int_equal(cuEventRecord(a, NULL), CUDA_SUCCESS);
    assert_int_equal(cuEventRecord(untimed, NULL), CUDA_SUCCESS);
    push_step(NULL, &s);
    assert_int_equal(cuEventRecordWithFlags_ptsz(b, CU_STREAM_LEGACY, 0), CUDA_SUCCESS);
    assert_int_equal(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
    assert_int_equal(cuEventQuery(b), CUDA_ERROR_NOT_READY);
    usleep(20000);
    atomic_store(&s.go, true);
    assert_int_equal(cuEventSynchronize(b), CUDA_SUCCESS);
    double most = milliseconds() - before;
    assert_int_equal(cuEventElapsedTime_v2(&ms, a, b), CUDA_SUCCESS);
    assert_true(ms >= 20 && ms <= most + 0.1);  // a float is not exact
    assert_int_equal(cuEventElapsedTime(&ms, b, a), CUDA_SUCCESS);
    assert_true(ms <= -20);
    assert_int_equal(cuEventElapsedTime(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventElapsedTime(NULL, a, b), CUDA_ERROR_INVALID_HANDLE);
}

static void bad_events(void **state)
{
    CUevent e, gone;
    CUstream s = make(0);
    assert_int_equal(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuEventCreate(&e, 8), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    assert_int_equal(cuEventCreate(&gone, 0), CUDA_SUCCESS);
    assert_int_equal(cuEventDestroy(gone), CUDA_SUCCESS);
    assert_int_equal(cuEventDestroy_v2(gone), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventQuery(gone), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventQuery(NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventSynchronize((CUevent)s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventRecord(NULL, s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventRecord(e, (CUstream)e), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(cuEventRecordWithFlags(e, s, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWaitEvent(s, e, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(cuStreamWaitEvent(s, e, 4), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWaitEvent(s, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
    struct CUctx_st *other = fake_context();
    assert_int_equal(cuEventRecord(e, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventRecord(e, s), CUDA_SUCCESS);
    assert_int_equal(cuStreamWaitEvent(NULL, e, 0), CUDA_SUCCESS);
    assert_int_equal(cuEventCreate(&gone, 0), CUDA_SUCCESS);
    fake_context_free(other);
    assert_int_equal(cuEventQuery(gone), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventCreate(&e, 0), CUDA_ERROR_INVALID_CONTEXT);
    fake_current = *state;
}

// --- streams -----------------------------------------------------------------------------------------------

static void good_asking(void **state)
{
    CUstream s, t = make(0);
    int least, greatest, priority;
    unsigned flags;
    unsigned long long id, other;
    CUcontext ctx;
    CUgreenCtx green = (CUgreenCtx)state;
    CUdevice device = 7;
    assert_int_equal(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
    assert_true(least == 0 && greatest == -5);
    assert_int_equal(cuCtxGetStreamPriorityRange(NULL, NULL), CUDA_SUCCESS);
    assert_int_equal(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -100), CUDA_SUCCESS);
    assert_int_equal(cuStreamGetPriority(s, &priority), CUDA_SUCCESS);
    assert_int_equal(priority, -5);
    assert_int_equal(cuStreamGetFlags_ptsz(s, &flags), CUDA_SUCCESS);
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    assert_int_equal(cuStreamGetFlags(NULL, &flags), CUDA_SUCCESS);
    assert_int_equal(flags, 0);
    assert_int_equal(cuStreamGetId(s, &id), CUDA_SUCCESS);
    assert_int_equal(cuStreamGetId(t, &other), CUDA_SUCCESS);
    assert_true(id != other);
    assert_int_equal(cuStreamGetId(CU_STREAM_PER_THREAD, &id), CUDA_SUCCESS);
    assert_int_equal(cuStreamGetId_ptsz(NULL, &other), CUDA_SUCCESS);
    assert_true(id == other);
    assert_int_equal(cuStreamGetId(NULL, &other), CUDA_SUCCESS);
    assert_true(id != other);
    assert_int_equal(cuStreamGetCtx(t, &ctx), CUDA_SUCCESS);
    assert_ptr_equal(ctx, *state);
    assert_int_equal(cuStreamGetCtx_v2(t, NULL, &green), CUDA_SUCCESS);
    assert_null(green);
    assert_int_equal(cuStreamGetDevice(t, &device), CUDA_SUCCESS);
    assert_int_equal(device, 0);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(cuStreamGetPriority(s, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void good_attributes(void **state)
{
    CUstream s = make(0), t = make(0);
    CUstreamAttrValue v = {.syncPolicy = CU_SYNC_POLICY_YIELD};
    assert_int_equal(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v), CUDA_SUCCESS);
    assert_int_equal(cuStreamCopyAttributes(t, s), CUDA_SUCCESS);
    v.syncPolicy = CU_SYNC_POLICY_AUTO;
    assert_int_equal(cuStreamGetAttribute(t, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v), CUDA_SUCCESS);
    assert_int_equal(v.syncPolicy, CU_SYNC_POLICY_YIELD);
    v.syncPolicy = (CUsynchronizationPolicy)99;
    assert_int_equal(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v),
                     CUDA_ERROR_INVALID_VALUE);
    v.priority = -30;
    assert_int_equal(cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, &v), CUDA_SUCCESS);
    assert_int_equal(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, &v), CUDA_SUCCESS);
    assert_int_equal(v.priority, -5);
    assert_int_equal(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &v), CUDA_SUCCESS);
    assert_true(v.memSyncDomainMap.default_ == 0 && v.memSyncDomainMap.remote == 1);
    assert_int_equal(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_PRIORITY, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void bad_streams(void **state)
{
    CUstream s = make(0);
    assert_int_equal(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamCreate(&s, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuStreamDestroy_v2(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuStreamDestroy_v2(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuStreamDestroy(s), CUDA_SUCCESS);
    assert_int_equal(cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuStreamSynchronize((CUstream)16), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuCtxSynchronize_v2((CUcontext)&s), CUDA_ERROR_INVALID_CONTEXT);
    s = make(0);
    fake_current = NULL;
    assert_int_equal(cuStreamQuery(s), CUDA_SUCCESS);
    assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    fake_current = *state;
}

static void good_destroy_while_busy(void **state)
{
    CUstream s = make(0);
    struct step a = {0}, b = {0};
    push_step(s, &a);
    push_note(s, &b);
    assert_int_equal(cuStreamDestroy_v2(s), CUDA_SUCCESS);
    assert_int_equal(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    atomic_store(&a.go, true);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    assert_true(ran(&b));
    assert_ptr_equal(((struct CUctx_st *)*state)->streams, ((struct CUctx_st *)*state)->legacy);
}

// --- a thread's own stream ---------------------------------------------------------------------------------

static struct step thread_step;

static void *own_stream(void *arg)
{
    unsigned long long *id = arg;
    FAKE_CHECK(cuStreamGetId(CU_STREAM_PER_THREAD, id) == CUDA_SUCCESS);
    struct CUstream_st *s;
    FAKE_CHECK(stream_get(NULL, true, &s) == CUDA_SUCCESS);
    FAKE_CHECK(stream_push_grid(s, fake_grid(step_block, 1, &thread_step), fake_grid_done, NULL, NULL) ==
               CUDA_SUCCESS);
    return NULL;
}

static void good_per_thread(void **state)
{
    struct CUctx_st *ctx = *state;
    unsigned long long mine, theirs;
    struct step a = {0};
    thread_step = (struct step){0};
    pthread_t thread;
    assert_int_equal(cuStreamGetId(CU_STREAM_PER_THREAD, &mine), CUDA_SUCCESS);
    pthread_create(&thread, NULL, own_stream, &theirs);
    pthread_join(thread, NULL);
    assert_true(mine != theirs);
    // The thread has ended, its work has not. The legacy stream waits for it, another thread's stream does
    // not.
    push_note(NULL, &a);
    assert_int_equal(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    settle();
    assert_false(ran(&a));
    atomic_store(&thread_step.go, true);
    assert_int_equal(cuStreamSynchronize_ptsz(CU_STREAM_LEGACY), CUDA_SUCCESS);
    assert_true(ran(&a));
    unsigned n = 0;
    for (struct CUstream_st *s = ctx->streams; s; s = s->next_in_context)
        n++;
    assert_int_equal(n, 2);
}

static void good_per_thread_in_two_contexts(void **state)
{
    unsigned long long a, b, c;
    assert_int_equal(cuStreamGetId(CU_STREAM_PER_THREAD, &a), CUDA_SUCCESS);
    struct CUctx_st *other = fake_context();
    assert_int_equal(cuStreamGetId(CU_STREAM_PER_THREAD, &b), CUDA_SUCCESS);
    fake_context_free(other);
    fake_current = *state;
    assert_int_equal(cuStreamGetId(CU_STREAM_PER_THREAD, &c), CUDA_SUCCESS);
    assert_true(a == c && a != b);
}

// --- callbacks ---------------------------------------------------------------------------------------------

static CUresult inside[4], told;
static CUstream told_stream;
static atomic_uint host_calls;

static void host_function(void *arg)
{
    CUevent e;
    inside[0] = cuStreamQuery(arg);
    inside[1] = cuCtxSynchronize();
    inside[2] = cuEventCreate(&e, 0);
    inside[3] = cuStreamSynchronize(arg);
    atomic_fetch_add(&host_calls, 1);
}

static void callback(CUstream s, CUresult r, void *arg)
{
    told = r;
    told_stream = s;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void good_callbacks(void **state)
{
    CUstream s = make(0);
    atomic_uint calls = 0;
    struct step a = {0};
    atomic_store(&host_calls, 0);
    push_step(s, &a);
    assert_int_equal(cuLaunchHostFunc(s, host_function, s), CUDA_SUCCESS);
    assert_int_equal(cuStreamAddCallback(s, callback, &calls, 0), CUDA_SUCCESS);
    settle();
    assert_int_equal(atomic_load(&host_calls), 0);
    atomic_store(&a.go, true);
    assert_int_equal(cuStreamSynchronize(s), CUDA_SUCCESS);
    assert_int_equal(atomic_load(&host_calls), 1);
    assert_int_equal(atomic_load(&calls), 1);
    assert_int_equal(told, CUDA_SUCCESS);
    assert_ptr_equal(told_stream, s);
    assert_int_equal(inside[0], CUDA_ERROR_NOT_READY);
    for (int i = 1; i < 4; i++)
        assert_int_equal(inside[i], CUDA_ERROR_NOT_PERMITTED);
    assert_int_equal(cuLaunchHostFunc(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamAddCallback(s, callback, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamAddCallback(s, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

// --- errors ------------------------------------------------------------------------------------------------

static enum exec_step faulty(struct exec_grid *g, unsigned i)
{
    return EXEC_DONE;
}

static void bad_kernel_ends_the_context(void **state)
{
    CUstream s = make(0), t = make(CU_STREAM_NON_BLOCKING);
    CUevent e;
    assert_int_equal(cuEventCreate(&e, 0), CUDA_SUCCESS);
    struct step first = {0}, forever = {0}, dropped = {0}, dropped_grid = {.go = true};
    atomic_uint calls = 0, ended = atomic_load(&fake_ended);
    struct CUstream_st *stream;
    atomic_store(&host_calls, 0);
    push_step(t, &forever);  // waits for something that never comes: ends with the other
    push_step(s, &first);
    assert_int_equal(stream_get(s, false, &stream), CUDA_SUCCESS);
    assert_int_equal(stream_push_grid(stream, fake_grid(faulty, 1, NULL), fake_grid_done, NULL, NULL),
                     CUDA_SUCCESS);
    push_note(s, &dropped);
    push_step(s, &dropped_grid);
    assert_int_equal(cuLaunchHostFunc(s, host_function, NULL), CUDA_SUCCESS);
    assert_int_equal(cuStreamAddCallback(s, callback, &calls, 0), CUDA_SUCCESS);
    assert_int_equal(cuEventRecord(e, s), CUDA_SUCCESS);
    atomic_store(&first.go, true);
    assert_int_equal(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(atomic_load(&dropped.dropped));
    assert_int_equal(atomic_load(&host_calls), 0);
    assert_int_equal(atomic_load(&calls), 1);
    assert_int_equal(told, CUDA_ERROR_ILLEGAL_ADDRESS);
    cpu_context_wait(*state);
    assert_int_equal(atomic_load(&fake_ended), ended + 4);
    assert_false(ran(&dropped_grid) || ran(&forever));
    assert_int_equal(cuStreamQuery(t), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuEventSynchronize(e), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuStreamCreate(&t, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuStreamDestroy_v2(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(cuEventDestroy_v2(e), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void bad_out_of_memory(void **state)
{
    struct step a = {0};
    CUstream s = make(0), t;
    CUevent e, f;
    CUresult r;
    assert_int_equal(cuEventCreate(&e, 0), CUDA_SUCCESS);
    push_step(s, &a);
    assert_int_equal(cuEventRecord(e, s), CUDA_SUCCESS);
    mem_fail_after(0);
    while (!(r = cuStreamCreate(&t, 0)))  // in the memory of earlier streams
        ;
    assert_int_equal(r, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuEventCreate(&f, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuEventRecord(e, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuStreamWaitEvent(NULL, e, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuLaunchHostFunc(s, host_function, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuCtxWaitEvent(*state, e), CUDA_ERROR_OUT_OF_MEMORY);
    mem_fail_after(1);
    assert_int_equal(cuLaunchHostFunc(s, host_function, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    mem_fail_after(-1);
    assert_int_equal(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    atomic_store(&a.go, true);
    assert_int_equal(cuEventSynchronize(e), CUDA_SUCCESS);
}

// --- words of memory ---------------------------------------------------------------------------------------

static void good_wait_and_write(void **state)
{
    assert_int_equal(space_init(), 0);
    uint64_t *page = aligned_alloc(4096, 4096);
    memset(page, 0, 4096);
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)page;
    space_set(at, 4096, SPACE_READ | SPACE_WRITE);
    CUstream s = make(CU_STREAM_NON_BLOCKING), t = make(CU_STREAM_NON_BLOCKING);
    static const struct {
        unsigned flags;
        uint32_t value, wrong, right;
    } rows[] = {
        {CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6},
        {CU_STREAM_WAIT_VALUE_GEQ, 0xfffffffe, 0xfffffffd, 2},
        {CU_STREAM_WAIT_VALUE_EQ, 7, 8, 7},
        {CU_STREAM_WAIT_VALUE_AND, 0xc, 0x3, 0x4},
        {CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0, 0xf, 0xe},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct step a = {0};
        assert_int_equal(cuStreamWriteValue32_v2(t, at, rows[i].wrong, 0), CUDA_SUCCESS);
        assert_int_equal(cuStreamSynchronize(t), CUDA_SUCCESS);
        assert_int_equal(cuStreamWaitValue32_v2(s, at, rows[i].value, rows[i].flags), CUDA_SUCCESS);
        push_note(s, &a);
        settle();
        assert_false(ran(&a));
        assert_int_equal(cuStreamWriteValue32(t, at, rows[i].right, 1), CUDA_SUCCESS);
        assert_int_equal(cuStreamSynchronize(s), CUDA_SUCCESS);
        assert_true(ran(&a));
    }
    CUstreamBatchMemOpParams batch[] = {
        {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
                       .address = at + 8,
                       .value64 = (uint64_t)1 << 40}},
        {.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER}},
        {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                        .address = at + 16,
                        .value64 = UINT64_MAX}},
    };
    assert_int_equal(cuStreamBatchMemOp_v2(s, 3, batch, 0), CUDA_SUCCESS);
    settle();
    assert_int_equal(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    __atomic_store_n(&page[1], (uint64_t)1 << 40, __ATOMIC_RELEASE);
    assert_int_equal(cuStreamSynchronize(s), CUDA_SUCCESS);
    assert_true(page[2] == UINT64_MAX);
    space_set(at, 4096, 0);
    free(page);
}

static void bad_wait_and_write(void **state)
{
    assert_int_equal(space_init(), 0);
    void *page = aligned_alloc(4096, 4096);
    memset(page, 0, 4096);
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)page;
    space_set(at, 4096, SPACE_READ | SPACE_WRITE);
    CUstream s = make(0);
    assert_int_equal(cuStreamWriteValue32_v2(s, at + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue32_v2(s, at, 0, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue64_v2(s, at + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue32_v2(s, 16, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWaitValue32_v2(s, at, 0, 4), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamWaitValue32_v2(s, at, 0, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuStreamBatchMemOp_v2(s, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamBatchMemOp_v2(s, 0, NULL, 0), CUDA_SUCCESS);
    assert_int_equal(cuStreamBatchMemOp_v2(s, 257, (CUstreamBatchMemOpParams *)page, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamBatchMemOp_v2(s, 1, (CUstreamBatchMemOpParams *)page, 0),
                     CUDA_ERROR_INVALID_VALUE);
    if (SANITIZE_THREAD)
        goto out;  // readers of rights take no lock
    // The word is freed while a stream waits for it.
    assert_int_equal(cuStreamWaitValue32_v2(s, at, 1, 0), CUDA_SUCCESS);
    settle();
    space_set(at, 4096, 0);
    assert_int_equal(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
out:
    space_set(at, 4096, 0);
    free(page);
}

// --- a fork ------------------------------------------------------------------------------------------------

static atomic_bool may_fork, has_forked, has_stream;

// Destructors run in the order of their keys.
static void end_child(void *child)
{
    if (*(pid_t *)child == 0)
        _exit(0);
}

static void *fork_and_end(void *arg)
{
    unsigned long long id;
    FAKE_CHECK(cuStreamGetId(CU_STREAM_PER_THREAD, &id) == CUDA_SUCCESS);
    atomic_store(&has_stream, true);
    while (!atomic_load(&may_fork))
        sched_yield();
    pthread_key_t last;
    pthread_key_create(&last, end_child);
    pthread_setspecific(last, arg);
    *(pid_t *)arg = fork();
    if (*(pid_t *)arg == 0)
        alarm(60);
    atomic_store(&has_forked, true);
    return NULL;  // in the child: the thread's own stream is released
}

// The child finds the pool's lock taken for ever, and ends all the same.
static void good_fork(void **state)
{
    if (SANITIZE_THREAD)
        skip();  // its runtime does not survive a fork of a process with threads
    struct step a = {0};
    push_step(NULL, &a);
    pid_t child = -1;
    pthread_t thread;
    fflush(stdout);
    pthread_create(&thread, NULL, fork_and_end, &child);
    while (!atomic_load(&has_stream))
        sched_yield();
    pool_lock();
    atomic_store(&may_fork, true);
    while (!atomic_load(&has_forked))
        sched_yield();
    pool_unlock();
    pthread_join(thread, NULL);
    assert_true(child > 0);
    int status = -1;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    atomic_store(&a.go, true);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_order_in_stream),
        TEST(good_legacy_waits_for_blocking),
        TEST(good_blocking_waits_for_legacy),
        TEST(good_legacy_waits_for_many),
        TEST(good_wait_for_event),
        TEST(good_context_events),
        TEST(good_random_programs),
        TEST(good_elapsed_time),
        TEST(bad_events),
        TEST(good_asking),
        TEST(good_attributes),
        TEST(bad_streams),
        TEST(good_destroy_while_busy),
        TEST(good_per_thread),
        TEST(good_per_thread_in_two_contexts),
        TEST(good_callbacks),
        TEST(bad_kernel_ends_the_context),
        TEST(bad_out_of_memory),
        TEST(good_wait_and_write),
        TEST(bad_wait_and_write),
        TEST(good_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
