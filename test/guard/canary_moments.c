// SPDX-License-Identifier: MIT
// When and where --mode=canary finds what kernels wrote: while they run, at frees, at exit, during captures,
// in child processes; with correct twins. See canary_cases.h. Only the error of a case depends on `bad`.
#include "canary_cases.h"

enum { MANY = 100000 };

// When it is found.

// Only the monitor can see it: the byte is restored before anything else checks it.
static void restored_at(CUdeviceptr p, CUdeviceptr at, int bad)
{
    kernels_word *go = kernels_new_word();
    kernels_restore(&kernels, at, go, flag, NULL);
    wait_for_write(bad);
    await_report(bad, PATIENCE_S);
    // Relaxed: no other data depends on it.
    atomic_store_explicit(go, 1, memory_order_relaxed);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuMemFreeHost((void *)go));
}

static void restored(int bad)
{
    CUdeviceptr p = plain(SMALL);
    restored_at(p, p + SMALL - 1 + (unsigned)bad, bad);
}

static void restored_before(int bad)
{
    CUdeviceptr p = plain(LARGE);
    restored_at(p, p - (unsigned)bad, bad);
}

// The host makes no call of CUDA in which the canary could be checked.
static void host_idle(int bad)
{
    CUdeviceptr p = plain(SMALL);
    flip_and_see(p + SMALL - 1 + (unsigned)bad, 1, NULL, bad);
    await_report(bad, PATIENCE_S);
    printf("went on\n");
    fflush(stdout);  // the process is killed without flushing
    NEED(d.cuMemFree_v2(p));
}

static void ends_at_once(int bad)
{
    CUdeviceptr p = plain(SMALL);
    kernels_flip(&kernels, p + SMALL - 1 + (unsigned)bad, 1, flag, NULL);
    exit(0);
}

static void *let_go(void *word)
{
    usleep(50000);
    // Release: the kernel that waits for it need not see more.
    atomic_store_explicit((kernels_word *)word, 1, memory_order_release);
    return NULL;
}

// The process dies by a signal, and its twin ends.
static void aborts(int bad)
{
    CUdeviceptr p = plain(SMALL);
    flip_and_see(p + SMALL - 1 + (unsigned)bad, 1, NULL, bad);
    if (bad)
        abort();
}

// The kernel still runs.
static void aborts_at_once(int bad)
{
    CUdeviceptr p = plain(SMALL);
    kernels_word *go = kernels_new_word();
    pthread_t t;
    kernels_hold(&kernels, go, NULL);
    kernels_flip(&kernels, p + SMALL - 1 + (unsigned)bad, 1, flag, NULL);
    pthread_create(&t, NULL, let_go, go);
    if (bad) {
        printf("wrote %.6f\n", kernels_now() + 0.05);
        fflush(stdout);
        abort();
    }
    pthread_join(t, NULL);
    wait_for_write(0);
}

static void ends_after_write(int bad)
{
    CUdeviceptr p = plain(SMALL);
    flip_and_see(p + SMALL - 1 + (unsigned)bad, 1, NULL, bad);
    exit(0);
}

static void context_ends(int bad)
{
    CUcontext other;
    struct kernels there;
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    kernels_load(&there);
    CUdeviceptr p = plain(SMALL);
    kernels_flip(&there, p + SMALL - 1 + (unsigned)bad, 1, flag, NULL);
    wait_for_write(bad);
    NEED(d.cuCtxDestroy_v2(other));
    NEED(d.cuCtxSetCurrent(context));
}

static void device_reset(int bad)
{
    CUdeviceptr p = plain(SMALL);
    flip_and_see(p + SMALL - 1 + (unsigned)bad, 1, NULL, bad);
    NEED(d.cuDevicePrimaryCtxReset_v2(0));
}

static void freed_at_once(int bad)
{
    CUdeviceptr p = plain(SMALL);
    kernels_flip(&kernels, p + SMALL - 1 + (unsigned)bad, 1, flag, NULL);
    NEED(d.cuMemFree_v2(p));
    wait_for_write(bad);
}

static void freed_at_once_large(int bad)
{
    CUdeviceptr p = plain(LARGE);
    kernels_flip(&kernels, p + LARGE - 1 + (unsigned)bad, 1, flag, NULL);
    NEED(d.cuMemFree_v2(p));
    wait_for_write(bad);
}

// The kernel writes while cuMemFreeHost waits for it.
static void pinned_freed_at_once(int bad)
{
    kernels_word *go = kernels_new_word();
    pthread_t t;
    void *p;
    NEED(d.cuMemHostAlloc(&p, SMALL, CU_MEMHOSTALLOC_DEVICEMAP));
    kernels_hold(&kernels, go, NULL);
    kernels_flip(&kernels, (uintptr_t)p + SMALL - 1 + (unsigned)bad, 1, flag, NULL);
    pthread_create(&t, NULL, let_go, go);
    NEED(d.cuMemFreeHost(p));
    wait_for_write(bad);
    pthread_join(t, NULL);
    NEED(d.cuMemFreeHost(go));
}

// A write into a freed buffer stays until the place is reused, and a scan must see it before. How long that
// takes is unknown, so the wait grows.
static void written_after_free(int bad)
{
    for (double seconds = 0.2; seconds < PATIENCE_S; seconds *= 2) {
        CUdeviceptr p = plain(SMALL), q = plain(SMALL);
        kernels_fill(&kernels, p, SMALL, NULL);
        NEED(d.cuMemFree_v2(p));
        usleep((useconds_t)(seconds * 1e6));
        flip_and_see(bad ? p : q, 4, NULL, bad);
        int done = await_report(bad, seconds);
        NEED(d.cuMemFree_v2(q));
        if (done)
            return;
    }
}

static void freed_in_order(int bad)
{
    CUdeviceptr p, q;
    CUstream stream;
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuMemAllocAsync(&p, SMALL, stream));
    kernels_flip(&kernels, p + SMALL - 1 + (unsigned)bad, 1, flag, stream);
    NEED(d.cuMemFreeAsync(p, stream));
    NEED(d.cuMemAllocAsync(&q, SMALL, stream));
    kernels_fill(&kernels, q, SMALL, stream);
    NEED(d.cuMemFreeAsync(q, stream));
    wait_for_write(bad);
    NEED(d.cuStreamSynchronize(stream));
    NEED(d.cuStreamDestroy_v2(stream));
}

static void plain_freed_in_order(int bad)
{
    CUdeviceptr p = plain(SMALL);
    kernels_flip(&kernels, p + SMALL - 1 + (unsigned)bad, 1, flag, NULL);
    NEED(d.cuMemFreeAsync(p, NULL));
    wait_for_write(bad);
    NEED(d.cuStreamSynchronize(NULL));
}

// The free waits in its stream while a kernel of another stream writes.
static void freed_later(int bad)
{
    static kernels_word *go;
    CUstream held, other;
    CUdeviceptr p;
    if (!go)
        go = kernels_new_word();
    // Relaxed: launches and waits order.
    atomic_store_explicit(go, 0, memory_order_relaxed);
    NEED(d.cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    NEED(d.cuMemAllocAsync(&p, SMALL, held));
    NEED(d.cuStreamSynchronize(held));
    kernels_hold(&kernels, go, held);
    NEED(d.cuMemFreeAsync(p, held));
    flip_and_see(p + SMALL - 1 + (unsigned)bad, 1, other, bad);
    atomic_store_explicit(go, 1, memory_order_relaxed);
    NEED(d.cuStreamSynchronize(held));
    NEED(d.cuStreamDestroy_v2(held));
    NEED(d.cuStreamDestroy_v2(other));
}

// One wrong buffer among very many.
static void many(int bad)
{
    CUdeviceptr *p = calloc(MANY, sizeof *p);
    for (unsigned i = 0; i < MANY; i++)
        p[i] = plain(100 + i % 50);
    flip_and_see(p[77777] + 100 + 77777 % 50 - 1 + (unsigned)bad, 1, NULL, bad);
    NEED(d.cuCtxSynchronize());
    for (unsigned i = 0; i < MANY; i++)
        NEED(d.cuMemFree_v2(p[i]));
    free(p);
}

// While a stream is captured in the strictest mode: moat must make no call that a capture forbids.

struct capture {
    CUstream stream;
    CUgraph graph;
    CUdeviceptr q;
    pthread_barrier_t begun, written;
};

static void capture_begin(struct capture *c)
{
    NEED(d.cuStreamBeginCapture_v2(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kernels_fill(&kernels, c->q, SMALL, c->stream);
}

static void capture_end(struct capture *c)
{
    NEED(d.cuStreamEndCapture(c->stream, &c->graph));
}

static void capture_replay(struct capture *c)
{
    CUgraphExec run;
    NEED(d.cuGraphInstantiateWithFlags(&run, c->graph, 0));
    NEED(d.cuGraphLaunch(run, c->stream));
    NEED(d.cuStreamSynchronize(c->stream));
    NEED(d.cuGraphExecDestroy(run));
    NEED(d.cuGraphDestroy(c->graph));
    NEED(d.cuStreamDestroy_v2(c->stream));
    NEED(d.cuMemFree_v2(c->q));
}

static void *capture_thread(void *argument)
{
    struct capture *c = argument;
    NEED(d.cuCtxSetCurrent(context));
    capture_begin(c);
    pthread_barrier_wait(&c->begun);
    pthread_barrier_wait(&c->written);
    capture_end(c);
    return NULL;
}

// NEED skips the case if there is no capture at all; in the main thread, where exit is safe.
static void capture_new(struct capture *c)
{
    NEED(d.cuStreamCreate(&c->stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamBeginCapture_v2(c->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    NEED(d.cuStreamEndCapture(c->stream, &c->graph));
    if (c->graph)
        NEED(d.cuGraphDestroy(c->graph));
    c->q = plain(SMALL);
}

static void captured_elsewhere(int bad)
{
    struct capture c = {0};
    CUstream other;
    pthread_t t;
    capture_new(&c);
    CUdeviceptr p = plain(SMALL);
    NEED(d.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    pthread_barrier_init(&c.begun, NULL, 2);
    pthread_barrier_init(&c.written, NULL, 2);
    pthread_create(&t, NULL, capture_thread, &c);
    pthread_barrier_wait(&c.begun);
    flip_and_see(p + SMALL - 1 + (unsigned)bad, 1, other, bad);
    usleep(bad ? 100000 : 2000);
    pthread_barrier_wait(&c.written);
    pthread_join(t, NULL);
    capture_replay(&c);
    NEED(d.cuStreamSynchronize(other));
    NEED(d.cuStreamDestroy_v2(other));
    NEED(d.cuMemFree_v2(p));
}

static void captured_here(int bad)
{
    struct capture c = {0};
    CUstream other;
    capture_new(&c);
    CUdeviceptr p = plain(SMALL);
    NEED(d.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    capture_begin(&c);
    flip_and_see(p + SMALL - 1 + (unsigned)bad, 1, other, bad);
    usleep(bad ? 100000 : 2000);
    capture_end(&c);
    capture_replay(&c);
    NEED(d.cuStreamSynchronize(other));
    NEED(d.cuStreamDestroy_v2(other));
    NEED(d.cuMemFree_v2(p));
}

// The captured kernel itself is wrong, each time it is replayed.
static void captured_kernel(int bad)
{
    struct capture c = {0};
    capture_new(&c);
    NEED(d.cuStreamBeginCapture_v2(c.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kernels_flip(&kernels, c.q + SMALL - 1 + (unsigned)bad, 1, flag, c.stream);
    capture_end(&c);
    CUdeviceptr p = c.q;
    c.q = plain(SMALL);
    capture_replay(&c);
    wait_for_write(bad);
    NEED(d.cuMemFree_v2(p));
}

// A graph that was correct the first time. Without scans of the monitor the program's own waits find the
// error, though only a graph was launched.
static void replayed(int bad)
{
    struct capture c = {0};
    CUgraphNode node;
    CUgraphExec run;
    CUDA_KERNEL_NODE_PARAMS parameters;
    size_t nodes = 1;
    uint64_t count = 1;
    capture_new(&c);
    CUdeviceptr at = c.q + SMALL - 1;
    NEED(d.cuStreamBeginCapture_v2(c.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kernels_flip(&kernels, at, count, flag, c.stream);
    capture_end(&c);
    NEED(d.cuGraphInstantiateWithFlags(&run, c.graph, 0));
    NEED(d.cuGraphLaunch(run, c.stream));
    NEED(d.cuCtxSynchronize());
    kernels_wait(flag);
    at += (unsigned)bad;
    NEED(d.cuGraphGetNodes(c.graph, &node, &nodes));
    NEED(d.cuGraphKernelNodeGetParams_v2(node, &parameters));
    parameters.kernelParams = (void *[]){&at, &count, &flag};
    NEED(d.cuGraphExecKernelNodeSetParams_v2(run, node, &parameters));
    NEED(d.cuGraphLaunch(run, c.stream));
    NEED(d.cuCtxSynchronize());
    wait_for_write(bad);
    for (double end = kernels_now() + PATIENCE_S; bad && kernels_now() < end && !is_reported(); usleep(10000))
        NEED(d.cuCtxSynchronize());
    NEED(d.cuGraphExecDestroy(run));
    NEED(d.cuGraphDestroy(c.graph));
    NEED(d.cuStreamDestroy_v2(c.stream));
    NEED(d.cuMemFree_v2(c.q));
}

// Processes.

// main forks before CUDA is used: see forks.
static void forked_before(int bad)
{
    single(bad);
}

// The child uses no CUDA and exits normally.
static void forked_after(int bad)
{
    CUdeviceptr p = plain(SMALL);
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        exit(0);
    if (status_of(child)) {
        printf("the child has a status\n");
        exit(2);
    }
    behind(p, SMALL, bad);
    NEED(d.cuMemFree_v2(p));
}

static void forked_exec(int bad)
{
    CUdeviceptr p = plain(SMALL);
    behind(p, SMALL, 0);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        execl(self, self, bad ? "bad" : "good", "freed_at_once", (char *)NULL);
        _exit(3);
    }
    if (status_of(child)) {
        printf("the child has a status\n");
        exit(2);
    }
    NEED(d.cuMemFree_v2(p));
}

// Which kernels a report names.

// A kernel that had ended before a clean scan is not named.
static void blamed_alone(int bad)
{
    CUdeviceptr p = plain(SMALL);
    kernels_fill(&kernels, p, SMALL, NULL);
    NEED(d.cuCtxSynchronize());
    usleep(500000);
    behind(p, SMALL, bad);
    NEED(d.cuMemFree_v2(p));
}

// But one is named if the scan after it could not check its buffer, because the place had another buffer that
// was not checked yet.
static void blamed_in_a_used_place(int bad)
{
    CUdeviceptr p, other = plain(SMALL);
    NEED(d.cuMemAllocAsync(&p, LARGE, NULL));
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuMemAllocAsync(&p, LARGE, NULL));
    behind(p, LARGE, bad);
    kernels_fill(&kernels, other, SMALL, NULL);
    NEED(d.cuCtxSynchronize());
    usleep(100000);
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemFree_v2(other));
}

static const struct cases_row cases[] = {
    CASE(restored, OVER, "once"),
    CASE(restored_before, UNDER, "once"),
    CASE(host_idle, OVER, "once"),
    CASE(ends_at_once, OVER, "once"),
    CASE(aborts, OVER, "once"),
    CASE(aborts_at_once, OVER, "once"),
    CASE(ends_after_write, OVER, "once"),
    CASE(context_ends, OVER, "once"),
    CASE(device_reset, OVER, "once"),
    CASE(freed_at_once, OVER, ""),
    CASE(freed_at_once_large, OVER, ""),
    CASE(pinned_freed_at_once, OVER, "once"),
    CASE(written_after_free, "heap-use-after-free", "once"),
    CASE(freed_in_order, OVER, ""),
    CASE(plain_freed_in_order, OVER, ""),
    CASE(freed_later, OVER, ""),
    CASE(many, OVER, "once"),
    CASE(captured_elsewhere, OVER, ""),
    CASE(captured_here, OVER, ""),
    CASE(captured_kernel, OVER, ""),
    CASE(replayed, OVER, ""),
    CASE(forked_before, OVER, ""),
    CASE(forked_after, OVER, "once"),
    CASE(forked_exec, OVER, "once"),
    CASE(blamed_alone, OVER, "once"),
    CASE(blamed_in_a_used_place, OVER, "once"),
};

int main(int argc, char **argv)
{
    return canary_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
