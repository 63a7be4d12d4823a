// SPDX-License-Identifier: MIT
// Any bytes as a program of driver calls: which call, and for each parameter a value that fits its type:
// nothing, something wild, something that was destroyed, or something that earlier calls returned. Parameters
// and their types come from calls.def, so every call is tried, also future ones.
//
// Addresses that a call reads or writes are NULL or in one area of memory: a program that passes others is to
// blame for its crash. Calls that would wait for something that never happens are left out.
//
// The seeds in corpus/cuda_api are random bytes, of a length that makes programs of some 30 calls.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/whole.h"
#include "exec/space.h"

enum { PARAMS = 16, KEPT = 8, CALLS = 40, AREA = 4 << 20, TEXT = 8 << 10, OUT = 64 << 10 };

static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .b8 gv[40];\n.visible .const .u32 cv = 9;\n"
    ".visible .global .attribute(.managed) .u32 mv;\n"
    ".visible .entry store(.param .u64 p, .param .u32 v)\n"
    "{ .reg .b64 %a; .reg .b32 %b; ld.param.u64 %a, [p]; ld.param.u32 %b, [v];\n"
    "st.global.u32 [%a], %b; ret; }\n"
    ".visible .entry empty() { ret; }\n.visible .entry die() { trap; }\n"
    ".global .texref image;\n.global .surfref canvas;\n"
    ".visible .entry look(.param .u64 t, .param .u32 x)\n"
    "{ .reg .b64 %t; .reg .b32 %x, %r<4>; ld.param.u64 %t, [t]; ld.param.u32 %x, [x];\n"
    "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %x}];\n"
    "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [image, {%x}];\n"
    "sust.b.2d.b32.zero [canvas, {%x, %x}], %r0; ret; }\n";

// What a parameter is, as far as the fuzzer needs to know.
enum kind {
    NUMBER,
    POINTER,   // to anything; also for returned handles
    POINTERS,  // to more of them
    NAME,
    FUNCTION,  // a callback
    DEVICE_ADDRESS,
    HANDLE,
};

static const char *const handle_types[] = {
    "CUcontext",
    "CUmodule",
    "CUfunction",
    "CUkernel",
    "CUlibrary",
    "CUstream",
    "CUevent",
    "CUmemoryPool",
    "CUarray",
    "CUlinkState",
    "CUdeviceptr",
    "CUmemGenericAllocationHandle",
    "CUgraph",
    "CUgraphExec",
    "CUgraphNode",
    "CUuserObject",
    "CUgraphConditionalHandle",
    "CUmipmappedArray",
    "CUtexObject",
    "CUsurfObject",
    "CUtexref",
    "CUsurfref",
    "CUgreenCtx",
    "CUdevResourceDesc",
    "CUlogsCallbackHandle",
    "CUasyncCallbackHandle",
};
enum { TYPES = sizeof handle_types / sizeof *handle_types };

struct parameter {
    enum kind kind;
    // For HANDLE and DEVICE_ADDRESS, and for the target of a POINTER; -1: no known type.
    int type;
};

struct call {
    const char *symbol, *text;
    driver_function function;
    unsigned count;
    struct parameter parameters[PARAMS];
};

static struct call calls[] = {
#define CALL(symbol, base, since, flags, result, parameters) \
    {#symbol, #parameters, (driver_function)symbol, 0, {{0}}},
#include "driver/calls.def"
};
enum { ALL_CALLS = sizeof calls / sizeof *calls };

enum {
    CONTEXT,
    FUNCTION_HANDLE = 2,
    LIBRARY = 4,
    STREAM,
    EVENT,
    POOL,
    ARRAY,
    LINK,
    ADDRESS,
    PHYSICAL,
    GRAPH,
    EXEC,
    NODE,
    OBJECT,
    CONDITION,
    MIPMAP,
    TEXTURE,
    SURFACE,
    TEXTURE_REF,
    SURFACE_REF,
    GREEN,
    RESOURCE,
    LOG_CALLBACK,
    NOTIFICATION,
    // Only in `made`: pairs with a size.
    RESERVED,
    MAPPED
};  // of handle_types

static char *area;
static uint64_t kept[TYPES][KEPT];
static unsigned nkept[TYPES];

// What must be released at the end of a program: all that does not end with a context. A call returns at most
// its parameters and one pair; BEGUN is more than what begin makes.
enum { BEGUN = 32 };
static struct made {
    int type;
    uint64_t handle, size;
} made[(PARAMS + 1) * CALLS + BEGUN];
static unsigned nmade;
static size_t free_at_first;  // bytes of device memory

static const uint8_t *input;
static size_t left;

static unsigned take(void)
{
    if (!left)
        return 0;
    left--;
    return *input++;
}

// --- what calls.def says ----------------------------------------------------------------------------------

static int find_type(const char *p, size_t n)
{
    for (int i = 0; i < TYPES; i++)
        if (strlen(handle_types[i]) == n && memcmp(handle_types[i], p, n) == 0)
            return i;
    return -1;
}

static bool starts(const char *p, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(p, with, strlen(with)) == 0;
}

// Not types that only begin like one: CUlogsCallbackHandle.
static bool is_function(const char *p, size_t n)
{
    static const char *const names[] = {"CUhostFn", "CUstreamCallback", "CUoccupancyB2DSize",
                                        "CUasyncCallback", "CUlogsCallback"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == n && memcmp(names[i], p, n) == 0)
            return true;
    }
    return memchr(p, '(', n);
}

static struct parameter classify(const char *p, size_t n)
{
    const char *star = memchr(p, '*', n);
    if (is_function(p, n))
        return (struct parameter){FUNCTION, -1};
    if (starts(p, n, "const char *") && n == strlen("const char *"))
        return (struct parameter){NAME, -1};
    if (star && star != p + n - 1)
        return (struct parameter){POINTERS, -1};
    if (star) {
        size_t base = (size_t)(star - p);
        while (base && p[base - 1] == ' ')
            base--;
        return (struct parameter){POINTER, find_type(p, base)};
    }
    int type = find_type(p, n);
    if (type < 0)
        return (struct parameter){NUMBER, -1};
    return (struct parameter){strcmp(handle_types[type], "CUdeviceptr") ? HANDLE : DEVICE_ADDRESS, type};
}

// Parses "(CUcontext *, unsigned int)" into parameters.
static void parse(struct call *c)
{
    const char *p = c->text + 1, *start = p;
    int depth = 0;
    for (;; p++) {
        if ((*p == ',' && !depth) || (*p == ')' && !depth)) {
            while (*start == ' ')
                start++;
            if (c->count < PARAMS && p > start && !(starts(start, 4, "void") && p - start == 4))
                c->parameters[c->count++] = classify(start, (size_t)(p - start));
            start = p + 1;
            if (*p == ')')
                return;
        }
        depth += (*p == '(') - (*p == ')');
    }
}

// --- arguments --------------------------------------------------------------------------------------------

static void nothing(void)
{
}

static uint64_t number(void)
{
    static const uint64_t some[] = {0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    8,
                                    16,
                                    32,
                                    64,
                                    100,
                                    1024,
                                    4096,
                                    65536,
                                    1 << 20,
                                    2 << 20,
                                    UINT32_MAX,
                                    (uint64_t)1 << 60,
                                    UINT64_MAX,
                                    UINT64_MAX - 4095};
    unsigned n = take();
    return n < 128 ? n % 24 : some[n % (sizeof some / sizeof *some)];
}

static uint64_t handle(int type)
{
    unsigned n = take();
    if (n < 8)
        return 0;
    if (n < 12)
        return n;  // including streams 1 and 2
    if (n < 16)
        return (uintptr_t)area + n;
    if (n < 32 || type < 0 || !nkept[type]) {
        // A handle of another type.
        int other = (int)(n % TYPES);
        return nkept[other] ? kept[other][n / 16 % nkept[other]] : UINT64_C(0x7f0012345670);
    }
    return kept[type][n % nkept[type]];
}

// In many calls host addresses are as valid as device addresses, so an address that no call returned lies
// where only the device may have memory, nowhere, or in our area.
static uint64_t device_address(int type)
{
    unsigned n = take(), more = take();
    if (n < 8)
        return 0;
    if (n < 16)
        return (uint64_t)more << 55;
    if (n < 40 || !nkept[type])
        return space.device_base + ((uint64_t)more << (n % 40));
    if (n < 56)
        return (uintptr_t)area + OUT + more;
    uint64_t p = kept[type][n % nkept[type]];
    return n % 4 ? p : p + more;
}

static uint64_t name(const char *symbol)
{
    static const char *const files[] = {"/dev/null", "/dev/full", "/nonexistent/log", ""};
    static const char *const names[] = {"store",  "empty",        "die", "gv",   "cv",    "mv",    "",
                                        "cuInit", "/nonexistent", text,  "look", "image", "canvas"};
    unsigned n = take();
    if (n >= 8 && !strcmp(symbol, "cuLogsDumpToFile"))
        return (uintptr_t)files[n % 4];
    return n < 8 ? 0 : (uintptr_t)names[n % (sizeof names / sizeof *names)];
}

// Returns where the parameter at `index` may read or write. Two kilobytes of zeros are its own.
static uint64_t pointer(unsigned index, bool text_too)
{
    unsigned n = take();
    if (n < 16)
        return 0;
    return (uintptr_t)area + (text_too && n < 96 ? 0 : OUT + index * 2048);
}

static bool begins(const char *symbol, const char *with)
{
    return strncmp(symbol, with, strlen(with)) == 0;
}

// Numbers that are lengths of arrays must be true, as far as we can tell.
static uint64_t bounded(const struct call *c, unsigned index, uint64_t n)
{
    static const struct {
        const char *symbol;
        unsigned index, most;
    } counts[] = {
        {"cuModuleLoadDataEx", 2, 100},
        {"cuModuleEnumerateFunctions", 1, 100},
        {"cuLibraryLoad", 4, 100},
        {"cuLibraryLoad", 7, 100},
        {"cuLibraryEnumerateKernels", 1, 100},
        {"cuLinkCreate", 0, 100},
        {"cuLinkAddData", 3, 2 << 20},
        {"cuLinkAddData", 5, 100},
        {"cuLinkAddFile", 3, 100},
        {"cuCtxCreate_v3", 2, 100},
        {"cuDeviceGetHostAtomicCapabilities", 2, 100},
        {"cuDeviceGetP2PAtomicCapabilities", 2, 100},
        {"cuMemSetAccess", 3, 50},
        {"cuMemPoolSetAccess", 2, 50},
        {"cuMemRangeGetAttribute", 1, 1000},
        {"cuMemRangeGetAttributes", 3, 50},
        {"cuPointerGetAttributes", 0, 100},
        {"cuMemPrefetchBatchAsync", 2, 50},
        {"cuMemPrefetchBatchAsync", 5, 50},
        {"cuMemDiscard", 2, 50},
        {"cuMemDiscardAndPrefetchBatchAsync", 5, 50},
    };
    // A grid that ends in time; a number that is far too large stays, and is refused.
    if (begins(c->symbol, "cuLaunch") && n < (uint64_t)1 << 32)
        return n % 12;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].index == index && begins(c->symbol, counts[i].symbol))
            return n % counts[i].most;
    return n;
}

static bool allowed(const char *symbol, const uint64_t *arguments)
{
    static const char *const waits[] = {"cuStreamWaitValue", "cuStreamBatchMemOp"};
    // These read addresses and sizes from memory, and host addresses among them cannot be checked; or they
    // write files.
    static const char *const follow[] = {
        "cuMemcpy2D",
        "cuMemcpy3D",
        "cuMemcpyBatch",
        "cuMemcpyAtoH",
        "cuMemcpyHtoA",
        "cuGraphAddMemcpy",
        "cuGraphMemcpyNode",
        "cuGraphExecMemcpy",
        "cuGraphAddHost",
        "cuGraphHostNodeSet",
        "cuGraphExecHostNode",
        "cuGraphDebugDotPrint",
        "cuOccupancyMaxActiveClusters",
    };
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (begins(symbol, waits[i]))
            return false;
    for (size_t i = 0; i < sizeof follow / sizeof *follow; i++)
        if (begins(symbol, follow[i]))
            return false;
    // It could never be unregistered.
    return strcmp(symbol, "cuLogsRegisterCallback") || arguments[2];
}

static void to_end(int type, uint64_t value, uint64_t size)
{
    if (nmade == sizeof made / sizeof *made)
        abort();
    made[nmade++] = (struct made){type, value, size};
}

static void remember(int type, uint64_t value)
{
    to_end(type, value, 0);
    kept[type][nkept[type] < KEPT ? nkept[type]++ : take() % KEPT] = value;
}

static uint64_t word_at(uint64_t address)
{
    uint64_t value;
    memcpy(&value, (const void *)(uintptr_t)address, sizeof value);
    return value;
}

// Keeps returned handles for later calls.
static void keep(const struct call *c, const uint64_t *arguments)
{
    for (unsigned i = 0; i < c->count; i++) {
        int type = c->parameters[i].type;
        if (c->parameters[i].kind != POINTER || type < 0 || arguments[i] < (uintptr_t)area + OUT)
            continue;
        if (word_at(arguments[i]))
            remember(type, word_at(arguments[i]));
    }
    // These end neither with the context nor with the handle.
    if (!strcmp(c->symbol, "cuMemAddressReserve"))
        to_end(RESERVED, word_at(arguments[0]), arguments[1]);
    if (!strcmp(c->symbol, "cuMemMap"))
        to_end(MAPPED, arguments[0], arguments[1]);
    if (strstr(c->symbol, "ExportToShareableHandle") &&
        arguments[2] == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        close(*(const int *)(uintptr_t)arguments[0]);
}

// These read from memory how much they write, or how they run.
static bool sizes_in_memory(const char *symbol)
{
    return begins(symbol, "cuLaunch") || begins(symbol, "cuGraphGet") || begins(symbol, "cuGraphNodeGet") ||
           begins(symbol, "cuLogs") || begins(symbol, "cuCoredump");
}

// Limits how many bytes the parameter before it has to those that exist.
static void give_size(const char *symbol, const uint64_t *arguments)
{
    if ((begins(symbol, "cuCoredump") || !strcmp(symbol, "cuLogsDumpToMemory")) && arguments[2]) {
        size_t size = number() % 2049;
        memcpy((void *)(uintptr_t)arguments[2], &size, sizeof size);
    }
}

static void make_call(const struct call *c)
{
    uint64_t a[PARAMS + 8] = {0};
    for (unsigned i = 0; i < c->count; i++) {
        const struct parameter *p = &c->parameters[i];
        a[i] = p->kind == POINTER          ? pointer(i, p->type < 0 && !sizes_in_memory(c->symbol))
               : p->kind == POINTERS       ? pointer(i, false)
               : p->kind == NAME           ? name(c->symbol)
               : p->kind == FUNCTION       ? take() % 2 * (uintptr_t)nothing
               : p->kind == DEVICE_ADDRESS ? device_address(p->type)
               : p->kind == HANDLE         ? handle(p->type)
                                           : bounded(c, i, number());
    }
    if (!allowed(c->symbol, a))
        return;
    memset(area + OUT, 0, PARAMS * 2048);
    give_size(c->symbol, a);
    // All parameters are words here: the ABI passes the first six in registers and the others in memory, and
    // additional ones do no harm.
    typedef CUresult any(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    any *f = (any *)c->function;
    CUresult r = f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
                   a[14], a[15]);
    if (!driver_result_name(r))
        abort();
    if (!r)
        keep(c, a);
}

// --- programs ---------------------------------------------------------------------------------------------

// Returns the blocks of a grid that ends in time, or too many for any device.
static unsigned blocks(void)
{
    uint64_t n = number();
    return n <= INT32_MAX ? (unsigned)n % 200 : UINT32_MAX;
}

// A launch with parameters that fit.
static void launch(void)
{
    static CUdeviceptr p;
    static uint32_t v;
    void *params[] = {&p, &v};
    p = take() & 1 ? device_address(ADDRESS) : handle(TEXTURE);
    CUfunction f = (CUfunction)(uintptr_t)handle(find_type("CUfunction", 10));
    cuLaunchKernel(f, blocks(), 1, 1, (unsigned)number(), 1, 1, (unsigned)number(), NULL, params, NULL);
}

// A node of any kind, with parameters that fit more often than not.
static void add_node(void)
{
    CUgraph g = (CUgraph)(uintptr_t)handle(GRAPH);
    CUgraphNode after[2] = {(CUgraphNode)(uintptr_t)handle(NODE), (CUgraphNode)(uintptr_t)handle(NODE)}, node;
    unsigned kind = take(), n = take() % 3;
    CUdeviceptr p = device_address(ADDRESS), q = device_address(ADDRESS);
    uint32_t v = 7;
    void *params[] = {&p, &v};
    CUgraphNodeParams all = {.type = (CUgraphNodeType)(kind % 16)};
    switch ((int)all.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        all.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){(CUfunction)(uintptr_t)handle(FUNCTION_HANDLE),
                                                  blocks(),
                                                  1,
                                                  1,
                                                  1 + kind / 16,
                                                  1,
                                                  1,
                                                  0,
                                                  params,
                                                  NULL,
                                                  NULL,
                                                  NULL};
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        all.memcpy.copyParams = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                                .srcDevice = q,
                                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                .dstDevice = p,
                                                .WidthInBytes = number(),
                                                .Height = 1 + kind / 64,
                                                .Depth = 1};
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        all.memset = (CUDA_MEMSET_NODE_PARAMS_v2){p, number(), 9, kind / 32, number(), 1 + kind / 128, NULL};
        break;
    case CU_GRAPH_NODE_TYPE_HOST: all.host.fn = (CUhostFn)nothing; break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        all.graph = (CUDA_CHILD_GRAPH_NODE_PARAMS){(CUgraph)(uintptr_t)handle(GRAPH),
                                                   (CUgraphChildGraphNodeOwnership)(kind / 128)};
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: all.eventWait.event = (CUevent)(uintptr_t)handle(EVENT); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        all.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        all.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        all.alloc.bytesize = number();
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: all.free.dptr = p; break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        // No loops, because they would not end.
        all.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handle(CONDITION),
                                                         .type = kind & 16 ? CU_GRAPH_COND_TYPE_IF
                                                                           : CU_GRAPH_COND_TYPE_SWITCH,
                                                         .size = kind / 64};
        break;
    default: break;
    }
    if (cuGraphAddNode_v2(&node, g, after, NULL, n, &all))
        return;
    remember(NODE, (uintptr_t)node);
    if (all.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        remember(ADDRESS, all.alloc.dptr);
    if (all.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        remember(GRAPH, (uintptr_t)all.conditional.phGraph_out[0]);
}

// Work in a stream, which is captured if the stream captures.
static void capture_something(void)
{
    CUstream s = (CUstream)(uintptr_t)handle(STREAM);
    unsigned kind = take();
    CUgraph g;
    CUdeviceptr p = device_address(ADDRESS);
    CUevent event = (CUevent)(uintptr_t)handle(EVENT);
    switch (kind % 8) {
    case 0: cuStreamBeginCapture_v2(s, (CUstreamCaptureMode)(kind / 64)); break;
    case 1: cuMemsetD8Async(p, 1, number(), s); break;
    case 2: cuEventRecordWithFlags(event, s, kind / 128); break;
    case 3: cuStreamWaitEvent(s, event, kind / 128); break;
    case 4: cuLaunchHostFunc(s, (CUhostFn)nothing, NULL); break;
    case 5:
        if (!cuMemAllocAsync(&p, number(), s))
            remember(ADDRESS, p);
        break;
    case 6: cuMemFreeAsync(p, s); break;
    default:
        if (!cuStreamEndCapture(s, &g))
            remember(GRAPH, (uintptr_t)g);
    }
}

// Launches a graph, or an existing executable.
static void launch_graph(void)
{
    CUstream s = (CUstream)(uintptr_t)handle(STREAM);
    CUgraphExec e = (CUgraphExec)(uintptr_t)handle(EXEC);
    CUgraph g = (CUgraph)(uintptr_t)handle(GRAPH);
    CUgraphConditionalHandle condition;
    CUgraphExecUpdateResultInfo info;
    unsigned kind = take();
    if (kind % 8 == 0 && !cuGraphConditionalHandleCreate(&condition, g, NULL, kind / 64, kind / 128))
        remember(CONDITION, condition);
    if (kind % 8 == 1)
        cuGraphExecUpdate_v2(e, g, &info);
    if (kind & 16 && !cuGraphInstantiateWithFlags(&e, g, kind / 64))
        remember(EXEC, (uintptr_t)e);
    cuGraphLaunch(e, s);
}

// Makes an array, a mipmapped array, and objects on them.
static void begin_images(CUmodule m)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {20, 10, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_TEXTURE_DESC look = {.flags = CU_TRSF_NORMALIZED_COORDINATES,
                              .filterMode = CU_TR_FILTER_MODE_LINEAR};
    CUDA_RESOURCE_DESC array = {.resType = CU_RESOURCE_TYPE_ARRAY},
                       levels = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUtexObject t[2];
    CUsurfObject s;
    CUtexref texture;
    CUsurfref surface;
    CUfunction f;
    if (cuModuleGetFunction(&f, m, "look") || cuArray3DCreate_v2(&array.res.array.hArray, &d) ||
        cuMipmappedArrayCreate(&levels.res.mipmap.hMipmappedArray, &d, 3) ||
        cuTexObjectCreate(&t[0], &array, &look, NULL) || cuTexObjectCreate(&t[1], &levels, &look, NULL) ||
        cuSurfObjectCreate(&s, &array) || cuModuleGetTexRef(&texture, m, "image") ||
        cuModuleGetSurfRef(&surface, m, "canvas"))
        abort();
    remember(FUNCTION_HANDLE, (uintptr_t)f);
    remember(ARRAY, (uintptr_t)array.res.array.hArray);
    remember(MIPMAP, (uintptr_t)levels.res.mipmap.hMipmappedArray);
    remember(TEXTURE, t[0]);
    remember(TEXTURE, t[1]);
    remember(SURFACE, s);
    remember(TEXTURE_REF, (uintptr_t)texture);
    remember(SURFACE_REF, (uintptr_t)surface);
}

// Makes a green context, and a stream in it.
static void begin_green(void)
{
    CUdevResource all;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUstream s;
    if (cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) ||
        cuDevResourceGenerateDesc(&desc, &all, 1) ||
        cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM) ||
        cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0))
        abort();
    remember(RESOURCE, (uintptr_t)desc);
    remember(GREEN, (uintptr_t)green);
    remember(STREAM, (uintptr_t)s);
}

static void begin(void)
{
    CUcontext ctx;
    CUmodule m;
    CUfunction f;
    CUlibrary l;
    CUkernel k;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;  // not that of the previous program
    cuThreadExchangeStreamCaptureMode(&mode);
    memset(nkept, 0, sizeof nkept);
    nmade = 0;
    memset(area, 0, OUT);
    memcpy(area, text, sizeof text);
    if (cuCtxCreate_v2(&ctx, 0, 0) || cuModuleLoadData(&m, text) || cuModuleGetFunction(&f, m, "store") ||
        cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0) || cuLibraryGetKernel(&k, l, "die"))
        abort();
    const uint64_t first[] = {(uintptr_t)ctx, (uintptr_t)m, (uintptr_t)f, (uintptr_t)k, (uintptr_t)l};
    for (int i = 0; i < 5; i++)
        remember(i, first[i]);
    CUgraph g;
    CUstream s;
    CUevent e;
    if (cuGraphCreate(&g, 0) || cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) || cuEventCreate(&e, 0))
        abort();
    remember(GRAPH, (uintptr_t)g);
    remember(STREAM, (uintptr_t)s);
    remember(EVENT, (uintptr_t)e);
    begin_images(m);
    begin_green();
}

// Ends what a handle of that type refers to, however many references there are.
static void end_one(const struct made *m)
{
    void *handle = (void *)(uintptr_t)m->handle;
    switch (m->type) {
    case CONTEXT: cuCtxDestroy_v2(handle); break;
    case LIBRARY: cuLibraryUnload(handle); break;
    case LINK: cuLinkDestroy(handle); break;
    case POOL: cuMemPoolDestroy(handle); break;
    case GREEN: cuGreenCtxDestroy(handle); break;
    case GRAPH: cuGraphDestroy(handle); break;
    case EXEC: cuGraphExecDestroy(handle); break;
    case LOG_CALLBACK: cuLogsUnregisterCallback(handle); break;
    case NOTIFICATION: cuDeviceUnregisterAsyncNotification(0, handle); break;
    case ADDRESS: cuMemFree_v2(m->handle); break;
    case MAPPED: cuMemUnmap(m->handle, m->size); break;
    case RESERVED: cuMemAddressFree(m->handle, m->size); break;
    case PHYSICAL:
        while (!cuMemRelease(m->handle))
            continue;
        break;
    case OBJECT:
        for (unsigned n = 1u << 30; n; n /= 2) {
            while (!cuUserObjectRelease(handle, n))
                continue;
        }
        break;
    default: break;
    }
}

static void end_all(const int *types, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        for (unsigned i = 0; i < nmade; i++) {
            if (made[i].type == types[k])
                end_one(&made[i]);
        }
    }
}

// Empties the pools that always exist.
static void empty_pools(void)
{
    CUmemoryPool pool;
    cuuint64_t none = 0;
    if (cuDeviceGetDefaultMemPool(&pool, 0) ||
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none) ||
        cuDeviceSetMemPool(0, pool) || cuMemPoolTrimTo(pool, 0) || cuDeviceGraphMemTrim(0))
        abort();
}

// Restores the settings that the process began with.
static void reset_settings(void)
{
    static const CUcoredumpSettings all[] = {CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_ENABLE_USER_TRIGGER,
                                             CU_COREDUMP_FILE, CU_COREDUMP_PIPE,
                                             CU_COREDUMP_GENERATION_FLAGS};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char none[sizeof(unsigned)] = "";
        size_t size = sizeof none;
        if (cuCoredumpSetAttributeGlobal(all[i], none, &size))
            abort();
    }
}

// Leaves nothing of one program for the next: no capture that forbids something, no memory, and no setting.
// The flags of the primary context are cleared when that is reset.
static void end(void)
{
    static const int before[] = {GREEN, LIBRARY, LINK, CONTEXT, LOG_CALLBACK, NOTIFICATION};
    // No stream that captures into a graph is left.
    static const int after[] = {EXEC, GRAPH, OBJECT, ADDRESS, MAPPED, PHYSICAL, RESERVED, POOL};
    CUcontext ctx;
    size_t left_free, total;
    while (cuCtxPopCurrent_v2(&ctx) == CUDA_SUCCESS)
        continue;
    end_all(before, sizeof before / sizeof *before);
    cuDevicePrimaryCtxReset_v2(0);
    while (cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS)
        continue;
    if (cuCtxCreate_v2(&ctx, 0, 0))
        abort();
    end_all(after, sizeof after / sizeof *after);
    reset_settings();
    empty_pools();
    if (cuMemGetInfo_v2(&left_free, &total))
        abort();
    if (!free_at_first)  // the first call, from LLVMFuzzerInitialize
        free_at_first = left_free;
    if (left_free < free_at_first)
        abort();
    cuCtxDestroy_v2(ctx);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    for (unsigned i = 0; i < ALL_CALLS; i++)
        parse(&calls[i]);
    area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || cuInit(0))
        return 1;
    // Every program must leave what a program without calls leaves.
    begin();
    end();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    input = bytes;
    left = len;
    begin();
    for (unsigned n = 0; n < CALLS && left; n++) {
        unsigned which = take() | take() << 8;
        if (which % 8 == 0)
            launch();
        else if (which % 8 == 1)
            add_node();
        else if (which % 8 == 2)
            capture_something();
        else if (which % 8 == 3)
            launch_graph();
        else
            make_call(&calls[which / 8 % ALL_CALLS]);
    }
    end();
    return 0;
}
