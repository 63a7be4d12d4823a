// SPDX-License-Identifier: MIT
// Every way to launch a kernel, or to put one into a graph, over a driver that records its calls: what a mode
// sees, and what the driver gets when a mode has changed the launch.
#include "launch/launch_call.h"
#include "launch/launch_ring.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "context/capture_rule.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "mode/mode.h"
#include "track/guard_report.h"

void guard_report_finding(const struct guard_finding *f)
{
}

void guard_report_note(const char *fmt, ...)
{
}

// Not functions: only their addresses are used. The kernel takes 8 bytes at 0 and 4 at 8.
static char functions[8];
#define OWN ((CUfunction)&functions[0])
#define INSTEAD ((CUfunction)&functions[1])
#define KERNEL ((CUkernel)&functions[2])
#define OTHER_KERNEL ((CUkernel)&functions[3])
#define STREAM ((CUstream)(uintptr_t)0x5000)
#define GRAPH ((CUgraph)(uintptr_t)0x6000)
#define EXEC ((CUgraphExec)(uintptr_t)0x7000)
#define NODE ((CUgraphNode)(uintptr_t)0x8000)
#define CONTEXT ((CUcontext)(uintptr_t)0x9000)

static uint64_t first = 0x1122334455667788, more = 0xaabbccddeeff0011;
static uint32_t second = 42, packed[3];
static void *own_pointers[] = {&first, &second};
static size_t packed_size = sizeof packed;
static void *own_extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                            CU_LAUNCH_PARAM_END};

// --- the driver --------------------------------------------------------------------------------------------

// The last call, with its parameters as bytes.
static struct {
    enum driver_id call;
    unsigned calls;
    const void *function, *kernel;
    unsigned shape[7];
    CUstream stream;
    void **pointers, **extra;
    char bytes[8192];
    size_t size;
    const void *config, *node, *graph, *after, *edges, *context;
    size_t count;
} got;
static bool tells_layout = true;
static unsigned hidden_of_own;

// The kernels' parameters: 8, 4 and, behind them, 8 bytes.
static unsigned count_of(const void *function)
{
    return function == INSTEAD || function == OTHER_KERNEL ? 3 : 2 + hidden_of_own;
}

static CUresult info(const void *function, size_t index, size_t *offset, size_t *size)
{
    static const unsigned offsets[] = {0, 8, 16}, sizes[] = {8, 4, 8};
    if (!tells_layout || index >= count_of(function))
        return tells_layout ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNKNOWN;
    *offset = offsets[index];
    *size = sizes[index];
    return CUDA_SUCCESS;
}

static CUresult function_info(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    return info(f, index, offset, size);
}

static CUresult kernel_info(CUkernel k, size_t index, size_t *offset, size_t *size)
{
    return info(k, index, offset, size);
}

static void take(const void *function, void **pointers, void **extra)
{
    got.pointers = pointers;
    got.extra = extra;
    for (unsigned i = 0; pointers && i < count_of(function); i++) {
        size_t offset = 0, size = 0;
        tells_layout = true;
        assert_int_equal(info(function, i, &offset, &size), 0);
        memcpy(got.bytes + offset, pointers[i], size);
        got.size = offset + size;
    }
    if (extra) {
        assert_ptr_equal(extra[0], CU_LAUNCH_PARAM_BUFFER_POINTER);
        assert_ptr_equal(extra[2], CU_LAUNCH_PARAM_BUFFER_SIZE);
        assert_ptr_equal(extra[4], CU_LAUNCH_PARAM_END);
        got.size = *(size_t *)extra[3];
        memcpy(got.bytes, extra[1], got.size);
    }
}

static CUresult launched(enum driver_id call, CUfunction f, const unsigned shape[7], CUstream q,
                         void **pointers, void **extra)
{
    unsigned calls = got.calls;
    memset(&got, 0, sizeof got);
    got.call = call;
    got.calls = calls + 1;
    got.function = f;
    got.stream = q;
    memcpy(got.shape, shape, sizeof got.shape);
    take(f, pointers, extra);
    return CUDA_SUCCESS;
}

#define SHAPE_ARGUMENTS                                                                         \
    CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
        unsigned shared, CUstream q, void **pointers
#define SHAPE_OF_ARGUMENTS ((const unsigned[7]){gx, gy, gz, bx, by, bz, shared})
#define DRIVER_LAUNCH(symbol)                                                        \
    static CUresult symbol##_(SHAPE_ARGUMENTS, void **extra)                         \
    {                                                                                \
        return launched(DRIVER_##symbol, f, SHAPE_OF_ARGUMENTS, q, pointers, extra); \
    }
#define DRIVER_COOPERATIVE(symbol)                                                  \
    static CUresult symbol##_(SHAPE_ARGUMENTS)                                      \
    {                                                                               \
        return launched(DRIVER_##symbol, f, SHAPE_OF_ARGUMENTS, q, pointers, NULL); \
    }
#define SHAPE_OF(p)                                                                                   \
    ((const unsigned[7]){(p)->gridDimX, (p)->gridDimY, (p)->gridDimZ, (p)->blockDimX, (p)->blockDimY, \
                         (p)->blockDimZ, (p)->sharedMemBytes})
#define DRIVER_EX(symbol)                                                                           \
    static CUresult symbol##_(const CUlaunchConfig *c, CUfunction f, void **pointers, void **extra) \
    {                                                                                               \
        if (!c)                                                                                     \
            return CUDA_ERROR_INVALID_VALUE;                                                        \
        launched(DRIVER_##symbol, f, SHAPE_OF(c), c->hStream, pointers, extra);                     \
        got.config = c;                                                                             \
        return CUDA_SUCCESS;                                                                        \
    }
DRIVER_LAUNCH(cuLaunchKernel)
DRIVER_LAUNCH(cuLaunchKernel_ptsz)
DRIVER_COOPERATIVE(cuLaunchCooperativeKernel)
DRIVER_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)
DRIVER_EX(cuLaunchKernelEx)
DRIVER_EX(cuLaunchKernelEx_ptsz)

static const unsigned nothing[7];

static CUresult cuLaunch_(CUfunction f)
{
    return launched(DRIVER_cuLaunch, f, nothing, NULL, NULL, NULL);
}

static CUresult cuLaunchGrid_(CUfunction f, int x, int y)
{
    return launched(DRIVER_cuLaunchGrid, f, nothing, NULL, NULL, NULL);
}

static CUresult cuLaunchGridAsync_(CUfunction f, int x, int y, CUstream q)
{
    return launched(DRIVER_cuLaunchGridAsync, f, nothing, q, NULL, NULL);
}

static CUresult set_shape(CUfunction f, int x, int y, int z)
{
    return x > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_size(CUfunction f, unsigned bytes)
{
    return bytes <= 4096 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_int(CUfunction f, int offset, unsigned value)
{
    return offset >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_float(CUfunction f, int offset, float value)
{
    return CUDA_SUCCESS;
}

static CUresult set_bytes(CUfunction f, int offset, void *from, unsigned n)
{
    return CUDA_SUCCESS;
}

static CUDA_LAUNCH_PARAMS devices[32];
static unsigned ndevices;
static char device_bytes[32][32];

static CUresult multi_device(CUDA_LAUNCH_PARAMS *list, unsigned count, unsigned flags)
{
    if (count > 20)
        return CUDA_ERROR_INVALID_VALUE;
    ndevices = count;
    for (unsigned i = 0; i < count; i++) {
        devices[i] = list[i];
        launched(DRIVER_cuLaunchCooperativeKernelMultiDevice, list[i].function, SHAPE_OF(&list[i]),
                 list[i].hStream, list[i].kernelParams, NULL);
        memcpy(device_bytes[i], got.bytes, sizeof device_bytes[i]);
    }
    return CUDA_SUCCESS;
}

#define KERNEL_OF_v1(p) NULL, NULL
#define KERNEL_OF_v2(p) (p)->kern, (p)->ctx

static CUresult node_set(enum driver_id call, CUfunction f, const unsigned shape[7], void **pointers,
                         void **extra, CUkernel kernel, CUcontext context)
{
    launched(call, f ? f : (CUfunction)kernel, shape, NULL, pointers, extra);
    got.function = f;
    got.kernel = kernel;
    got.context = context;
    return CUDA_SUCCESS;
}

#define SET(symbol, version, p) \
    node_set(DRIVER_##symbol, (p)->func, SHAPE_OF(p), (p)->kernelParams, (p)->extra, KERNEL_OF_##version(p))
#define DRIVER_NODES(suffix, version, type)                                                          \
    static CUresult add##suffix##_(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n, \
                                   const type *p)                                                    \
    {                                                                                                \
        SET(cuGraphAddKernelNode##suffix, version, p);                                               \
        got.graph = g, got.after = after, got.count = n;                                             \
        *node = NODE;                                                                                \
        return CUDA_SUCCESS;                                                                         \
    }                                                                                                \
    static CUresult set##suffix##_(CUgraphNode node, const type *p)                                  \
    {                                                                                                \
        SET(cuGraphKernelNodeSetParams##suffix, version, p);                                         \
        got.node = node;                                                                             \
        return CUDA_SUCCESS;                                                                         \
    }                                                                                                \
    static CUresult set_exec##suffix##_(CUgraphExec e, CUgraphNode node, const type *p)              \
    {                                                                                                \
        SET(cuGraphExecKernelNodeSetParams##suffix, version, p);                                     \
        got.graph = e, got.node = node;                                                              \
        return CUDA_SUCCESS;                                                                         \
    }
DRIVER_NODES(, v1, CUDA_KERNEL_NODE_PARAMS_v1)
DRIVER_NODES(_v2, v2, CUDA_KERNEL_NODE_PARAMS)

static CUresult any_set(enum driver_id call, const CUgraphNodeParams *p)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *k = &p->kernel;
    if (p->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return launched(call, NULL, nothing, NULL, NULL, NULL);
    return node_set(call, k->func, SHAPE_OF(k), k->kernelParams, k->extra, k->kern, k->ctx);
}

static CUresult add_any(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n,
                        CUgraphNodeParams *p)
{
    any_set(DRIVER_cuGraphAddNode, p);
    got.graph = g, got.after = after, got.count = n;
    *node = NODE;
    return CUDA_SUCCESS;
}

static CUresult add_any_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                           const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *p)
{
    any_set(DRIVER_cuGraphAddNode_v2, p);
    got.graph = g, got.after = after, got.edges = edges, got.count = n;
    *node = NODE;
    return CUDA_SUCCESS;
}

static CUresult set_any(CUgraphNode node, CUgraphNodeParams *p)
{
    any_set(DRIVER_cuGraphNodeSetParams, p);
    got.node = node;
    return CUDA_SUCCESS;
}

static CUresult set_any_exec(CUgraphExec e, CUgraphNode node, CUgraphNodeParams *p)
{
    any_set(DRIVER_cuGraphExecNodeSetParams, p);
    got.graph = e, got.node = node;
    return CUDA_SUCCESS;
}

// Returns what the node was set to last.
static CUresult get_params(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    *p = (CUDA_KERNEL_NODE_PARAMS_v1){.func = (CUfunction)got.function, .gridDimX = got.shape[0]};
    return CUDA_SUCCESS;
}

static CUresult get_params_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p)
{
    *p = (CUDA_KERNEL_NODE_PARAMS){
        .func = (CUfunction)got.function, .kern = (CUkernel)got.kernel, .gridDimX = got.shape[0]};
    return CUDA_SUCCESS;
}

static CUstreamCaptureStatus capture_status;

static CUresult is_capturing(CUstream q, CUstreamCaptureStatus *status)
{
    *status = q == STREAM ? capture_status : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult launch_graph(CUgraphExec e, CUstream q)
{
    return CUDA_SUCCESS;
}

static CUresult device_count(int *count)
{
    *count = 20;
    return CUDA_SUCCESS;
}

static void fill_driver(struct driver *d)
{
    *d = (struct driver){.handle = NULL};
    d->cuFuncGetParamInfo = function_info, d->cuKernelGetParamInfo = kernel_info;
    d->cuLaunchKernel = cuLaunchKernel_, d->cuLaunchKernel_ptsz = cuLaunchKernel_ptsz_;
    d->cuLaunchCooperativeKernel = cuLaunchCooperativeKernel_;
    d->cuLaunchCooperativeKernel_ptsz = cuLaunchCooperativeKernel_ptsz_;
    d->cuLaunchKernelEx = cuLaunchKernelEx_, d->cuLaunchKernelEx_ptsz = cuLaunchKernelEx_ptsz_;
    d->cuLaunch = cuLaunch_, d->cuLaunchGrid = cuLaunchGrid_, d->cuLaunchGridAsync = cuLaunchGridAsync_;
    d->cuFuncSetBlockShape = set_shape, d->cuFuncSetSharedSize = set_size, d->cuParamSetSize = set_size;
    d->cuParamSeti = set_int, d->cuParamSetf = set_float, d->cuParamSetv = set_bytes;
    d->cuLaunchCooperativeKernelMultiDevice = multi_device, d->cuDeviceGetCount = device_count;
    d->cuGraphAddKernelNode = add_, d->cuGraphAddKernelNode_v2 = add_v2_;
    d->cuGraphKernelNodeSetParams = set_, d->cuGraphKernelNodeSetParams_v2 = set_v2_;
    d->cuGraphExecKernelNodeSetParams = set_exec_, d->cuGraphExecKernelNodeSetParams_v2 = set_exec_v2_;
    d->cuGraphAddNode = add_any, d->cuGraphAddNode_v2 = add_any_v2;
    d->cuGraphNodeSetParams = set_any, d->cuGraphExecNodeSetParams = set_any_exec;
    d->cuGraphKernelNodeGetParams = get_params, d->cuGraphKernelNodeGetParams_v2 = get_params_v2;
    d->cuStreamIsCapturing = d->cuStreamIsCapturing_ptsz = is_capturing;
    d->cuGraphLaunch = launch_graph;
}

// --- the mode ----------------------------------------------------------------------------------------------

// What the mode saw last, and what it does.
static struct launch_call saw;
static struct launch_node saw_node;  // a copy, because the hook's own is in its frame
static unsigned launches, nodes;
static char saw_bytes[8192];
static size_t saw_size;
static bool saw_parameters, saw_captured, saw_cooperative;
static bool looks, changes, appends, append_answer;
static const void *instead;

static void tell(const struct launch_call *l)
{
    const void *bytes;
    saw = *l;
    if (l->node)
        saw_node = *l->node;
    if (looks) {
        saw_parameters = launch_call_parameters(l, &bytes, &saw_size);
        memcpy(saw_bytes, saw_size ? bytes : "", saw_size);
        saw_captured = launch_call_is_captured(l);
        saw_cooperative = launch_call_is_cooperative(l);
    }
    if (changes && l->function) {
        launch_call_replace(l, instead);
        append_answer = !appends || launch_call_append(l, &more, sizeof more, sizeof more);
    }
}

static void launch(const struct launch_call *l)
{
    launches++;
    tell(l);
}

static void node(const struct launch_call *l)
{
    nodes++;
    tell(l);
}

static const struct mode test_mode = {.launch = launch, .node = node};

static int start(void **state)
{
    static const struct mode_row row = {&test_mode, 0};
    guard.watching = true;
    guard.options.mode = 1;
    mode_start(&row, 1);
    return 0;
}

static int setup(void **state)
{
    fill_driver(&guard.real);
    memset(&got, 0, sizeof got);
    memset(&saw, 0, sizeof saw);
    memset(saw_bytes, 0, sizeof saw_bytes);
    memcpy(packed, &first, sizeof first);
    packed[2] = second;
    packed_size = sizeof packed;
    launches = nodes = 0;
    saw_size = 0;
    looks = true;
    changes = saw_parameters = saw_captured = saw_cooperative = false;
    appends = tells_layout = true;
    hidden_of_own = 0;
    capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
    instead = INSTEAD;
    kernels_found(OWN, KERNELS_FUNCTION, GRAPH, "before");
    kernels_found(OWN, KERNELS_FUNCTION, GRAPH, "own");
    kernels_found(INSTEAD, KERNELS_FUNCTION, EXEC, "instead");
    kernels_found(KERNEL, KERNELS_KERNEL, GRAPH, "kernel");
    kernels_found(OTHER_KERNEL, KERNELS_KERNEL, EXEC, "other kernel");
    atomic_store(&guard.counts[GUARD_LAUNCHES_LEFT], 0);
    return 0;
}

static uint64_t left(void)
{
    return atomic_load(&guard.counts[GUARD_LAUNCHES_LEFT]);
}

static void changing(const void *function, bool append)
{
    changes = true;
    instead = function;
    appends = append;
}

// Every way below launches blocks of 4 by 5 by 6 threads, with 7 bytes of shared memory.
static void assert_saw(enum driver_id call, const void *function, unsigned gx, unsigned gy, unsigned gz,
                       CUstream q)
{
    assert_int_equal(saw.call, call);
    assert_ptr_equal(saw.function, function);
    assert_memory_equal(saw.grid, ((unsigned[]){gx, gy, gz}), sizeof saw.grid);
    assert_memory_equal(saw.block, ((unsigned[]){4, 5, 6}), sizeof saw.block);
    assert_int_equal(saw.shared, 7);
    assert_ptr_equal(saw.stream, q);
    assert_true(saw_parameters);
    assert_int_equal(saw_size, 12);
    assert_memory_equal(saw_bytes, &first, 8);
    assert_memory_equal(saw_bytes + 8, &second, 4);
    assert_int_equal(left(), 0);
}

// The driver got the program's arguments, with that function, and the appended parameter or not.
static void assert_got(enum driver_id call, const void *function, const unsigned grid[3], CUstream q,
                       bool appended)
{
    assert_int_equal(got.call, call);
    assert_ptr_equal(got.function, function);
    assert_memory_equal(got.shape, grid, 3 * sizeof *grid);
    assert_memory_equal(got.shape + 3, ((unsigned[]){4, 5, 6, 7}), 4 * sizeof *grid);
    assert_ptr_equal(got.stream, q);
    assert_int_equal(got.size, appended ? 24 : 12);
    assert_memory_equal(got.bytes, &first, 8);
    assert_memory_equal(got.bytes + 8, &second, 4);
    if (appended)
        assert_memory_equal(got.bytes + 12, "\0\0\0\0\x11\x00\xff\xee\xdd\xcc\xbb\xaa", 12);
}

static const unsigned grid[3] = {1, 2, 3};

// --- launches ----------------------------------------------------------------------------------------------

// Each way three times: unchanged, with another function, and with one more parameter.
#define WAY(symbol, stream, expect_extra, ...)                              \
    do {                                                                    \
        changes = false;                                                    \
        assert_int_equal(hook_##symbol(__VA_ARGS__), 0);                    \
        assert_saw(DRIVER_##symbol, OWN, 1, 2, 3, stream);                  \
        assert_got(DRIVER_##symbol, OWN, grid, stream, false);              \
        assert_ptr_equal(got.pointers, expect_extra ? NULL : own_pointers); \
        assert_ptr_equal(got.extra, expect_extra ? own_extra : NULL);       \
        changing(INSTEAD, true);                                            \
        assert_int_equal(hook_##symbol(__VA_ARGS__), 0);                    \
        assert_got(DRIVER_##symbol, INSTEAD, grid, stream, true);           \
        assert_true(append_answer);                                         \
        assert_int_equal(left(), 0);                                        \
    } while (0)

static void launches_kernels(void **state)
{
    mem_fail_after(0);
    WAY(cuLaunchKernel, STREAM, false, OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, own_pointers, NULL);
    assert_false(saw_cooperative || launch_call_per_thread(&saw));
    WAY(cuLaunchKernel, STREAM, true, OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, NULL, own_extra);
    WAY(cuLaunchKernel_ptsz, NULL, false, OWN, 1, 2, 3, 4, 5, 6, 7, NULL, own_pointers, NULL);
    assert_true(launch_call_per_thread(&saw));
    WAY(cuLaunchKernel_ptsz, NULL, true, OWN, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, own_extra);
    WAY(cuLaunchCooperativeKernel, STREAM, false, OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, own_pointers);
    assert_true(saw_cooperative);
    WAY(cuLaunchCooperativeKernel_ptsz, STREAM, false, OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, own_pointers);
    assert_true(saw_cooperative && launch_call_per_thread(&saw));
    mem_fail_after(-1);
    assert_int_equal(launches, 12);
    assert_int_equal(got.calls, 12);
    assert_int_equal(nodes, 0);
}

static void launches_by_configuration(void **state)
{
    unsigned cluster[3];
    CUlaunchAttribute attributes[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 2, 1}},
    };
    CUlaunchConfig c = {1, 2, 3, 4, 5, 6, 7, STREAM, attributes, 2};
    mem_fail_after(0);
    WAY(cuLaunchKernelEx, STREAM, false, &c, OWN, own_pointers, NULL);
    assert_ptr_equal(got.config, &c);
    assert_true(saw_cooperative);
    assert_true(launch_call_cluster(&saw, cluster));
    assert_memory_equal(cluster, ((unsigned[]){1, 2, 1}), sizeof cluster);
    assert_null(launch_call_attribute(&saw, CU_LAUNCH_ATTRIBUTE_PRIORITY));
    WAY(cuLaunchKernelEx_ptsz, STREAM, true, &c, OWN, NULL, own_extra);
    c.numAttrs = 0;
    WAY(cuLaunchKernelEx_ptsz, STREAM, false, &c, OWN, own_pointers, NULL);
    assert_false(saw_cooperative);
    assert_false(launch_call_cluster(&saw, cluster));
    changes = false;
    assert_int_equal(hook_cuLaunchKernelEx(NULL, OWN, own_pointers, NULL), CUDA_ERROR_INVALID_VALUE);
    mem_fail_after(-1);
}

// Changed launches use cuLaunchKernel: the old calls would change what the program has set.
#define OLD_WAY(symbol, gx, gy, stream, ...)                                                     \
    do {                                                                                         \
        changes = false;                                                                         \
        assert_int_equal(hook_##symbol(__VA_ARGS__), 0);                                         \
        assert_saw(DRIVER_##symbol, OWN, gx, gy, 1, stream);                                     \
        assert_int_equal(got.call, DRIVER_##symbol);                                             \
        assert_ptr_equal(got.function, OWN);                                                     \
        changing(INSTEAD, false);                                                                \
        assert_int_equal(hook_##symbol(__VA_ARGS__), 0);                                         \
        assert_int_equal(got.call, DRIVER_cuLaunchKernel);                                       \
        assert_int_equal(got.size, 12);                                                          \
        changing(INSTEAD, true);                                                                 \
        assert_int_equal(hook_##symbol(__VA_ARGS__), 0);                                         \
        assert_got(DRIVER_cuLaunchKernel, INSTEAD, (const unsigned[]){gx, gy, 1}, stream, true); \
    } while (0)

static void launches_the_oldest_way(void **state)
{
    float real = 1.5f;
    mem_fail_after(0);
    assert_int_equal(hook_cuFuncSetBlockShape(OWN, 4, 5, 6), 0);
    assert_int_equal(hook_cuFuncSetBlockShape(OWN, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(hook_cuFuncSetSharedSize(OWN, 7), 0);
    assert_int_equal(hook_cuParamSetv(OWN, 0, &first, sizeof first), 0);
    assert_int_equal(hook_cuParamSetv(OWN, KERNELS_OLD_BYTES - 4, &first, sizeof first), 0);
    assert_int_equal(hook_cuParamSeti(OWN, 8, second), 0);
    assert_int_equal(hook_cuParamSeti(OWN, -1, 5), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(hook_cuParamSetSize(OWN, 12), 0);
    assert_int_equal(hook_cuParamSetSize(OWN, 5000), CUDA_ERROR_INVALID_VALUE);
    OLD_WAY(cuLaunch, 1, 1, NULL, OWN);
    OLD_WAY(cuLaunchGrid, 8, 9, NULL, OWN, 8, 9);
    OLD_WAY(cuLaunchGridAsync, 8, 9, STREAM, OWN, 8, 9, STREAM);
    assert_int_equal(hook_cuParamSetf(OWN, 8, real), 0);
    assert_int_equal(hook_cuLaunch(OWN), 0);
    assert_memory_equal(got.bytes + 8, &real, sizeof real);
    mem_fail_after(-1);
}

static void launches_on_devices(void **state)
{
    CUDA_LAUNCH_PARAMS list[20];
    for (unsigned i = 0; i < 20; i++)
        list[i] = (CUDA_LAUNCH_PARAMS){OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, own_pointers};
    mem_fail_after(0);
    assert_int_equal(hook_cuLaunchCooperativeKernelMultiDevice(list, 2, 0), 0);
    assert_saw(DRIVER_cuLaunchCooperativeKernelMultiDevice, OWN, 1, 2, 3, STREAM);
    assert_true(saw_cooperative);
    assert_int_equal(launches, 2);
    assert_ptr_equal(devices[1].kernelParams, own_pointers);
    changing(INSTEAD, true);
    assert_int_equal(hook_cuLaunchCooperativeKernelMultiDevice(list, 2, 0), 0);
    assert_int_equal(ndevices, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_ptr_equal(devices[i].function, INSTEAD);
        assert_memory_equal(device_bytes[i], &first, 8);
        assert_memory_equal(device_bytes[i] + 16, &more, 8);
    }
    assert_got(DRIVER_cuLaunchCooperativeKernelMultiDevice, INSTEAD, grid, STREAM, true);
    assert_ptr_equal(list[0].function, OWN);
    assert_int_equal(left(), 0);
    // More launches than there is room for.
    launches = 0;
    assert_int_equal(hook_cuLaunchCooperativeKernelMultiDevice(list, 20, 0), 0);
    assert_int_equal(launches, 0);
    assert_int_equal(left(), 20);
    assert_ptr_equal(devices[0].function, OWN);
    assert_ptr_equal(devices[0].kernelParams, own_pointers);
    // More launches than devices: the driver refuses the call, and the list is not read.
    uint64_t noted = atomic_load(&launch_ring.count);
    assert_int_equal(hook_cuLaunchCooperativeKernelMultiDevice(list, UINT_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(atomic_load(&launch_ring.count), noted);
    assert_int_equal(left(), 20);
    mem_fail_after(-1);
}

static void sees_captures(void **state)
{
    capture_rule_begins();
    capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    hook_cuLaunchKernel(OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, own_pointers, NULL);
    assert_true(saw_captured);
    hook_cuLaunchKernel(OWN, 1, 2, 3, 4, 5, 6, 7, NULL, own_pointers, NULL);
    assert_false(saw_captured);
}

static void sees_graphs(void **state)
{
    looks = false;
    changes = true;
    assert_int_equal(hook_cuGraphLaunch(EXEC, STREAM), 0);
    assert_int_equal(launches, 1);
    assert_ptr_equal(saw.graph, EXEC);
    assert_null(saw.function);
    assert_false(launch_call_replace(&saw, INSTEAD));
    assert_false(launch_call_append(&saw, &more, 8, 8));
    assert_false(launch_call_parameters(&saw, &(const void *){NULL}, &(size_t){0}));
}

// --- nodes -------------------------------------------------------------------------------------------------

#define NODE_WAY(symbol, own, own_kernel, other, other_kernel, ...)                             \
    do {                                                                                        \
        changes = false;                                                                        \
        assert_int_equal(hook_##symbol(__VA_ARGS__), 0);                                        \
        assert_saw(DRIVER_##symbol, (own) ? (const void *)(own) : (own_kernel), 1, 2, 3, NULL); \
        assert_got(DRIVER_##symbol, own, grid, NULL, false);                                    \
        assert_ptr_equal(got.kernel, own_kernel);                                               \
        assert_non_null(saw.node);                                                              \
        changing((other) ? (const void *)(other) : (other_kernel), true);                       \
        assert_int_equal(hook_##symbol(__VA_ARGS__), 0);                                        \
        assert_got(DRIVER_##symbol, other, grid, NULL, true);                                   \
        assert_ptr_equal(got.kernel, other_kernel);                                             \
        assert_int_equal(left(), 0);                                                            \
    } while (0)

static void adds_nodes(void **state)
{
    CUgraphNode after[2] = {NODE, NODE}, made = NULL;
    CUDA_KERNEL_NODE_PARAMS_v1 v1 = {OWN, 1, 2, 3, 4, 5, 6, 7, own_pointers, NULL};
    CUDA_KERNEL_NODE_PARAMS v2 = {OWN, 1, 2, 3, 4, 5, 6, 7, own_pointers, NULL, NULL, CONTEXT};
    mem_fail_after(0);
    NODE_WAY(cuGraphAddKernelNode, OWN, NULL, INSTEAD, NULL, &made, GRAPH, after, 2, &v1);
    assert_ptr_equal(made, NODE);
    assert_true(got.graph == GRAPH && got.after == after && got.count == 2);
    v1.kernelParams = NULL, v1.extra = own_extra;
    NODE_WAY(cuGraphAddKernelNode, OWN, NULL, INSTEAD, NULL, &made, GRAPH, after, 2, &v1);
    NODE_WAY(cuGraphAddKernelNode_v2, OWN, NULL, INSTEAD, NULL, &made, GRAPH, after, 2, &v2);
    assert_ptr_equal(got.context, CONTEXT);
    v2.func = NULL, v2.kern = KERNEL;
    NODE_WAY(cuGraphAddKernelNode_v2, NULL, KERNEL, NULL, OTHER_KERNEL, &made, GRAPH, after, 2, &v2);
    mem_fail_after(-1);
    assert_int_equal(nodes, 8);
    assert_int_equal(launches, 0);
    changes = false;
    assert_ptr_equal(v2.kernelParams, own_pointers);
}

static void sets_nodes(void **state)
{
    CUDA_KERNEL_NODE_PARAMS_v1 v1 = {OWN, 1, 2, 3, 4, 5, 6, 7, own_pointers, NULL};
    CUDA_KERNEL_NODE_PARAMS v2 = {OWN, 1, 2, 3, 4, 5, 6, 7, own_pointers, NULL, NULL, CONTEXT};
    mem_fail_after(0);
    NODE_WAY(cuGraphKernelNodeSetParams, OWN, NULL, INSTEAD, NULL, NODE, &v1);
    assert_ptr_equal(got.node, NODE);
    NODE_WAY(cuGraphKernelNodeSetParams_v2, OWN, NULL, INSTEAD, NULL, NODE, &v2);
    NODE_WAY(cuGraphExecKernelNodeSetParams, OWN, NULL, INSTEAD, NULL, EXEC, NODE, &v1);
    assert_true(got.graph == EXEC && got.node == NODE);
    assert_ptr_equal(saw_node.exec, EXEC);
    NODE_WAY(cuGraphExecKernelNodeSetParams_v2, OWN, NULL, INSTEAD, NULL, EXEC, NODE, &v2);
    mem_fail_after(-1);
}

static void sets_any_nodes(void **state)
{
    CUgraphNode made = NULL;
    CUgraphEdgeData edge = {0};
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                           .kernel = {OWN, 1, 2, 3, 4, 5, 6, 7, own_pointers, NULL, NULL, CONTEXT}};
    mem_fail_after(0);
    NODE_WAY(cuGraphAddNode, OWN, NULL, INSTEAD, NULL, &made, GRAPH, &made, 1, &p);
    assert_true(got.graph == GRAPH && got.after == &made && got.count == 1 && made == NODE);
    NODE_WAY(cuGraphAddNode_v2, OWN, NULL, INSTEAD, NULL, &made, GRAPH, &made, &edge, 1, &p);
    assert_ptr_equal(got.edges, &edge);
    NODE_WAY(cuGraphNodeSetParams, OWN, NULL, INSTEAD, NULL, NODE, &p);
    NODE_WAY(cuGraphExecNodeSetParams, OWN, NULL, INSTEAD, NULL, EXEC, NODE, &p);
    assert_true(got.graph == EXEC && got.node == NODE && got.context == CONTEXT);
    p.kernel.func = NULL, p.kernel.kern = KERNEL;
    NODE_WAY(cuGraphAddNode, NULL, KERNEL, NULL, OTHER_KERNEL, &made, GRAPH, NULL, 0, &p);
    mem_fail_after(-1);
    nodes = 0;
    p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    assert_int_equal(hook_cuGraphAddNode(&made, GRAPH, NULL, 0, &p), 0);
    assert_int_equal(nodes, 0);
}

// The program gets back what it set.
static void returns_own_kernels(void **state)
{
    CUgraphNode made;
    CUDA_KERNEL_NODE_PARAMS_v1 v1 = {OWN, 1, 2, 3, 4, 5, 6, 7, own_pointers, NULL};
    CUDA_KERNEL_NODE_PARAMS v2 = {NULL, 1, 2, 3, 4, 5, 6, 7, own_pointers, NULL, KERNEL, NULL};
    changing(INSTEAD, true);
    assert_int_equal(hook_cuGraphAddKernelNode(&made, GRAPH, NULL, 0, &v1), 0);
    assert_ptr_equal(got.function, INSTEAD);
    assert_int_equal(hook_cuGraphKernelNodeGetParams(made, &v1), 0);
    assert_ptr_equal(v1.func, OWN);
    CUDA_KERNEL_NODE_PARAMS answer;
    assert_int_equal(hook_cuGraphKernelNodeGetParams_v2(made, &answer), 0);
    assert_true(answer.func == OWN && !answer.kern);
    changing(OTHER_KERNEL, true);
    assert_int_equal(hook_cuGraphAddKernelNode_v2(&made, GRAPH, NULL, 0, &v2), 0);
    assert_ptr_equal(got.kernel, OTHER_KERNEL);
    assert_int_equal(hook_cuGraphKernelNodeGetParams_v2(made, &answer), 0);
    assert_true(!answer.func && answer.kern == KERNEL);
    changes = false;
    hook_cuGraphAddKernelNode_v2(&made, GRAPH, NULL, 0, &v2);
    hook_cuGraphKernelNodeGetParams_v2(made, &answer);
    assert_true(!answer.func && answer.kern == KERNEL);
}

static void hides_parameters(void **state)
{
    size_t offset = 0, size = 0;
    hidden_of_own = 1;
    assert_int_equal(hook_cuFuncGetParamInfo(OWN, 2, &offset, &size), 0);
    kernels_hide(kernels_find(OWN), 1);
    assert_int_equal(hook_cuFuncGetParamInfo(OWN, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(hook_cuFuncGetParamInfo(OWN, 1, &offset, &size), 0);
    assert_int_equal(offset, 8);
    kernels_hide(kernels_find(KERNEL), 1);
    assert_int_equal(hook_cuKernelGetParamInfo(KERNEL, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(hook_cuKernelGetParamInfo(KERNEL, 0, &offset, &size), 0);
    // The program passes two pointers; the third comes from the mode.
    changing(OWN, true);
    hook_cuLaunchKernel(OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, own_pointers, NULL);
    assert_got(DRIVER_cuLaunchKernel, OWN, grid, STREAM, true);
    assert_int_equal(saw_size, 12);
    kernels_hide(kernels_find(OWN), 0);
    kernels_hide(kernels_find(KERNEL), 0);
}

// --- what cannot be changed --------------------------------------------------------------------------------

static void launch_own(void **pointers, void **extra)
{
    got.function = NULL;
    assert_int_equal(hook_cuLaunchKernel(OWN, 1, 2, 3, 4, 5, 6, 7, STREAM, pointers, extra), 0);
}

// Such launches are made unchanged and counted.
static void leaves_what_nobody_knows(void **state)
{
    guard.real.cuFuncGetParamInfo = NULL;
    launch_own(own_pointers, NULL);
    assert_false(saw_parameters);
    assert_int_equal(left(), 1);
    changing(INSTEAD, true);
    launch_own(own_pointers, NULL);
    assert_false(append_answer);
    assert_ptr_equal(got.function, OWN);
    assert_ptr_equal(got.pointers, own_pointers);
    assert_int_equal(left(), 2);
    // Without an appended parameter no layout is needed, and a buffer has its size.
    changing(KERNEL, false);
    looks = false;
    launch_own(own_pointers, NULL);
    assert_ptr_equal(got.function, KERNEL);
    assert_int_equal(left(), 2);
    changing(INSTEAD, true);
    launch_own(NULL, own_extra);
    assert_got(DRIVER_cuLaunchKernel, INSTEAD, grid, STREAM, true);
    // A mode may know the layout.
    setup(NULL);
    guard.real.cuFuncGetParamInfo = NULL;
    kernels_set_layout(kernels_find(OWN), (const struct kernels_parameter[]){{0, 8}, {8, 4}}, 2);
    changing(INSTEAD, true);
    launch_own(own_pointers, NULL);
    assert_got(DRIVER_cuLaunchKernel, INSTEAD, grid, STREAM, true);
}

static void leaves_what_is_wrong(void **state)
{
    void *missing[] = {&first, NULL}, *unknown[] = {(void *)7, packed, CU_LAUNCH_PARAM_END};
    void *half[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_END};
    void *none[] = {CU_LAUNCH_PARAM_END};
    const void *bytes;
    size_t size;
    struct launch_change c;
    _Alignas(16) char room[LAUNCH_CALL_ROOM];
    struct launch_call l = {.call = DRIVER_cuLaunchKernel, .function = OWN, .change = &c};
    void **wrong[][2] = {{missing, NULL}, {NULL, NULL}, {NULL, unknown},
                         {NULL, half},    {NULL, none}, {own_pointers, own_extra}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        l.parameters = wrong[i][0], l.extra = wrong[i][1];
        launch_change_start(&c, room);
        assert_false(launch_call_parameters(&l, &bytes, &size));
        assert_false(launch_call_parameters(&l, &bytes, &size));
        assert_int_equal(left(), i + 1);
    }
    l.parameters = own_pointers, l.extra = none;
    launch_change_start(&c, room);
    assert_true(launch_call_parameters(&l, &bytes, &size));
    assert_int_equal(size, 12);
    // A buffer that the driver would refuse is not repaired.
    for (packed_size = 0; packed_size < 30; packed_size++) {
        l.parameters = NULL, l.extra = own_extra;
        launch_change_start(&c, room);
        assert_int_equal(launch_call_append(&l, &more, 8, 8), packed_size >= 9 && packed_size <= 16);
    }
}

static void appends_what_fits(void **state)
{
    struct launch_change c;
    _Alignas(16) char room[LAUNCH_CALL_ROOM];
    struct launch_call l = {
        .call = DRIVER_cuLaunchKernel, .function = OWN, .change = &c, .parameters = own_pointers};
    static char wide[LAUNCH_CALL_MORE_BYTES] = "wide";
    enum { ALL = LAUNCH_CALL_MORE_BYTES - 16 };  // 16 bytes are kept for padding
    launch_change_start(&c, room);
    for (int i = 0; i < LAUNCH_CALL_MORE; i++)
        assert_true(launch_call_append(&l, &more, 8, 8));
    assert_true(launch_call_is_changed(&l));
    assert_false(launch_call_append(&l, &more, 8, 8));
    assert_false(launch_call_is_changed(&l));
    assert_false(launch_call_replace(&l, INSTEAD));
    assert_int_equal(left(), 1);
    launch_change_start(&c, room);
    assert_true(launch_call_append(&l, wide, 64, 16));
    assert_true(launch_call_append(&l, wide, ALL - 80, 16));
    assert_true(launch_call_append(&l, wide, 16, 16));
    assert_false(launch_call_append(&l, wide, 1, 1));
    launch_change_start(&c, room);
    assert_false(launch_call_append(&l, wide, ALL + 1, 1));
    // The most bytes possible, with the least aligned start.
    static char most[4096];
    size_t size = 4093;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, most, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    l.parameters = NULL, l.extra = extra;
    guard.real.cuFuncGetParamInfo = NULL, guard.real.cuKernelGetParamInfo = NULL;
    l.function = (CUfunction)&functions[5];
    memset(most, 'x', sizeof most);
    launch_change_start(&c, room);
    assert_true(launch_call_append(&l, "y", 1, 1));
    assert_true(launch_call_append(&l, wide, 64, 16));
    assert_true(launch_call_append(&l, wide, 32, 16));
    assert_int_equal(launch_call_go(&l), 0);
    assert_int_equal(got.size, 4096 + 96);
    assert_memory_equal(got.bytes + 4090, "xxxy\0\0wide", 10);
    size = 4097;
    launch_change_start(&c, room);
    assert_false(launch_call_append(&l, "y", 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(launches_kernels, setup),
        cmocka_unit_test_setup(launches_by_configuration, setup),
        cmocka_unit_test_setup(launches_the_oldest_way, setup),
        cmocka_unit_test_setup(launches_on_devices, setup),
        cmocka_unit_test_setup(sees_captures, setup),
        cmocka_unit_test_setup(sees_graphs, setup),
        cmocka_unit_test_setup(adds_nodes, setup),
        cmocka_unit_test_setup(sets_nodes, setup),
        cmocka_unit_test_setup(sets_any_nodes, setup),
        cmocka_unit_test_setup(returns_own_kernels, setup),
        cmocka_unit_test_setup(hides_parameters, setup),
        cmocka_unit_test_setup(leaves_what_nobody_knows, setup),
        cmocka_unit_test_setup(leaves_what_is_wrong, setup),
        cmocka_unit_test_setup(appends_what_fits, setup),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
