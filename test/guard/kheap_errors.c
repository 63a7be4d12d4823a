// SPDX-License-Identifier: MIT
// What kernels do wrong with memory from malloc, for --mode=canary, with correct twins. See canary_cases.h.
// Only the error of a case depends on `bad`. KHEAP_MANY: how many buffers live at once in the case of that
// name, 20000 by default.
#include "canary_cases.h"
#include "kheap_kernels.h"

enum { THREADS = 64, LATER = 2, AFTER = 1, NEVER = 0 };

#define DOUBLE "double-free"

static struct {
    CUmodule module;
    CUfunction take, give, write, twice, both, fill;
} heap;

static CUfunction function(CUmodule module, const char *name)
{
    CUfunction f;
    NEED(d.cuModuleGetFunction(&f, module, name));
    return f;
}

static void need_heap(void)
{
    if (heap.module)
        return;
    NEED(d.cuModuleLoadData(&heap.module, kheap_text));
    heap.take = function(heap.module, "take");
    heap.give = function(heap.module, "give");
    heap.write = function(heap.module, "write");
    heap.twice = function(heap.module, "twice");
    heap.both = function(heap.module, "both");
    heap.fill = function(heap.module, "fill_heap");
}

static void launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream, void **arguments)
{
    NEED(d.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
}

// Takes a buffer, flips a byte in or beside it, and frees it or not.
static void write_at(uint64_t size, uint64_t at, uint32_t when, int bad)
{
    need_heap();
    void *arguments[] = {&size, &at, &when, &flag};
    launch(heap.write, 1, 1, NULL, arguments);
    wait_for_write(bad);
    NEED(d.cuCtxSynchronize());
}

// Returns pointers that the host can read.
static CUdeviceptr *take(CUfunction f, unsigned blocks, unsigned threads, uint64_t size, CUstream stream)
{
    void *list;
    NEED(d.cuMemHostAlloc(&list, sizeof(CUdeviceptr) * blocks * threads, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(list, 0, sizeof(CUdeviceptr) * blocks * threads);
    void *arguments[] = {&list, &size};
    launch(f, blocks, threads, stream, arguments);
    NEED(d.cuStreamSynchronize(stream));
    for (size_t i = 0; i < (size_t)blocks * threads; i++)
        if (!((CUdeviceptr *)list)[i]) {
            printf("malloc returned no memory for thread %zu\n", i);
            exit(2);
        }
    return list;
}

static void give(CUfunction f, unsigned blocks, unsigned threads, CUdeviceptr *list, CUstream stream)
{
    void *arguments[] = {&list};
    launch(f, blocks, threads, stream, arguments);
    NEED(d.cuStreamSynchronize(stream));
}

static void flip_one(CUdeviceptr p, CUstream stream, int bad)
{
    kernels_flip(&kernels, p, 1, flag, stream);
    wait_for_write(bad);
}

// The paper's experiments.

static void single_kernel(int bad)
{
    write_at(SMALL, SMALL - 1 + (unsigned)bad, AFTER, bad);
}

static void sequential_kernels(int bad)
{
    need_heap();
    CUdeviceptr *list = take(heap.take, 1, THREADS, SMALL, NULL);
    flip_one(list[THREADS / 2] + SMALL - 1 + (unsigned)bad, NULL, bad);
    NEED(d.cuCtxSynchronize());
    give(heap.give, 1, THREADS, list, NULL);
    NEED(d.cuMemFreeHost(list));
}

// One kernel waits while another writes: only the monitor can see it before the first one ends.
static void concurrent_kernels(int bad)
{
    kernels_word *go = kernels_new_word();
    CUstream a, b;
    need_heap();
    NEED(d.cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CUdeviceptr *list = take(heap.take, 2, THREADS, SMALL, a);
    kernels_hold(&kernels, go, a);
    flip_one(list[THREADS] + SMALL - 1 + (unsigned)bad, b, bad);
    if (bad)
        usleep(200000);
    atomic_store(go, 1);
    NEED(d.cuStreamSynchronize(a));
    give(heap.give, 2, THREADS, list, a);
    NEED(d.cuStreamDestroy_v2(a));
    NEED(d.cuStreamDestroy_v2(b));
    NEED(d.cuMemFreeHost(list));
    NEED(d.cuMemFreeHost((void *)go));
}

// One byte, at either end.

static void one_byte_behind(int bad)
{
    write_at(ODD, ODD - 1 + (unsigned)bad, NEVER, bad);
}

static void one_byte_before(int bad)
{
    write_at(ODD, 0 - (uint64_t)bad, NEVER, bad);
}

static void last_byte_of_canary(int bad)
{
    write_at(ODD, bad ? ODD + 7 : ODD - 1, NEVER, bad);
}

static void small_buffer(int bad)
{
    write_at(1, (unsigned)bad, AFTER, bad);
}

static void large_buffer(int bad)
{
    write_at(1 << 20, (1 << 20) - 1 + (unsigned)bad, AFTER, bad);
}

static void before_free(int bad)
{
    write_at(SMALL, 0 - (uint64_t)bad, AFTER, bad);
}

// The buffer is written after it was freed.
static void after_free(int bad)
{
    write_at(SMALL, SMALL - 1 + (unsigned)bad, bad ? LATER : AFTER, bad);
}

static void before_after_free(int bad)
{
    write_at(SMALL, 0 - (uint64_t)bad, bad ? LATER : AFTER, bad);
}

// Frees.

static void double_free(int bad)
{
    uint64_t size = SMALL;
    uint32_t times = 1 + (unsigned)bad;
    need_heap();
    void *arguments[] = {&size, &times};
    launch(heap.twice, 1, 1, NULL, arguments);
    NEED(d.cuCtxSynchronize());
}

static void double_by_threads(int bad)
{
    uint64_t size = SMALL;
    uint32_t givers = 1 + (unsigned)bad;
    need_heap();
    void *arguments[] = {&size, &givers};
    launch(heap.both, 1, 2, NULL, arguments);
    NEED(d.cuCtxSynchronize());
}

static void double_by_warps(int bad)
{
    uint64_t size = SMALL;
    uint32_t givers = bad ? 64 : 1;
    need_heap();
    void *arguments[] = {&size, &givers};
    launch(heap.both, 1, 64, NULL, arguments);
    NEED(d.cuCtxSynchronize());
}

static void double_by_kernels(int bad)
{
    need_heap();
    CUdeviceptr *list = take(heap.take, 1, 1, SMALL, NULL);
    give(heap.give, 1, 1, list, NULL);
    if (bad)
        give(heap.give, 1, 1, list, NULL);
    NEED(d.cuMemFreeHost(list));
}

// The second free comes long after the buffer was checked and released.
static void double_much_later(int bad)
{
    need_heap();
    CUdeviceptr *list = take(heap.take, 1, 1, SMALL, NULL);
    give(heap.give, 1, 1, list, NULL);
    usleep(bad ? 300000 : 0);
    if (bad)
        give(heap.give, 1, 1, list, NULL);
    NEED(d.cuMemFreeHost(list));
}

static void bad_free(int bad)
{
    need_heap();
    CUdeviceptr *list = take(heap.take, 1, 1, SMALL, NULL), p = list[0];
    list[0] += 64 * (unsigned)bad;
    give(heap.give, 1, 1, list, NULL);
    if (bad) {
        list[0] = p;
        give(heap.give, 1, 1, list, NULL);
    }
    NEED(d.cuMemFreeHost(list));
}

// What lives, and where.

static void two_modules(int bad)
{
    CUmodule taking, giving;
    NEED(d.cuModuleLoadData(&taking, kheap_taking));
    NEED(d.cuModuleLoadData(&giving, kheap_giving));
    CUdeviceptr *list = take(function(taking, "take"), 1, THREADS, SMALL, NULL);
    flip_one(list[1] + SMALL - 1 + (unsigned)bad, NULL, bad);
    give(function(giving, "give"), 1, THREADS, list, NULL);
    NEED(d.cuModuleUnload(taking));
    NEED(d.cuModuleUnload(giving));
    NEED(d.cuMemFreeHost(list));
}

static uint64_t fill(uint64_t size)
{
    uint64_t *count;
    NEED(d.cuMemHostAlloc((void **)&count, sizeof *count, CU_MEMHOSTALLOC_DEVICEMAP));
    void *arguments[] = {&size, &count};
    *count = 0;
    launch(heap.fill, 1, 1, NULL, arguments);
    NEED(d.cuCtxSynchronize());
    uint64_t n = *count;
    NEED(d.cuMemFreeHost(count));
    return n;
}

// The heap is as large as the limit says, returns NULL when it is full, and is whole again after the frees.
static void exhausted(int bad)
{
    size_t limit = 0;
    const uint64_t size = 32 << 10;
    need_heap();
    NEED(d.cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    uint64_t first = fill(size);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t again = fill(size);
        if (first * size > limit + limit / 4 || first * size < limit / 2 || again + again / 8 + 1 < first) {
            printf("%llu buffers of %llu bytes, then %llu, of %zu bytes\n", (unsigned long long)first,
                   (unsigned long long)size, (unsigned long long)again, limit);
            exit(2);
        }
    }
    write_at(SMALL, SMALL - 1 + (unsigned)bad, AFTER, bad);
}

static void many_live(int bad)
{
    const char *text = getenv("KHEAP_MANY");
    unsigned blocks = (text ? (unsigned)atoi(text) : 20000) / 256 + 1;
    NEED(d.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)blocks * 256 * 128 + (16 << 20)));
    need_heap();
    CUdeviceptr *list = take(heap.take, blocks, 256, 40, NULL);
    flip_one(list[blocks * 128u] + 39 + (unsigned)bad, NULL, bad);
    NEED(d.cuCtxSynchronize());
    give(heap.give, blocks, 256, list, NULL);
    NEED(d.cuMemFreeHost(list));
}

// The largest possible blocks: a kernel must not need more registers than they leave.
static void whole_blocks(int bad)
{
    need_heap();
    CUdeviceptr *list = take(heap.take, 4, 1024, 40, NULL);
    flip_one(list[2000] + 39 + (unsigned)bad, NULL, bad);
    NEED(d.cuCtxSynchronize());
    give(heap.give, 4, 1024, list, NULL);
    NEED(d.cuMemFreeHost(list));
}

// The limit applies even if it is set after the module was loaded and after another kernel has run.
static void limit_raised(int bad)
{
    uint64_t size = 24 << 20;
    need_heap();
    NEED(d.cuCtxSynchronize());
    kernels_flip(&kernels, (CUdeviceptr)(uintptr_t)flag + 16, 1, flag, NULL);
    kernels_wait(flag);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20));
    CUdeviceptr *list = take(heap.take, 1, 1, size, NULL);
    flip_one(list[0] + size - 1 + (unsigned)bad, NULL, bad);
    NEED(d.cuCtxSynchronize());
    give(heap.give, 1, 1, list, NULL);
    NEED(d.cuMemFreeHost(list));
}

// When it is found.

static void host_idle(int bad)
{
    uint64_t size = SMALL, at = SMALL - 1 + (unsigned)bad;
    uint32_t when = NEVER;
    need_heap();
    void *arguments[] = {&size, &at, &when, &flag};
    launch(heap.write, 1, 1, NULL, arguments);
    wait_for_write(bad);
    await_report(bad, PATIENCE_S);
    printf("went on\n");
    fflush(stdout);  // the process is killed without flushing
}

static void ends_at_once(int bad)
{
    uint64_t size = SMALL, at = SMALL - 1 + (unsigned)bad;
    uint32_t when = NEVER;
    need_heap();
    void *arguments[] = {&size, &at, &when, &flag};
    launch(heap.write, 1, 1, NULL, arguments);
    exit(0);
}

static void context_ends(int bad)
{
    CUcontext other;
    CUmodule module;
    uint64_t size = SMALL, at = SMALL - 1 + (unsigned)bad;
    uint32_t when = NEVER;
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    NEED(d.cuModuleLoadData(&module, kheap_text));
    void *arguments[] = {&size, &at, &when, &flag};
    launch(function(module, "write"), 1, 1, NULL, arguments);
    wait_for_write(bad);
    NEED(d.cuCtxDestroy_v2(other));
    NEED(d.cuCtxSetCurrent(context));
}

static void library_loaded(int bad)
{
    CUlibrary library;
    CUkernel kernel;
    uint64_t size = SMALL, at = SMALL - 1 + (unsigned)bad;
    uint32_t when = AFTER;
    NEED(d.cuLibraryLoadData(&library, kheap_text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "write"));
    void *arguments[] = {&size, &at, &when, &flag};
    launch((CUfunction)kernel, 1, 1, NULL, arguments);
    wait_for_write(bad);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuLibraryUnload(library));
}

// A library is in every context; each context has its own allocations.
static void library_elsewhere(int bad)
{
    CUlibrary library;
    CUkernel kernel;
    CUcontext other;
    uint64_t size = SMALL, at = SMALL - 1;
    uint32_t when = AFTER;
    NEED(d.cuLibraryLoadData(&library, kheap_text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "write"));
    void *arguments[] = {&size, &at, &when, &flag};
    launch((CUfunction)kernel, 1, 1, NULL, arguments);
    kernels_wait(flag);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    at += (unsigned)bad;
    launch((CUfunction)kernel, 1, 1, NULL, arguments);
    wait_for_write(bad);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuCtxDestroy_v2(other));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuLibraryUnload(library));
}

static void linked(int bad)
{
    CUlinkState link;
    CUmodule module;
    void *image;
    uint64_t size = SMALL, at = SMALL - 1 + (unsigned)bad;
    uint32_t when = AFTER;
    NEED(d.cuLinkCreate_v2(0, NULL, NULL, &link));
    NEED(d.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)kheap_text, sizeof kheap_text, "kernels", 0, NULL,
                            NULL));
    NEED(d.cuLinkComplete(link, &image, NULL));
    NEED(d.cuModuleLoadData(&module, image));
    NEED(d.cuLinkDestroy(link));
    void *arguments[] = {&size, &at, &when, &flag};
    launch(function(module, "write"), 1, 1, NULL, arguments);
    wait_for_write(bad);
    NEED(d.cuCtxSynchronize());
    NEED(d.cuModuleUnload(module));
}

static void captured(int bad)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    uint64_t size = SMALL, at = SMALL - 1 + (unsigned)bad;
    uint32_t when = AFTER;
    need_heap();
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    void *arguments[] = {&size, &at, &when, &flag};
    launch(heap.write, 1, 1, stream, arguments);
    NEED(d.cuStreamEndCapture(stream, &graph));
    NEED(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
    NEED(d.cuGraphLaunch(exec, stream));
    wait_for_write(bad);
    NEED(d.cuStreamSynchronize(stream));
    NEED(d.cuGraphExecDestroy(exec));
    NEED(d.cuGraphDestroy(graph));
    NEED(d.cuStreamDestroy_v2(stream));
}

static const struct cases_row cases[] = {
    CASE(single_kernel, OVER, ""),
    CASE(sequential_kernels, OVER, ""),
    CASE(concurrent_kernels, OVER, ""),
    CASE(one_byte_behind, OVER, ""),
    CASE(one_byte_before, UNDER, ""),
    CASE(last_byte_of_canary, OVER, ""),
    CASE(small_buffer, OVER, ""),
    CASE(large_buffer, OVER, ""),
    CASE(before_free, UNDER, ""),
    CASE(after_free, OVER, "released"),
    CASE(before_after_free, UNDER, "released"),
    CASE(double_free, DOUBLE, "free"),
    CASE(double_by_threads, DOUBLE, "free"),
    CASE(double_by_warps, DOUBLE, "free"),
    CASE(double_by_kernels, DOUBLE, "free"),
    CASE(double_much_later, DOUBLE "|bad-free", "free"),
    CASE(bad_free, "bad-free", "free"),
    CASE(two_modules, OVER, ""),
    CASE(exhausted, OVER, "once"),
    CASE(many_live, OVER, "once"),
    CASE(whole_blocks, OVER, "once"),
    CASE(limit_raised, OVER, "once"),
    CASE(host_idle, OVER, "once"),
    CASE(ends_at_once, OVER, "once"),
    CASE(context_ends, OVER, ""),
    CASE(library_loaded, OVER, ""),
    CASE(library_elsewhere, OVER, ""),
    CASE(linked, OVER, ""),
    CASE(captured, OVER, ""),
};

int main(int argc, char **argv)
{
    return canary_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
