// SPDX-License-Identifier: MIT
// Heaps of contexts on the CPU device, which is linked in: failures of any driver call, modules that cannot
// be redirected, and what becomes of records. What programs see is tested by test/guard/kheap_pairs.sh.
#include "kwatch/kheap_host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "canary/canary.h"
#include "kwatch/kheap_report.h"
#include "kwatch/kheap_watch.h"
#include "mode/mode_testing.h"
#include "rewrite/rewrite_jit.h"
#include "kheap/kcanary.h"
#include "pass/pass.h"
#include "pass/pass_kheap.h"

enum { THREADS = 32, LOCK_STEP = 60000000 };

struct launch_ring launch_ring;

static const char *launched[2];  // up to NULL

unsigned launch_ring_since(uint64_t count, const char **names, unsigned most)
{
    unsigned n = 0;
    for (; n < 2 && launched[n]; n++)
        names[n] = launched[n];
    return n;
}

static const char text[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
    ".extern .func free (.param .b64 p);\n"
    ".visible .entry take(.param .u64 list, .param .u64 size)\n{\n"
    ".reg .u64 %p, %i, %q, %n;\n.reg .u32 %a;\n"
    "ld.param.u64 %p, [list];\nld.param.u64 %n, [size];\n"
    "mov.u32 %a, %tid.x;\nmul.wide.u32 %i, %a, 8;\nadd.u64 %p, %p, %i;\n"
    "{\n.param .b64 a;\n.param .b64 b;\nst.param.b64 [a], %n;\ncall.uni (b), malloc, (a);\n"
    "ld.param.b64 %q, [b];\n}\n"
    "st.u64 [%p], %q;\nret;\n}\n"
    ".visible .entry give(.param .u64 list)\n{\n"
    ".reg .u64 %p, %i, %q;\n.reg .u32 %a;\n"
    "ld.param.u64 %p, [list];\nmov.u32 %a, %tid.x;\nmul.wide.u32 %i, %a, 8;\nadd.u64 %p, %p, %i;\n"
    "ld.u64 %q, [%p];\n{\n.param .b64 a;\nst.param.b64 [a], %q;\ncall.uni free, (a);\n}\nret;\n}\n";

static struct pass_result *redirected;
static uint64_t *list;  // shared by host and device

WRAP(cuMemHostAlloc, (void **p, size_t n, unsigned f), (p, n, f))
WRAP(cuMemHostGetDevicePointer_v2, (CUdeviceptr * p, void *h, unsigned f), (p, h, f))
WRAP(cuMemsetD8Async, (CUdeviceptr p, unsigned char v, size_t n, CUstream q), (p, v, n, q))
WRAP(cuModuleLoadData, (CUmodule * m, const void *image), (m, image))
WRAP(cuModuleGetFunction, (CUfunction * f, CUmodule m, const char *name), (f, m, name))
WRAP(cuModuleGetGlobal_v2, (CUdeviceptr * p, size_t *n, CUmodule m, const char *name), (p, n, m, name))
WRAP(cuCtxGetLimit, (size_t * value, CUlimit limit), (value, limit))

static void ignore(struct diag_sink *sink, const struct diag *d)
{
}

extern const struct mode kheap_mode;

// The monitor sleeps for a minute, so that all scans are the test's own.
static int setup(void **state)
{
    struct diag_sink sink = {.emit = ignore};
    struct pass_request request = {.passes = "kheap"};
    use_cpu_device();
    TRIED(cuMemHostAlloc), TRIED(cuMemHostGetDevicePointer_v2), TRIED(cuMemsetD8Async),
        TRIED(cuModuleLoadData);
    TRIED(cuModuleGetFunction), TRIED(cuModuleGetGlobal_v2), TRIED(cuCtxGetLimit);
    REAL(cuMemFreeHost), REAL(cuModuleUnload), REAL(cuLaunchKernel), REAL(cuThreadExchangeStreamCaptureMode);
    guard.options.mode = 1 << OPTION_MODE_CANARY;
    guard.options.canary_interval = LOCK_STEP;
    guard.options.kheap = true;
    guard.options.kheap_arrays = KHEAP_ARRAYS;
    REAL(cuLinkCreate_v2), REAL(cuLinkAddData_v2), REAL(cuLinkComplete);
    assert_true(kheap_mode.start());
    canary_start();
    return !canary_on || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
           cuMemHostAlloc((void **)&list, THREADS * sizeof *list, 0) ||
           pass_rewrite("test", STR(text), &request, &sink, &redirected);
}

static int teardown(void **state)
{
    pass_result_free(redirected);
    return 0;
}

struct loaded {
    CUmodule module;
    CUfunction take, give;
};

static struct loaded load(void)
{
    struct loaded l;
    assert_int_equal(cuModuleLoadData(&l.module, redirected->text.ptr), 0);
    assert_int_equal(cuModuleGetFunction(&l.take, l.module, "take"), 0);
    assert_int_equal(cuModuleGetFunction(&l.give, l.module, "give"), 0);
    struct modules_row *row = modules_add(l.module, false, NULL, 0);
    assert_non_null(row);
    kheap_host_module(row);
    modules_release(row);
    return l;
}

static void unload(struct loaded *l)
{
    struct modules_row *row = modules_unloading(l->module);
    assert_non_null(row);
    kheap_mode.module_ends(l->module);
    assert_int_equal(cuModuleUnload(l->module), 0);
    modules_gone(row);
    modules_release(row);
}

static void launch(CUfunction f, uint64_t size)
{
    void *arguments[] = {&list, &size};
    kheap_host_launch();
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), 0);
    assert_int_equal(cuCtxSynchronize(), 0);
}

static struct kheap_host *heap(void)
{
    return kheap_host_of(context_current());
}

static unsigned in_heap(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_true(list[i]);
        n += heap() && list[i] - heap()->about.base < heap()->about.bytes;
    }
    return n;
}

static unsigned scan(void)
{
    static const struct canary_occasion occasion = {DRIVER_CALLS, "a test", "in a test", true, true};
    unsigned before = atomic_load(&findings);
    canary_monitor_lock();
    assert_int_equal(kheap_watch_context(context_current(), &occasion), 0);
    canary_monitor_unlock();
    return atomic_load(&findings) - before;
}

static void flip(CUdeviceptr p)
{
    uint8_t byte;
    assert_int_equal(cuMemcpyDtoH_v2(&byte, p, 1), 0);
    byte ^= 0xff;
    assert_int_equal(cuMemcpyHtoD_v2(p, &byte, 1), 0);
}

static void forget(void)
{
    kheap_mode.context_gone(context);
    canary_context_gone(context);
    context_forget(context);
    assert_null(heap());
}

// --- heaps -------------------------------------------------------------------------------------------------

static void made_at_the_first_launch(void **state)
{
    struct loaded l = load();
    assert_null(heap());
    launch(l.take, 40);
    assert_non_null(heap());
    assert_int_equal(in_heap(), THREADS);
    assert_int_equal(scan(), 0);
    launch(l.give, 0);
    assert_int_equal(scan(), 0);
    unload(&l);
    forget();
}

// The driver's heap exists from now on.
static void module_that_came_first(void **state)
{
    kheap_host_foreign(false, "a test");
    struct loaded l = load();
    launch(l.take, 40);
    assert_null(heap());
    launch(l.give, 0);
    unload(&l);
    forget();
}

// Every driver call fails once. The program gets memory in any case, and frees it.
static void without_memory(void **state)
{
    for (int n = 0; n < 24; n++) {
        size_t before = available();
        struct loaded l = load();
        atomic_store(&calls_left, n);
        kheap_host_prepare();
        atomic_store(&calls_left, -1);
        launch(l.take, 100);
        assert_true(in_heap() == (heap() ? THREADS : 0) || heap());
        launch(l.give, 0);
        assert_int_equal(scan(), 0);
        struct kheap_host *h = heap();
        if (h)
            assert_int_equal(cuMemFree_v2(h->about.base), 0);
        unload(&l);
        forget();
        assert_true(available() + (1 << 20) >= before);
    }
}

// Both heaps are in use, and free knows which is which.
static void module_that_is_not_ours(void **state)
{
    struct loaded l = load();
    launch(l.take, 40);
    assert_int_equal(in_heap(), THREADS);
    uint64_t ours[THREADS];
    memcpy(ours, list, sizeof ours);
    kheap_host_foreign(false, "a test");
    launch(l.take, 40);
    assert_int_equal(in_heap(), 0);
    launch(l.give, 0);
    memcpy(list, ours, sizeof ours);
    launch(l.give, 0);
    assert_int_equal(scan(), 0);
    unload(&l);
    forget();
}

// Nobody asks the driver for a module that it may be unloading; if the module stays, the next launch sets its
// variable.
static void unload_that_is_refused(void **state)
{
    struct loaded l = load();
    kheap_mode.module_ends(l.module);
    launch(l.take, 40);
    assert_int_equal(in_heap(), 0);
    launch(l.give, 0);
    kheap_mode.module_stays(l.module);
    launch(l.take, 40);
    assert_int_equal(in_heap(), THREADS);
    launch(l.give, 0);
    unload(&l);
    forget();
}

static void another_limit(void **state)
{
    struct loaded l = load();
    kheap_host_prepare();
    uint64_t bytes = heap()->about.bytes;
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 100 << 20), 0);
    kheap_host_limit_set();
    assert_true(heap()->about.bytes > bytes + (80 << 20));
    launch(l.take, 2 << 20);
    assert_int_equal(in_heap(), THREADS);
    bytes = heap()->about.bytes;
    // It is in use, so it stays.
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20), 0);
    kheap_host_limit_set();
    assert_int_equal(heap()->about.bytes, bytes);
    launch(l.give, 0);
    assert_int_equal(scan(), 0);
    unload(&l);
    forget();
}

// --- threads -----------------------------------------------------------------------------------------------

static _Atomic(unsigned) done;

// Modules are loaded, allocate and are unloaded by several threads, while scans run.
static void *come_and_go(void *unused)
{
    uint64_t *mine = NULL, size = 60;
    assert_int_equal(cuCtxSetCurrent(context), 0);
    assert_int_equal(cuMemHostAlloc((void **)&mine, THREADS * sizeof *mine, 0), 0);
    for (unsigned i = 0; i < unit_cases(20); i++) {
        struct loaded l = load();
        void *arguments[] = {&mine, &size};
        kheap_host_launch();
        assert_int_equal(cuLaunchKernel(l.take, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), 0);
        assert_int_equal(cuLaunchKernel(l.give, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), 0);
        assert_int_equal(cuCtxSynchronize(), 0);
        for (unsigned k = 0; k < THREADS; k++)
            assert_true(mine[k] - heap()->about.base < heap()->about.bytes);
        unload(&l);
    }
    assert_int_equal(cuMemFreeHost(mine), 0);
    atomic_fetch_add(&done, 1);
    return NULL;
}

// Scans as the monitor does, which waits for nothing, and as a program that waits for its kernels.
static void scan_meanwhile(void)
{
    static const struct canary_occasion occasions[] = {
        {DRIVER_CALLS, NULL, "in a test", true, false},
        {DRIVER_cuCtxSynchronize, NULL, "in a test", true, false}};
    for (unsigned i = 0; i < 2; i++) {
        canary_monitor_lock();
        CUresult r = kheap_watch_context(context_current(), &occasions[i]);
        canary_monitor_unlock();
        assert_true(!r || r == CUDA_ERROR_NOT_READY);
    }
}

static void several_threads(void **state)
{
    pthread_t threads[4];
    unsigned before = atomic_load(&findings);
    atomic_store(&done, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    while (atomic_load(&done) < 4)
        scan_meanwhile();
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(scan(), 0);
    assert_int_equal(atomic_load(&findings), before);
    forget();
}

// --- records -----------------------------------------------------------------------------------------------

static void overflows_are_reported_once(void **state)
{
    struct loaded l = load();
    launch(l.take, 77);
    flip(list[3] + 77);
    assert_int_equal(scan(), 1);
    assert_int_equal(scan(), 0);
    flip(list[4] - 1);
    assert_int_equal(scan(), 1);
    unload(&l);
    forget();
}

static void assert_blames(const struct loaded *l, const char *whom)
{
    launch(l->take, 77);
    flip(list[3] + 77);
    assert_int_equal(scan(), 1);
    assert_string_equal(blamed, whom);
}

// A kernel is named if no other can have done it.
static void one_kernel_is_blamed(void **state)
{
    struct loaded l = load();
    assert_blames(&l, "");
    launched[0] = "take";
    assert_blames(&l, "take");
    launched[1] = "give";
    assert_blames(&l, "");
    launched[1] = launch_ring_unknown;
    assert_blames(&l, "");
    launched[0] = launch_ring_unknown;
    launched[1] = NULL;
    assert_blames(&l, "");
    launched[0] = NULL;
    unload(&l);
    forget();
}

static void frees_are_reported(void **state)
{
    struct loaded l = load();
    launch(l.take, 77);
    list[1] = list[0];
    launch(l.give, 0);
    assert_int_equal(scan(), 1);
    memset(list, 0, THREADS * sizeof *list);
    launch(l.give, 0);
    assert_int_equal(scan(), 0);
    list[7] = 12345678;
    launch(l.give, 0);
    assert_int_equal(scan(), 1);
    unload(&l);
    forget();
}

// Each wait of the program reads the ring, whether or not it scans, since the ring is small.
static void waits_read_the_ring(void **state)
{
    struct loaded l = load();
    unsigned before = atomic_load(&findings);
    for (unsigned i = 1; i <= 5; i++) {
        launch(l.take, 77);
        list[1] = list[0];
        launch(l.give, 0);
        canary_monitor_synced(DRIVER_cuCtxSynchronize, 0);
        assert_int_equal(atomic_load(&findings) - before, i);
    }
    unload(&l);
    forget();
}

// The size of a buffer, live or freed, is recovered from its canary.
static void lost_sizes_come_back(void **state)
{
    struct kheap k = {.key = {1, 2, 3, 4}};
    uint64_t keys = (uintptr_t)&k, address = 0x7000000010;
    for (uint64_t size = 1; size <= 1000; size += 111) {
        struct kcanary made = kcanary_make(keys, address, size, kcanary_cover(keys, address));
        struct kheap_record r = {.address = address,
                                 .capacity = 64,
                                 .flags = KHEAP_HEAD | KHEAP_SIZE_LOST,
                                 .size = 99999,
                                 .found_head = made.head ^ (size % 2 ? kcanary_free(keys) : 0)};
        assert_true(kheap_report_recover(&k, &r));
        assert_int_equal(r.size, size);
        assert_int_equal(r.made_size, made.size);
        assert_int_equal(r.flags, KHEAP_HEAD | (size % 2 ? KHEAP_FREED : 0));
        r.found_head++;
        assert_false(kheap_report_recover(&k, &r));
        r.found_head--;
        r.capacity = (uint32_t)size / 16;
        assert_false(kheap_report_recover(&k, &r));
    }
}

// The program's own limit holds if it is lower, also if it follows from the size of blocks.
static void registers_are_limited(void **state)
{
    static const struct {
        CUjit_option option;
        uintptr_t value, expected;
        unsigned count;
    } rows[] = {{CU_JIT_OPTIMIZATION_LEVEL, 4, 4, 2},
                {CU_JIT_MAX_REGISTERS, 32, 32, 1},
                {CU_JIT_MAX_REGISTERS, 200, 64, 1},
                {CU_JIT_THREADS_PER_BLOCK, 128, 128, 1}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUjit_option options[2] = {rows[i].option};
        void *values[2] = {(void *)rows[i].value};
        unsigned count = 1;
        assert_true(rewrite_jit_limit(options, values, &count, 2, PASS_KHEAP_REGISTERS));
        assert_int_equal(count, rows[i].count);
        assert_int_equal((uintptr_t)values[0], rows[i].expected);
        if (count == 2)
            assert_true(options[1] == CU_JIT_MAX_REGISTERS && (uintptr_t)values[1] == PASS_KHEAP_REGISTERS);
    }
    CUjit_option full = CU_JIT_FTZ;
    void *value = NULL;
    unsigned count = 1;
    assert_false(rewrite_jit_limit(&full, &value, &count, 1, PASS_KHEAP_REGISTERS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_at_the_first_launch),
        cmocka_unit_test(module_that_came_first),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(module_that_is_not_ours),
        cmocka_unit_test(several_threads),
        cmocka_unit_test(another_limit),
        cmocka_unit_test(overflows_are_reported_once),
        cmocka_unit_test(one_kernel_is_blamed),
        cmocka_unit_test(frees_are_reported),
        cmocka_unit_test(waits_read_the_ring),
        cmocka_unit_test(unload_that_is_refused),
        cmocka_unit_test(lost_sizes_come_back),
        cmocka_unit_test(registers_are_limited),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
