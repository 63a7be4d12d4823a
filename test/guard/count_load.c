// SPDX-License-Identifier: MIT
// Ways in which kernels reach a device: `count_load WAY` loads `counted` that way and launches it, so that
// --mode=count must report LAUNCHES launches; `count_load list`. What a launch does is known: see `counted`
// and count_mode.sh. Status 0: all went as without moat; 2: it did not.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"
#include "ptx/edit.h"

// Each thread loads and stores 4 bytes of global memory; the first 8 of a block store 4 to shared memory.
#define KERNEL(version, target)                                                               \
    ".version " version "\n.target " target "\n.address_size 64\n"                            \
    ".visible .global .u32 touched;\n"                                                        \
    ".visible .entry counted(.param .u64 memory)\n{\n"                                        \
    ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n.shared .align 4 .u32 seen;\n"        \
    "ld.param.u64 %rd1, [memory];\nmov.u32 %r1, %tid.x;\nsetp.lt.u32 %p, %r1, 8;\n"           \
    "@%p st.shared.u32 [seen], %r1;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\n" \
    "ld.global.u32 %r3, [%rd3];\nadd.u32 %r3, %r3, 1;\nst.global.u32 [%rd3], %r3;\nret;\n}\n"
static const char text[] = KERNEL("7.0", "sm_75");
static const char newer[] = KERNEL("8.8", "sm_121");
static const char calling[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".extern .func helper(.param .b64 a);\n"
                              ".visible .entry caller(.param .u64 memory)\n{\n.reg .b64 %rd<2>;\n"
                              "ld.param.u64 %rd1, [memory];\n{ .param .b64 a;\nst.param.b64 [a], %rd1;\n"
                              "call helper, (a); }\nret;\n}\n";
static const char called[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                             ".visible .func helper(.param .b64 a)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                             "ld.param.u64 %rd1, [a];\nld.global.u32 %r1, [%rd1];\nret;\n}\n";
// A module with names of moat's own is not rewritten.
static const char twin[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .global .u32 " EDIT_PREFIX "twin;\n"
                           ".visible .entry counted(.param .u64 memory)\n{\nret;\n}\n";
static const char fatal[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry counted(.param .u64 memory)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
    "mov.u64 %rd1, 8;\nld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
static const char endless[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry counted(.param .u64 memory)\n{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
    ".reg .pred %p;\nld.param.u64 %rd1, [memory];\n"
    "again:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p, %r1, 0;\n@%p bra again;\n"
    "ret;\n}\n";

enum { BLOCKS = 3, THREADS = 64 };

static struct driver d;
static CUcontext context;
static CUdeviceptr memory;
static unsigned launches;

#define NEED(call) need((call), CUDA_SUCCESS, #call, __LINE__)
#define EXPECT(call, result) need((call), (result), #call, __LINE__)

static void need(CUresult r, CUresult expected, const char *call, int line)
{
    if (r == expected)
        return;
    printf("count_load.c:%d: %s gives %d, not %d\n", line, call, r, expected);
    fflush(stdout);
    _exit(2);
}

static void must(int holds, const char *what, int line)
{
    if (holds)
        return;
    printf("count_load.c:%d: does not hold: %s\n", line, what);
    fflush(stdout);
    _exit(2);
}
#define MUST(what) must((what), #what, __LINE__)

static void launch_only(CUfunction f)
{
    void *arguments[] = {&memory};
    NEED(d.cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL));
    __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
}

static void launch(CUfunction f)
{
    launch_only(f);
    NEED(d.cuCtxSynchronize());
}

static void use_module(CUmodule m)
{
    CUfunction f;
    CUdeviceptr p;
    size_t n;
    NEED(d.cuModuleGetFunction(&f, m, "counted"));
    NEED(d.cuModuleGetGlobal_v2(&p, &n, m, "touched"));
    MUST(n == 4);
    launch(f);
}

static void use_library(CUlibrary l)
{
    CUkernel k;
    CUfunction f;
    NEED(d.cuLibraryGetKernel(&k, l, "counted"));
    launch((CUfunction)k);
    NEED(d.cuKernelGetFunction(&f, k));
    launch(f);
}

// --- images -----------------------------------------------------------------------------------------------

static char folder[] = "/tmp/count_load.XXXXXX";
static char path[64];

static const char *file_of(const void *bytes, size_t n)
{
    MUST(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/image", folder);
    FILE *f = fopen(path, "wb");
    MUST(f && fwrite(bytes, 1, n, f) == n && !fclose(f));
    return path;
}

// A fatbin of two texts, of which the second fits better, laid out as the toolkit does.
static _Alignas(8) char fatbin[8192];

static size_t add_entry(char *to, unsigned arch, const char *ptx)
{
    size_t n = strlen(ptx) + 1, padded = (n + 7) / 8 * 8;
    memset(to, 0, 64 + padded);
    *(uint16_t *)to = 1;
    *(uint16_t *)(to + 2) = 0x101;
    *(uint32_t *)(to + 4) = 64;
    *(uint64_t *)(to + 8) = padded;
    *(uint16_t *)(to + 24) = 0;
    *(uint16_t *)(to + 26) = 7;
    *(uint32_t *)(to + 28) = arch;
    *(uint64_t *)(to + 40) = 0x11;
    memcpy(to + 64, ptx, n);
    return 64 + padded;
}

static void make_fatbin(void)
{
    static const char other[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry other() { ret; }\n";
    size_t n = 16;
    n += add_entry(fatbin + n, 70, other);
    n += add_entry(fatbin + n, 75, text);
    *(uint32_t *)fatbin = 0xba55ed50;
    *(uint16_t *)(fatbin + 4) = 1;
    *(uint16_t *)(fatbin + 6) = 16;
    *(uint64_t *)(fatbin + 8) = n - 16;
}

static const struct {
    uint32_t magic, version;
    const void *data, *list;
} wrapper = {0x466243b1, 1, fatbin, NULL};

// --- ways -------------------------------------------------------------------------------------------------

static void data(void)
{
    CUmodule m;
    NEED(d.cuModuleLoadData(&m, text));
    use_module(m);
}

// Options that change code, and options that return results: the results must arrive.
static void options(void)
{
    static char info[500] = "old", error[500] = "old";
    float ms = -1;
    CUjit_option names[] = {CU_JIT_MAX_REGISTERS,    CU_JIT_WALL_TIME,
                            CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {(void *)32, NULL, info, (void *)sizeof info, error, (void *)sizeof error};
    CUmodule m;
    NEED(d.cuModuleLoadDataEx(&m, text, 6, names, values));
    memcpy(&ms, &values[1], sizeof ms);
    MUST(ms >= 0 && (uintptr_t)values[5] < sizeof error);
    use_module(m);
}

// The error must be the driver's own, as for the program's text.
static void wrong_text(void)
{
    static const char wrong[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry bad() { fly; }\n";
    static char error[500];
    CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *)sizeof error};
    CUmodule m;
    EXPECT(d.cuModuleLoadData(&m, wrong), CUDA_ERROR_INVALID_PTX);
    EXPECT(d.cuModuleLoadDataEx(&m, wrong, 2, names, values), CUDA_ERROR_INVALID_PTX);
    MUST(strstr(error, "fly") != NULL && (uintptr_t)values[1] > 0);
    EXPECT(d.cuModuleLoad(&m, "/no/such/file"), CUDA_ERROR_FILE_NOT_FOUND);
    data();
}

static void fat(void)
{
    CUmodule m;
    make_fatbin();
    NEED(d.cuModuleLoadFatBinary(&m, fatbin));
    use_module(m);
    NEED(d.cuModuleLoadData(&m, fatbin));
    use_module(m);
}

static void wrapped(void)
{
    CUlibrary l;
    make_fatbin();
    NEED(d.cuLibraryLoadData(&l, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
    use_library(l);
}

static void module_file(void)
{
    CUmodule m;
    NEED(d.cuModuleLoad(&m, file_of(text, strlen(text))));
    use_module(m);
}

static void library_data(void)
{
    CUlibraryOption names[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
    void *values[] = {(void *)1};
    CUlibrary l;
    NEED(d.cuLibraryLoadData(&l, text, NULL, NULL, 0, names, values, 1));
    use_library(l);
    NEED(d.cuLibraryUnload(l));
}

static void library_file(void)
{
    CUlibrary l;
    NEED(d.cuLibraryLoadFromFile(&l, file_of(text, strlen(text)), NULL, NULL, 0, NULL, NULL, 0));
    use_library(l);
}

// Without a context the driver gets PTX and compiles it itself.
static void library_early(void)
{
    CUlibrary l;
    NEED(d.cuCtxSetCurrent(NULL));
    NEED(d.cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuCtxSetCurrent(context));
    use_library(l);
}

// A library enters contexts by launches. Its kernels are found without a context, or in one of them.
static void in_contexts(CUlibrary l, CUkernel k, unsigned contexts, bool destroyed)
{
    CUdeviceptr before = memory;
    for (unsigned i = 0; i < contexts; i++) {
        CUcontext c;
        NEED(d.cuCtxCreate_v2(&c, 0, 0));
        NEED(d.cuMemAlloc_v2(&memory, THREADS * 4));
        for (int n = 0; n < 5; n++)
            launch((CUfunction)k);
        if (destroyed)
            NEED(d.cuCtxDestroy_v2(c));
    }
    memory = before;
    if (destroyed)
        NEED(d.cuLibraryUnload(l));
}

static CUkernel find_kernel(CUlibrary *l, CUcontext current)
{
    CUkernel k;
    NEED(d.cuCtxSetCurrent(current));
    NEED(d.cuLibraryLoadData(l, text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetKernel(&k, *l, "counted"));
    return k;
}

static void found_without_context(unsigned contexts, bool gone)
{
    CUlibrary l;
    CUkernel k = find_kernel(&l, NULL);
    in_contexts(l, k, contexts, gone);
}

static void late(void)
{
    found_without_context(1, false);
}

static void late_and_gone(void)
{
    found_without_context(2, true);
}

static void two(void)
{
    CUlibrary l;
    CUkernel k = find_kernel(&l, context);
    launch((CUfunction)k);
    in_contexts(l, k, 1, false);
}

static void eighty(void)
{
    found_without_context(80, false);
}

static void library_module(void)
{
    CUlibrary l;
    CUmodule m;
    NEED(d.cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryGetModule(&m, l));
    use_module(m);
}

// Only one of the two modules with that name is rewritten, and LAUNCHES counts that one; the other is
// launched three times.
static void twins(void)
{
    CUmodule m;
    CUfunction f;
    data();
    NEED(d.cuModuleLoadData(&m, twin));
    NEED(d.cuModuleGetFunction(&f, m, "counted"));
    for (int i = 0; i < 3; i++)
        launch(f);
    launches -= 3;
    data();
}

static void link_texts(CUmodule *m, const char *a, const char *b, const char *file)
{
    CUlinkState l;
    void *image;
    size_t n;
    NEED(d.cuLinkCreate_v2(0, NULL, NULL, &l));
    NEED(d.cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, (void *)a, strlen(a) + 1, "a", 0, NULL, NULL));
    if (b)
        NEED(d.cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, (void *)b, strlen(b) + 1, "b", 0, NULL, NULL));
    if (file)
        NEED(d.cuLinkAddFile_v2(l, CU_JIT_INPUT_PTX, file, 0, NULL, NULL));
    NEED(d.cuLinkComplete(l, &image, &n));
    MUST(n > 0);
    NEED(d.cuModuleLoadData(m, image));
    NEED(d.cuLinkDestroy(l));
}

static void linked(void)
{
    CUmodule m;
    link_texts(&m, text, NULL, NULL);
    use_module(m);
}

// Accesses of functions are counted for them, not for the kernel that calls.
static void linked_two(void)
{
    CUmodule m;
    CUfunction f;
    link_texts(&m, calling, called, file_of(text, strlen(text)));
    use_module(m);
    NEED(d.cuModuleGetFunction(&f, m, "caller"));
    launch(f);
    launches--;
}

static void link_wrong(void)
{
    CUlinkState l;
    void *image;
    size_t n;
    NEED(d.cuLinkCreate_v2(0, NULL, NULL, &l));
    NEED(d.cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, (void *)calling, sizeof calling, "a", 0, NULL, NULL));
    CUresult r = d.cuLinkComplete(l, &image, &n);
    MUST(r == CUDA_ERROR_INVALID_SOURCE || r == CUDA_ERROR_INVALID_PTX || r == CUDA_ERROR_INVALID_IMAGE ||
         r == CUDA_ERROR_UNKNOWN);
    NEED(d.cuLinkDestroy(l));
    data();
}

static void lowered(void)
{
    CUmodule m;
    NEED(d.cuModuleLoadData(&m, newer));
    use_module(m);
}

static void again(void)
{
    for (int i = 0; i < 5; i++) {
        CUmodule m;
        NEED(d.cuModuleLoadData(&m, text));
        use_module(m);
        NEED(d.cuModuleUnload(m));
    }
}

static void enumerated(void)
{
    CUmodule m;
    CUfunction f;
    CUlibrary l;
    CUkernel k;
    NEED(d.cuModuleLoadData(&m, text));
    NEED(d.cuModuleEnumerateFunctions(&f, 1, m));
    launch(f);
    NEED(d.cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    NEED(d.cuLibraryEnumerateKernels(&k, 1, l));
    launch((CUfunction)k);
}

static void own_context(void)
{
    CUcontext c;
    CUmodule m;
    CUdeviceptr before = memory;
    NEED(d.cuCtxCreate_v2(&c, 0, 0));
    NEED(d.cuMemAlloc_v2(&memory, THREADS * 4));
    NEED(d.cuModuleLoadData(&m, text));
    use_module(m);
    NEED(d.cuCtxDestroy_v2(c));
    memory = before;
    data();
}

static void reset(void)
{
    data();
    NEED(d.cuDevicePrimaryCtxReset_v2(0));
}

static void released(void)
{
    data();
    NEED(d.cuCtxSetCurrent(NULL));
    NEED(d.cuDevicePrimaryCtxRelease_v2(0));
}

// The process exits while work is queued.
static void unfinished(void)
{
    CUmodule m;
    CUfunction f;
    CUstream q;
    NEED(d.cuModuleLoadData(&m, text));
    NEED(d.cuModuleGetFunction(&f, m, "counted"));
    NEED(d.cuStreamCreate(&q, CU_STREAM_NON_BLOCKING));
    void *arguments[] = {&memory};
    for (int i = 0; i < 20; i++) {
        NEED(d.cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, q, arguments, NULL));
        launches++;
    }
}

static void *work(void *unused)
{
    NEED(d.cuCtxSetCurrent(context));
    for (int i = 0; i < 20; i++) {
        CUmodule m;
        CUfunction f;
        NEED(d.cuModuleLoadData(&m, text));
        NEED(d.cuModuleGetFunction(&f, m, "counted"));
        launch(f);
        NEED(d.cuModuleUnload(m));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        MUST(!pthread_create(&t[i], NULL, work, NULL));
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

// A child reports nothing of its parent's, and the parent's counts stay its own.
static void forked(void)
{
    int status = 0;
    data();
    pid_t child = fork();
    if (!child)
        exit(0);
    MUST(waitpid(child, &status, 0) == child && status == 0);
    data();
}

// --- graphs -----------------------------------------------------------------------------------------------

enum { RUNS = 4 };

static CUfunction load_counted(void)
{
    CUmodule m;
    CUfunction f;
    NEED(d.cuModuleLoadData(&m, text));
    NEED(d.cuModuleGetFunction(&f, m, "counted"));
    return f;
}

static void run_graph(CUgraphExec g, unsigned kernels)
{
    NEED(d.cuGraphLaunch(g, NULL));
    NEED(d.cuCtxSynchronize());
    launches += kernels;
}

static CUgraph capture(CUfunction f, unsigned kernels)
{
    void *arguments[] = {&memory};
    CUstream q;
    CUgraph g;
    NEED(d.cuStreamCreate(&q, CU_STREAM_NON_BLOCKING));
    NEED(d.cuStreamBeginCapture_v2(q, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (unsigned i = 0; i < kernels; i++)
        NEED(d.cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, q, arguments, NULL));
    NEED(d.cuStreamEndCapture(q, &g));
    return g;
}

// Launches are counted at each run of the graph, not when it is captured.
static void captured(void)
{
    CUgraphExec e;
    CUfunction f = load_counted();
    NEED(d.cuGraphInstantiateWithFlags(&e, capture(f, 2), 0));
    launch(f);
    for (int i = 0; i < RUNS; i++)
        run_graph(e, 2);
}

static void captured_in_vain(void)
{
    CUfunction f = load_counted();
    capture(f, 3);
    launch(f);
}

// Nodes, one of them in a child graph, and one that is disabled after the first run.
static void nodes(void)
{
    void *arguments[] = {&memory};
    CUDA_KERNEL_NODE_PARAMS_v2 p = {.func = load_counted(),
                                    .gridDimX = BLOCKS,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = THREADS,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = arguments};
    CUgraph g;
    CUgraphNode first, second, child;
    CUgraphExec e;
    NEED(d.cuGraphCreate(&g, 0));
    NEED(d.cuGraphAddKernelNode_v2(&first, g, NULL, 0, &p));
    NEED(d.cuGraphAddKernelNode_v2(&second, g, &first, 1, &p));
    NEED(d.cuGraphAddChildGraphNode(&child, g, &second, 1, capture(p.func, 1)));
    NEED(d.cuGraphInstantiateWithFlags(&e, g, 0));
    run_graph(e, 3);
    NEED(d.cuGraphNodeSetEnabled(e, second, 0));
    for (int i = 1; i < RUNS; i++)
        run_graph(e, 2);
}

// A launch that the driver refuses is not counted.
static void refused(void)
{
    void *arguments[] = {&memory};
    CUfunction f = load_counted();
    EXPECT(d.cuLaunchKernel(f, BLOCKS, 1, 1, 1 << 20, 1, 1, 0, NULL, arguments, NULL),
           CUDA_ERROR_INVALID_VALUE);
    launch(f);
}

// Abnormal ends: the process must end nonetheless, and soon.

static void fault(void)
{
    CUmodule m;
    CUfunction f;
    NEED(d.cuModuleLoadData(&m, fatal));
    NEED(d.cuModuleGetFunction(&f, m, "counted"));
    launch_only(f);
    MUST(d.cuCtxSynchronize() != CUDA_SUCCESS);
}

static void hang(void)
{
    CUmodule m;
    CUfunction f;
    NEED(d.cuMemsetD8_v2(memory, 0, THREADS * 4));
    NEED(d.cuModuleLoadData(&m, endless));
    NEED(d.cuModuleGetFunction(&f, m, "counted"));
    launch_only(f);
}

static const struct way {
    const char *name;
    void (*go)(void);
} ways[] = {
    {"data", data},
    {"options", options},
    {"wrong_text", wrong_text},
    {"fat", fat},
    {"wrapped", wrapped},
    {"module_file", module_file},
    {"library_data", library_data},
    {"library_file", library_file},
    {"library_early", library_early},
    {"late", late},
    {"late_and_gone", late_and_gone},
    {"two", two},
    {"eighty", eighty},
    {"library_module", library_module},
    {"twins", twins},
    {"linked", linked},
    {"linked_two", linked_two},
    {"link_wrong", link_wrong},
    {"lowered", lowered},
    {"again", again},
    {"enumerated", enumerated},
    {"own_context", own_context},
    {"reset", reset},
    {"released", released},
    {"unfinished", unfinished},
    {"threads", threads},
    {"forked", forked},
    {"captured", captured},
    {"captured_in_vain", captured_in_vain},
    {"nodes", nodes},
    {"refused", refused},
    {"fault", fault},
    {"hang", hang},
};
enum { WAYS = sizeof ways / sizeof *ways };

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "list";
    bool list = strcmp(name, "list") == 0;
    for (int i = 0; i < WAYS; i++) {
        if (list)
            puts(ways[i].name);
        if (strcmp(name, ways[i].name) != 0)
            continue;
        if (driver_open(&d, NULL, NULL, 0))
            return 2;
        NEED(d.cuInit(0));
        NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
        NEED(d.cuCtxSetCurrent(context));
        NEED(d.cuMemAlloc_v2(&memory, THREADS * 4));
        ways[i].go();
        if (path[0]) {
            unlink(path);
            rmdir(folder);
        }
        printf("LAUNCHES %u\n", launches);
        return 0;
    }
    return list ? 0 : 2;
}
