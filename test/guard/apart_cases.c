// SPDX-License-Identifier: MIT
// apart_cases CASE good|bad [FILE]: a kernel whose launches are proved, one whose launches are not, one that
// uses variables of every kind and one in a module with an indirect call, by the driver's calls. Bad ones
// touch an element past a buffer or variable. FILE: where the PTX is written, for `file`. Exit status 0 if
// all results are right.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

enum { N = 256, BYTES = N * 4, THREADS = 4, MOST_PAGES = 4096 };

#define HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"
#define NEWER ".version 8.8\n.target sm_121a\n.address_size 64\n"
// a[idx[i]] = i, which no proof covers; regular: a[i] = i.
#define KERNELS                                                                                         \
    ".visible .entry scatter(.param .u64 a, .param .u64 idx)\n{\n.reg .b64 %rd<6>;\n.reg .b32 %r<3>;\n" \
    "ld.param.u64 %rd0, [a];\nld.param.u64 %rd1, [idx];\nmov.u32 %r0, %tid.x;\n"                        \
    "mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.s32 %r1, [%rd3];\n"               \
    "mul.wide.s32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd0, %rd4;\nst.global.u32 [%rd5], %r0;\nret;\n}\n"      \
    ".visible .entry regular(.param .u64 a)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"                  \
    "ld.param.u64 %rd0, [a];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\n"                       \
    "add.s64 %rd2, %rd0, %rd1;\nst.global.u32 [%rd2], %r0;\nret;\n}\n"
// Each thread adds factor[i] of constant memory, the private table's and 1 through a pointer that is in a
// variable to sums[idx[i]].
#define VARIABLES                                                                                  \
    ".visible .global .align 4 .b32 sums[4];\n.visible .const .align 4 .b32 factor[4];\n"          \
    ".global .align 4 .b32 table[4] = {10, 20, 30, 40};\n"                                         \
    ".visible .global .align 8 .u64 last = generic(sums)+12;\n"                                    \
    ".visible .entry adds(.param .u64 idx)\n{\n.reg .b64 %rd<10>;\n.reg .b32 %r<8>;\n"             \
    "ld.param.u64 %rd0, [idx];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\n"                \
    "add.s64 %rd2, %rd0, %rd1;\nld.global.s32 %r1, [%rd2];\nmul.wide.s32 %rd3, %r1, 4;\n"          \
    "mov.u64 %rd4, factor;\nadd.s64 %rd5, %rd4, %rd3;\nld.const.u32 %r2, [%rd5];\n"                \
    "mov.u64 %rd6, table;\nadd.s64 %rd6, %rd6, %rd3;\nld.global.u32 %r3, [%rd6];\n"                \
    "ld.const.u32 %r4, [factor+4];\nadd.s32 %r2, %r2, %r3;\nadd.s32 %r2, %r2, %r4;\n"              \
    "mov.u64 %rd7, sums;\nadd.s64 %rd7, %rd7, %rd3;\nred.global.add.u32 [%rd7], %r2;\n"            \
    "ld.global.u64 %rd8, [last];\ncvta.to.global.u64 %rd9, %rd8;\nred.global.add.u32 [%rd9], 1;\n" \
    "red.global.add.u32 [sums+8], 1;\nret;\n}\n"
#define INDIRECT                                                             \
    ".func (.reg .b32 r) twice(.reg .b32 x)\n{\nadd.s32 r, x, x;\nret;\n}\n" \
    ".visible .global .align 8 .u64 what = twice;\n"
#define SHARED                                                                                         \
    ".extern .shared .align 4 .b8 room[];\n"                                                           \
    ".visible .entry far(.param .u64 a, .param .u64 idx)\n{\n.reg .b64 %rd<6>;\n.reg .b32 %r<6>;\n"    \
    "ld.param.u64 %rd0, [a];\nld.param.u64 %rd1, [idx];\nmov.u32 %r0, %tid.x;\nshl.b32 %r2, %r0, 8;\n" \
    "mov.u32 %r3, room;\nadd.s32 %r3, %r3, %r2;\nst.shared.u32 [%r3], %r0;\n"                          \
    "mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.s32 %r1, [%rd3];\n"              \
    "ld.shared.u32 %r4, [%r3];\n"                                                                      \
    "mul.wide.s32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd0, %rd4;\nst.global.u32 [%rd5], %r4;\nret;\n}\n"

// As scatter, where a function stores: then no proof covers any launch.
#define CALLS                                                                                         \
    ".func put(.reg .b64 p, .reg .b32 x)\n{\nst.global.u32 [p], x;\nret;\n}\n"                        \
    ".visible .entry calls(.param .u64 a, .param .u64 idx)\n{\n.reg .b64 %rd<6>;\n.reg .b32 %r<3>;\n" \
    "ld.param.u64 %rd0, [a];\nld.param.u64 %rd1, [idx];\nmov.u32 %r0, %tid.x;\n"                      \
    "mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.s32 %r1, [%rd3];\n"             \
    "mul.wide.s32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd0, %rd4;\ncall put, (%rd5, %r0);\nret;\n}\n"

// As scatter, with many registers in use: 64-bit elements of idx, which make no difference.
#define LOAD(n, at) "ld.global.u64 %x" #n ", [%rd1+" #at "];\n"
#define AND(n) "and.b64 %x0, %x0, %x" #n ";\n"
#define WIDE                                                                                                \
    ".visible .entry wide(.param .u64 a, .param .u64 idx)\n{\n.reg .b64 %rd<6>;\n.reg .b64 %x<9>;\n"        \
    ".reg .b32 %r<3>;\nld.param.u64 %rd0, [a];\nld.param.u64 %rd1, [idx];\nmov.u32 %r0, %tid.x;\n" LOAD(    \
        0, 0) LOAD(1, 8) LOAD(2, 16) LOAD(3, 24) LOAD(4, 32) LOAD(5, 40) LOAD(6, 48)                        \
        LOAD(7,                                                                                             \
             56) "mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.s32 %r1, [%rd3];\n"      \
                 "mul.wide.s32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd0, %rd4;\nst.global.u32 [%rd5], %r0;\n" AND( \
                     1) AND(2) AND(3) AND(4) AND(5) AND(6)                                                  \
                     AND(7) "and.b64 %x0, %x0, 0;\ncvt.u32.u64 %r1, %x0;\nadd.s32 %r0, %r0, %r1;\n"         \
                            "st.global.u32 [%rd5], %r0;\nret;\n}\n"

// As scatter, of the size of the block's cluster.
#define CLUSTERED                                                                                         \
    ".version 7.8\n.target sm_90\n.address_size 64\n"                                                     \
    ".visible .entry clustered(.param .u64 a, .param .u64 idx)\n{\n.reg .b64 %rd<6>;\n.reg .b32 %r<4>;\n" \
    "ld.param.u64 %rd0, [a];\nld.param.u64 %rd1, [idx];\nmov.u32 %r0, %tid.x;\n"                          \
    "mov.u32 %r2, %cluster_nctaid.x;\n"                                                                   \
    "mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.s32 %r1, [%rd3];\n"                 \
    "mul.wide.s32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd0, %rd4;\nst.global.u32 [%rd5], %r2;\nret;\n}\n"

#define NEED(call)                                           \
    do {                                                     \
        CUresult r = (call);                                 \
        if (r) {                                             \
            printf("%d: %s gives %d\n", __LINE__, #call, r); \
            exit(2);                                         \
        }                                                    \
    } while (0)

static struct driver d;
static bool bad;
static int beyond = N;  // what an index of a bad case is
static const char *file;

static void *launch(CUfunction f, unsigned shared, CUstream stream, void **parameters)
{
    NEED(d.cuLaunchKernel(f, 1, 1, 1, N, 1, 1, shared, stream, parameters, NULL));
    return NULL;
}

static CUdeviceptr buffer(void)
{
    CUdeviceptr p;
    NEED(d.cuMemAlloc_v2(&p, BYTES));
    NEED(d.cuMemsetD8_v2(p, 0, BYTES));
    return p;
}

// Indices: those of the buffer backwards, or modulo `most`.
static CUdeviceptr indices(int most)
{
    int idx[N];
    for (int i = 0; i < N; i++)
        idx[i] = most ? i % most : N - 1 - i;
    idx[7] = bad ? beyond : idx[7];
    CUdeviceptr p = buffer();
    NEED(d.cuMemcpyHtoD_v2(p, idx, sizeof idx));
    return p;
}

static CUfunction function(CUmodule m, const char *name)
{
    CUfunction f;
    NEED(d.cuModuleGetFunction(&f, m, name));
    return f;
}

static CUmodule load(const char *text)
{
    CUmodule m;
    NEED(d.cuModuleLoadData(&m, text));
    return m;
}

static void is_backwards(CUdeviceptr a)
{
    int got[N];
    NEED(d.cuMemcpyDtoH_v2(got, a, BYTES));
    for (int i = 0; i < N; i++)
        if (got[i] != N - 1 - i && !(bad && i == N - 8)) {
            printf("a[%d] is %d\n", i, got[i]);
            exit(3);
        }
}

static void scatter(CUfunction f, unsigned shared)
{
    CUdeviceptr a = buffer(), idx = indices(0);
    launch(f, shared, NULL, (void *[]){&a, &idx});
    NEED(d.cuCtxSynchronize());
    is_backwards(a);
}

static void regular(void)
{
    CUdeviceptr a = buffer();
    launch(function(load(HEAD KERNELS), "regular"), 0, NULL, (void *[]){&a});
    NEED(d.cuCtxSynchronize());
}

static void unproved(void)
{
    scatter(function(load(HEAD KERNELS), "scatter"), 0);
}

// A text for a newer GPU: the driver gets it for this one.
static void newer(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction f = function(load(NEWER KERNELS), "scatter");
    CUdevice device;
    CUdeviceptr a = buffer();
    int of = 0, major = 0;
    NEED(d.cuFuncGetAttribute(&of, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    NEED(d.cuCtxGetDevice(&device));
    NEED(d.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    if (of / 10 > major) {
        printf("loaded for sm_%d\n", of);
        exit(3);
    }
    scatter(f, 0);
    NEED(d.cuLibraryLoadData(&library, NEWER KERNELS, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "scatter"));
    scatter((CUfunction)kernel, 0);
    NEED(d.cuLibraryGetKernel(&kernel, library, "regular"));
    launch((CUfunction)kernel, 0, NULL, (void *[]){&a});
    NEED(d.cuCtxSynchronize());
}

static void indirect(void)
{
    scatter(function(load(HEAD INDIRECT KERNELS), "scatter"), 0);
}

static void from_file(void)
{
    CUmodule m;
    FILE *f = fopen(file, "w");
    if (!f || fputs(HEAD KERNELS, f) < 0 || fclose(f))
        exit(2);
    NEED(d.cuModuleLoad(&m, file));
    scatter(function(m, "scatter"), 0);
}

// Launches twice, so that `sums` is what both launches have added.
static void add(CUfunction f, CUdeviceptr sums, CUdeviceptr factor)
{
    int values[4] = {1, 2, 3, 4}, got[4];
    beyond = 4;
    CUdeviceptr idx = indices(4);
    NEED(d.cuMemcpyHtoD_v2(factor, values, sizeof values));
    launch(f, 0, NULL, (void *[]){&idx});
    values[0] = 100;
    NEED(d.cuMemcpyHtoD_v2(factor, values, sizeof values));
    launch(f, 0, NULL, (void *[]){&idx});
    NEED(d.cuMemcpyDtoH_v2(got, sums, sizeof got));
    if (!bad && (got[0] != 64 * (1 + 10 + 2) + 64 * (100 + 10 + 2) || got[1] != 128 * (2 + 20 + 2) ||
                 got[2] != 128 * (3 + 30 + 2) + 512 || got[3] != 128 * (4 + 40 + 2) + 512)) {
        printf("sums: %d %d %d %d\n", got[0], got[1], got[2], got[3]);
        exit(3);
    }
}

static void add_in_module(void)
{
    CUmodule m = load(HEAD VARIABLES);
    CUdeviceptr sums, factor;
    size_t size;
    NEED(d.cuModuleGetGlobal_v2(&sums, &size, m, "sums"));
    NEED(d.cuModuleGetGlobal_v2(&factor, &size, m, "factor"));
    add(function(m, "adds"), sums, factor);
}

// One library in two contexts has variables of its own in each.
static void in_library(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUcontext other, own;
    NEED(d.cuCtxGetCurrent(&own));
    NEED(d.cuLibraryLoadData(&library, HEAD VARIABLES, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "adds"));
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    for (int i = 0; i < 2; i++) {
        CUdeviceptr sums, factor;
        size_t size;
        CUfunction f;
        NEED(d.cuCtxSetCurrent(i ? own : other));
        NEED(d.cuKernelGetFunction(&f, kernel));
        NEED(d.cuLibraryGetGlobal(&sums, &size, library, "sums"));
        NEED(d.cuLibraryGetGlobal(&factor, &size, library, "factor"));
        add(i ? (CUfunction)kernel : f, sums, factor);
    }
    NEED(d.cuLibraryUnload(library));
    NEED(d.cuCtxDestroy_v2(other));
}

// Modules of contexts that end, and modules that are unloaded and loaded again.
static void again(void)
{
    for (int i = 0; i < 4; i++) {
        CUcontext context;
        NEED(d.cuCtxCreate_v2(&context, 0, 0));
        add_in_module();
        if (i % 2) {
            CUmodule m = load(HEAD KERNELS);
            scatter(function(m, "scatter"), 0);
            NEED(d.cuModuleUnload(m));
        }
        NEED(d.cuCtxDestroy_v2(context));
    }
    for (int i = 0; i < 4; i++) {
        CUmodule m = load(HEAD KERNELS);
        scatter(function(m, "scatter"), 0);
        NEED(d.cuModuleUnload(m));
    }
}

// Pages of memory that the process uses.
static long pages(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
        exit(2);
    fclose(f);
    return resident;
}

// The variants of modules and libraries that are unloaded are unloaded with them: the process does not grow.
static void unloaded(void)
{
    long before = 0;
    for (int i = 0; i < 200; i++) {
        CUmodule m = load(HEAD KERNELS);
        CUlibrary library;
        CUkernel kernel;
        CUdeviceptr a = buffer(), idx = indices(0);
        launch(function(m, "scatter"), 0, NULL, (void *[]){&a, &idx});
        NEED(d.cuLibraryLoadData(&library, HEAD KERNELS, NULL, NULL, 0, NULL, NULL, 0));
        NEED(d.cuLibraryGetKernel(&kernel, library, "scatter"));
        launch((CUfunction)kernel, 0, NULL, (void *[]){&a, &idx});
        NEED(d.cuCtxSynchronize());
        is_backwards(a);
        NEED(d.cuModuleUnload(m));
        NEED(d.cuLibraryUnload(library));
        NEED(d.cuMemFree_v2(a));
        NEED(d.cuMemFree_v2(idx));
        before = i == 20 ? pages() : before;
    }
    // A GPU's driver may keep what it likes.
    long more = getenv("GUARD_DEVICE") ? 0 : pages() - before;
    if (more > MOST_PAGES) {
        printf("the process has grown by %ld pages\n", more);
        exit(3);
    }
}

// What the program sets in its kernel before a variant exists holds for the variant.
static void attributes(void)
{
    CUfunction f = function(load(HEAD SHARED), "far");
    NEED(d.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, N * 256));
    scatter(f, N * 256);
}

// The first launch that needs the variant is captured.
static void captured(void)
{
    CUfunction f = function(load(HEAD KERNELS), "scatter");
    CUdeviceptr a = buffer(), idx = indices(0);
    CUstream s;
    CUgraph graph;
    CUgraphExec exec;
    NEED(d.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(f, 0, s, (void *[]){&a, &idx});
    NEED(d.cuStreamEndCapture(s, &graph));
    NEED(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
    NEED(d.cuGraphLaunch(exec, s));
    NEED(d.cuStreamSynchronize(s));
    is_backwards(a);
}

// One warp, for which the driver's usual limit of shared memory is enough.
static void small(CUfunction f, CUdeviceptr a, CUdeviceptr idx)
{
    NEED(d.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 32 * 256, NULL, (void *[]){&a, &idx}, NULL));
    NEED(d.cuCtxSynchronize());
}

// The same where the kernel has other handles too, and for what is set after the variant was made.
static void attributes_later(void)
{
    const CUfunction_attribute room = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUdeviceptr a = buffer(), idx = buffer();
    CUlibrary library;
    CUkernel kernel;
    // Launched before by neither, by one or the other; set in one or the other; launched by both in turn.
    for (int i = 0; i < 12; i++) {
        int first = i % 3, set = i / 3 % 2, then = i / 6;
        CUfunction f;
        NEED(d.cuLibraryLoadData(&library, HEAD SHARED, NULL, NULL, 0, NULL, NULL, 0));
        NEED(d.cuLibraryGetKernel(&kernel, library, "far"));
        NEED(d.cuKernelGetFunction(&f, kernel));
        if (first)
            small(first == 1 ? f : (CUfunction)kernel, a, idx);
        if (set)
            NEED(d.cuFuncSetAttribute(f, room, N * 256));
        else
            NEED(d.cuKernelSetAttribute(room, N * 256, kernel, 0));
        scatter(then ? f : (CUfunction)kernel, N * 256);
        scatter(then ? (CUfunction)kernel : f, N * 256);
        NEED(d.cuLibraryUnload(library));
    }
}

// Blocks come in clusters of the size that the program has set, as every thread finds out.
static void clusters(void)
{
    CUfunction f = function(load(CLUSTERED), "clustered");
    CUdeviceptr a = buffer(), idx = indices(0);
    int got[N];
    NEED(d.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
    NEED(d.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
    NEED(d.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
    NEED(d.cuLaunchKernel(f, 4, 1, 1, N, 1, 1, 0, NULL, (void *[]){&a, &idx}, NULL));
    NEED(d.cuMemcpyDtoH_v2(got, a, BYTES));
    for (int i = 0; i < N; i++)
        if (got[i] != 2 && !(bad && i == N - 8)) {
            printf("a[%d] is %d\n", i, got[i]);
            exit(3);
        }
}

// The variant of a kernel that no proof can spare is made when the program asks for an attribute: in the
// kernel's own context, whatever is current.
static void elsewhere(void)
{
    CUcontext own, other;
    CUfunction f = function(load(HEAD CALLS), "calls"), g = function(load(HEAD CALLS), "calls"), h;
    CUlibrary library, second;
    CUkernel kernel, other_kernel;
    int most;
    NEED(d.cuLibraryLoadData(&library, HEAD CALLS, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "calls"));
    NEED(d.cuLibraryLoadData(&second, HEAD CALLS, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&other_kernel, second, "calls"));
    NEED(d.cuKernelGetFunction(&h, other_kernel));
    NEED(d.cuCtxGetCurrent(&own));
    NEED(d.cuCtxCreate_v2(&other, 0, 0));
    // What the driver answers here is not the test's concern.
    d.cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f);
    d.cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, h);
    NEED(d.cuCtxSetCurrent(NULL));
    d.cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, g);
    d.cuKernelGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0);
    NEED(d.cuCtxDestroy_v2(other));
    NEED(d.cuCtxSetCurrent(own));
    scatter(f, 0);
    scatter(g, 0);
    scatter(h, 0);
    scatter((CUfunction)kernel, 0);
}

// A library that is loaded before there is a context is compiled in each one: its variants are in it.
static void early(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUcontext own;
    NEED(d.cuCtxGetCurrent(&own));
    NEED(d.cuCtxSetCurrent(NULL));
    NEED(d.cuLibraryLoadData(&library, HEAD KERNELS, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "scatter"));
    NEED(d.cuCtxSetCurrent(own));
    scatter((CUfunction)kernel, 0);
}

// A library outlives the device's reset, its functions do not.
static void reset(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction f;
    CUcontext own;
    NEED(d.cuLibraryLoadData(&library, HEAD KERNELS, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "scatter"));
    for (int i = 0; i < 3; i++) {
        NEED(d.cuDevicePrimaryCtxRetain(&own, 0));
        NEED(d.cuCtxSetCurrent(own));
        NEED(d.cuKernelGetFunction(&f, kernel));
        scatter(f, 0);
        scatter((CUfunction)kernel, 0);
        scatter(function(load(HEAD KERNELS), "scatter"), 0);
        if (i < 2)
            NEED(d.cuDevicePrimaryCtxReset_v2(0));
    }
}

// A module in each device, and libraries in all; what is set in a kernel is set for each device.
static void devices(void)
{
    CUlibrary library, other;
    CUkernel kernel, far;
    CUcontext own[16];
    int n;
    NEED(d.cuDeviceGetCount(&n));
    n = n < 16 ? n : 16;
    NEED(d.cuLibraryLoadData(&library, HEAD VARIABLES, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&kernel, library, "adds"));
    NEED(d.cuLibraryLoadData(&other, HEAD SHARED, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&far, other, "far"));
    for (int i = 0; i < n; i++) {
        NEED(d.cuDevicePrimaryCtxRetain(&own[i], i));
        NEED(d.cuCtxSetCurrent(own[i]));
        NEED(d.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, N * 256, far, i));
    }
    for (int i = 0; i < n; i++) {
        CUdeviceptr sums, factor;
        size_t size;
        NEED(d.cuCtxSetCurrent(own[i]));
        scatter(function(load(HEAD KERNELS), "scatter"), 0);
        scatter((CUfunction)far, N * 256);
        NEED(d.cuLibraryGetGlobal(&sums, &size, library, "sums"));
        NEED(d.cuLibraryGetGlobal(&factor, &size, library, "factor"));
        add((CUfunction)kernel, sums, factor);
        beyond = N;
    }
}

// The first launch that needs the variant is beside a capture, which forbids much to every thread.
static void beside(void)
{
    CUmodule m = load(HEAD KERNELS);
    CUfunction f = function(m, "scatter"), g = function(m, "regular");
    CUdeviceptr a = buffer(), b = buffer(), idx = indices(0);
    CUstream s, other;
    CUgraph graph;
    NEED(d.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(g, 0, s, (void *[]){&b});
    launch(f, 0, other, (void *[]){&a, &idx});
    launch(g, 0, s, (void *[]){&b});
    NEED(d.cuStreamEndCapture(s, &graph));
    NEED(d.cuStreamSynchronize(other));
    is_backwards(a);
}

// As many blocks as can run at once of the program's kernel, which needs fewer registers than its variant.
static void together(void)
{
    CUfunction f = function(load(HEAD WIDE), "wide");
    CUdeviceptr a = buffer(), idx = indices(0);
    int blocks, processors;
    NEED(d.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, N, 0));
    NEED(d.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    unsigned grid = (unsigned)(blocks * processors);
    for (int i = 0; i < 2; i++)
        NEED(d.cuLaunchCooperativeKernel(f, grid, 1, 1, N, 1, 1, 0, NULL, (void *[]){&a, &idx}));
    NEED(d.cuCtxSynchronize());
    is_backwards(a);
}

static CUcontext context;
static CUfunction shared_function;

static void *thread(void *arg)
{
    NEED(d.cuCtxSetCurrent(context));
    scatter(shared_function, 0);
    return NULL;
}

static void threads(void)
{
    pthread_t t[THREADS];
    shared_function = function(load(HEAD KERNELS), "scatter");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, thread, NULL))
            exit(2);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"regular", regular},       {"unproved", unproved},
                 {"indirect", indirect},     {"newer", newer},
                 {"file", from_file},        {"variables", add_in_module},
                 {"library", in_library},    {"again", again},
                 {"attributes", attributes}, {"unloaded", unloaded},
                 {"captured", captured},     {"threads", threads},
                 {"together", together},     {"later", attributes_later},
                 {"clusters", clusters},     {"elsewhere", elsewhere},
                 {"early", early},           {"reset", reset},
                 {"devices", devices},       {"beside", beside}};
    if (argc < 3)
        return 2;
    bad = !strcmp(argv[2], "bad");
    file = argc > 3 ? argv[3] : "";
    char why[200];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("%s\n", why);
        return 2;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            return 0;
        }
    return 2;
}
