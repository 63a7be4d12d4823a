// SPDX-License-Identifier: MIT
// Launches one kernel by every way that there is, and checks what it did: `launch_ways [WAY]`, or
// `launch_ways list`. The last line prints how many launches, graph launches and kernel nodes the program
// requested; launch_ways.sh compares that with what modes see. Status 0: all went as without moat; 2: it did
// not.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/driver.h"

// add(a, b): the last thread of each block adds b to *a.
static const char text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u32 b)\n{\n"
    ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [a];\nld.param.u32 %r1, [b];\n"
    "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ntid.x;\nsub.u32 %r3, %r3, 1;\nsetp.ne.u32 %p1, %r2, %r3;\n"
    "@%p1 ret;\nred.global.add.u32 [%rd1], %r1;\nret;\n}\n";

enum { BLOCKS = 3, THREADS = 8 };

static struct driver d;
static CUmodule module;
static CUfunction function;
static CUstream stream;
static CUdeviceptr memory;
static unsigned launches, graphs, nodes;  // what modes see
static uint32_t expected;

static void must(int holds, const char *what, int line)
{
    if (holds)
        return;
    printf("launch_ways.c:%d: does not hold: %s\n", line, what);
    fflush(stdout);
    _exit(2);
}
#define MUST(what) must((what), #what, __LINE__)
#define NEED(call) must((call) == CUDA_SUCCESS, #call, __LINE__)

// Checks that so many launches have run, and that each has added b for each of its blocks.
static void did(unsigned count, unsigned blocks, uint32_t b)
{
    uint32_t value;
    expected += count * blocks * b;
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemcpyDtoH_v2(&value, memory, sizeof value));
    if (value != expected)
        printf("%u, not %u\n", value, expected);
    MUST(value == expected);
}

// Parameters that are overwritten or gone when the kernel runs.
struct parameters {
    CUdeviceptr a;
    uint32_t b;
    void *pointers[2];
    char bytes[12];
    size_t size;
    void *extra[5];
};

static void set(struct parameters *p, uint32_t b)
{
    *p = (struct parameters){.a = memory, .b = b, .pointers = {&p->a, &p->b}, .size = sizeof p->bytes};
    memcpy(p->bytes, &p->a, sizeof p->a);
    memcpy(p->bytes + 8, &p->b, sizeof p->b);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, p->bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &p->size,
                     CU_LAUNCH_PARAM_END};
    memcpy(p->extra, extra, sizeof extra);
}

// --- launches ----------------------------------------------------------------------------------------------

static void plain(void)
{
    struct parameters p;
    set(&p, 5);
    NEED(d.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, p.pointers, NULL));
    NEED(d.cuLaunchKernel_ptsz(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, p.pointers, NULL));
    memset(&p, 0, sizeof p);
    launches += 2;
    did(2, BLOCKS, 5);
}

static void buffer(void)
{
    struct parameters p;
    set(&p, 6);
    NEED(d.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, NULL, p.extra));
    NEED(d.cuLaunchKernel_ptsz(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, NULL, p.extra));
    launches += 2;
    did(2, BLOCKS, 6);
}

static void cooperative(void)
{
    struct parameters p;
    set(&p, 7);
    NEED(d.cuLaunchCooperativeKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, p.pointers));
    NEED(d.cuLaunchCooperativeKernel_ptsz(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, p.pointers));
    launches += 2;
    did(2, BLOCKS, 7);
}

static void configured(void)
{
    struct parameters p;
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUlaunchConfig c = {BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, &a, 1};
    set(&p, 8);
    NEED(d.cuLaunchKernelEx(&c, function, p.pointers, NULL));
    c.numAttrs = 0;
    c.hStream = NULL;
    NEED(d.cuLaunchKernelEx_ptsz(&c, function, NULL, p.extra));
    launches += 2;
    did(2, BLOCKS, 8);
}

// By a kernel of a library, and by its function.
static void library(void)
{
    struct parameters p;
    CUlibrary l;
    CUkernel k;
    CUfunction f;
    set(&p, 9);
    NEED(d.cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&k, l, "add"));
    NEED(d.cuLaunchKernel((CUfunction)k, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, p.pointers, NULL));
    NEED(d.cuKernelGetFunction(&f, k));
    NEED(d.cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, p.pointers, NULL));
    launches += 2;
    did(2, BLOCKS, 9);
    NEED(d.cuLibraryUnload(l));
}

static void oldest(void)
{
    NEED(d.cuFuncSetBlockShape(function, THREADS, 1, 1));
    NEED(d.cuFuncSetSharedSize(function, 0));
    NEED(d.cuParamSetv(function, 0, &memory, sizeof memory));
    NEED(d.cuParamSeti(function, 8, 10));
    NEED(d.cuParamSetSize(function, 12));
    NEED(d.cuLaunch(function));
    did(1, 1, 10);
    NEED(d.cuLaunchGrid(function, BLOCKS, 1));
    NEED(d.cuLaunchGridAsync(function, BLOCKS, 1, stream));
    did(2, BLOCKS, 10);
    NEED(d.cuParamSetf(function, 8, 0.0f));
    NEED(d.cuLaunch(function));
    did(1, 1, 0);
    launches += 4;
}

// The CPU device does not have the call, nor do newer drivers.
static void devices(void)
{
    struct parameters p;
    set(&p, 11);
    CUDA_LAUNCH_PARAMS list = {function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, p.pointers};
    launches += d.cuLaunchCooperativeKernelMultiDevice != NULL;
    if (d.cuLaunchCooperativeKernelMultiDevice && !d.cuLaunchCooperativeKernelMultiDevice(&list, 1, 0))
        did(1, BLOCKS, 11);
}

// --- graphs ------------------------------------------------------------------------------------------------

static void run(CUgraphExec e)
{
    NEED(d.cuGraphLaunch(e, stream));
    graphs++;
}

static CUgraphExec make(CUgraph g)
{
    CUgraphExec e;
    NEED(d.cuGraphInstantiateWithFlags(&e, g, 0));
    return e;
}

static void captured(void)
{
    struct parameters p;
    CUgraph g;
    set(&p, 12);
    NEED(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    NEED(d.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, p.pointers, NULL));
    NEED(d.cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, NULL, p.extra));
    NEED(d.cuStreamEndCapture(stream, &g));
    launches += 2;
    memset(&p, 0, sizeof p);
    CUgraphExec e = make(g);
    run(e);
    run(e);
    did(4, BLOCKS, 12);
    NEED(d.cuGraphExecDestroy(e));
    NEED(d.cuGraphDestroy(g));
}

#define SHAPE BLOCKS, 1, 1, THREADS, 1, 1, 0

static void first_nodes(void)
{
    struct parameters p, q;
    CUgraph g;
    CUgraphNode n;
    CUDA_KERNEL_NODE_PARAMS_v1 k = {function, SHAPE, p.pointers, NULL}, got;
    set(&p, 13);
    set(&q, 14);
    NEED(d.cuGraphCreate(&g, 0));
    NEED(d.cuGraphAddKernelNode(&n, g, NULL, 0, &k));
    run(make(g));
    did(1, BLOCKS, 13);
    k.kernelParams = NULL, k.extra = q.extra;
    NEED(d.cuGraphKernelNodeSetParams(n, &k));
    CUgraphExec e = make(g);
    run(e);
    did(1, BLOCKS, 14);
    NEED(d.cuGraphKernelNodeGetParams(n, &got));
    MUST(got.func == function && got.gridDimX == BLOCKS && *(uint32_t *)got.kernelParams[1] == 14);
    k.kernelParams = p.pointers, k.extra = NULL;
    NEED(d.cuGraphExecKernelNodeSetParams(e, n, &k));
    run(e);
    did(1, BLOCKS, 13);
    nodes += 3;
    MUST(d.cuGraphAddKernelNode(&n, g, NULL, 0, NULL) != CUDA_SUCCESS);
}

static void second_nodes(void)
{
    struct parameters p, q;
    CUgraph g;
    CUgraphNode n;
    CUDA_KERNEL_NODE_PARAMS k = {function, SHAPE, p.pointers, NULL, NULL, NULL}, got;
    set(&p, 15);
    set(&q, 16);
    NEED(d.cuGraphCreate(&g, 0));
    NEED(d.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    run(make(g));
    did(1, BLOCKS, 15);
    k.kernelParams = q.pointers;
    NEED(d.cuGraphKernelNodeSetParams_v2(n, &k));
    CUgraphExec e = make(g);
    run(e);
    did(1, BLOCKS, 16);
    NEED(d.cuGraphKernelNodeGetParams_v2(n, &got));
    MUST(got.func == function && !got.kern && *(uint32_t *)got.kernelParams[1] == 16);
    k.kernelParams = p.pointers;
    NEED(d.cuGraphExecKernelNodeSetParams_v2(e, n, &k));
    run(e);
    did(1, BLOCKS, 15);
    nodes += 3;
}

static void any_nodes(void)
{
    struct parameters p, q;
    CUgraph g;
    CUgraphNode n, m, empty;
    CUgraphNodeParams k = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                           .kernel = {function, SHAPE, p.pointers, NULL, NULL, NULL}},
                      none = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    set(&p, 17);
    set(&q, 18);
    NEED(d.cuGraphCreate(&g, 0));
    NEED(d.cuGraphAddNode(&n, g, NULL, 0, &k));
    NEED(d.cuGraphAddNode_v2(&m, g, &n, NULL, 1, &k));
    NEED(d.cuGraphAddNode(&empty, g, NULL, 0, &none));
    run(make(g));
    did(2, BLOCKS, 17);
    k.kernel.kernelParams = q.pointers;
    NEED(d.cuGraphNodeSetParams(n, &k));
    NEED(d.cuGraphNodeSetParams(m, &k));
    CUgraphExec e = make(g);
    run(e);
    did(2, BLOCKS, 18);
    k.kernel.kernelParams = p.pointers;
    NEED(d.cuGraphExecNodeSetParams(e, n, &k));
    NEED(d.cuGraphExecNodeSetParams(e, m, &k));
    run(e);
    did(2, BLOCKS, 17);
    nodes += 6;
}

// --- what the program sees ------------------------------------------------------------------------------

static void asked(void)
{
    size_t offset = 0, size = 0;
    NEED(d.cuFuncGetParamInfo(function, 1, &offset, &size));
    MUST(offset == 8 && size == 4);
    MUST(d.cuFuncGetParamInfo(function, 2, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {{"plain", plain},
            {"buffer", buffer},
            {"cooperative", cooperative},
            {"configured", configured},
            {"library", library},
            {"oldest", oldest},
            {"devices", devices},
            {"captured", captured},
            {"first_nodes", first_nodes},
            {"second_nodes", second_nodes},
            {"any_nodes", any_nodes},
            {"asked", asked}};

int main(int argc, char **argv)
{
    CUcontext context;
    CUdevice device;
    char why[200];
    bool list = argc > 1 && strcmp(argv[1], "list") == 0;
    for (size_t i = 0; list && i < sizeof ways / sizeof *ways; i++)
        puts(ways[i].name);
    if (list)
        return 0;
    if (driver_open(&d, NULL, why, sizeof why)) {
        puts(why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDeviceGet(&device, 0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, device));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&function, module, "add"));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(d.cuMemAlloc_v2(&memory, sizeof expected));
    NEED(d.cuMemsetD32_v2(memory, 0, 1));
    NEED(d.cuCtxSynchronize());
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (argc < 2 || strcmp(argv[1], ways[i].name) == 0)
            ways[i].run();
    printf("launch %u, graph %u, node %u\n", launches, graphs, nodes);
    return 0;
}
