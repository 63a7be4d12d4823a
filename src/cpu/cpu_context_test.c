// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/whole_testing.h"

static CUcontext current(void)
{
    CUcontext ctx;
    OK(cuCtxGetCurrent(&ctx));
    return ctx;
}

static void test_none(void **state)
{
    CUcontext ctx;
    CUdeviceptr p;
    unsigned u;
    IS(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&ctx));
    IS(CUDA_ERROR_NOT_INITIALIZED, cuCtxCreate_v2(&ctx, 0, 0));
    IS(CUDA_ERROR_NOT_INITIALIZED, cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuInit(0));
    assert_null(current());
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(NULL));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&p, 4));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&ctx));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&(CUdevice){0}));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetFlags(&u));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxPushCurrent_v2(NULL));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxDestroy_v2(NULL));
    OK(cuCtxSetCurrent(NULL));
}

static void test_wild_handles(void **state)
{
    char junk[64] = {0};
    CUcontext wild[] = {(CUcontext)1, (CUcontext)16, (CUcontext)junk, (CUcontext)(junk + 3), (CUcontext)-1};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(wild[i]));
        IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(wild[i]));
        IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(wild[i]));
        IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(wild[i]));
        IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetId(wild[i], &(unsigned long long){0}));
    }
}

static void test_create(void **state)
{
    CUcontext a, b;
    unsigned long long first, second;
    unsigned u;
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(&a, 0x1000, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(&a, 3, 0));
    IS(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v2(&a, 0, 7));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(NULL, 0, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v3(&a, NULL, 1, 0, 0));
    CUexecAffinityParam affinity = {0};
    IS(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v3(&a, &affinity, 1, 0, 0));
    OK(cuCtxCreate_v4(&a, NULL, CU_CTX_SCHED_SPIN, 0));
    OK(cuCtxCreate_v2(&b, 0, 0));
    assert_ptr_equal(current(), b);
    OK(cuCtxGetId(a, &first));
    OK(cuCtxGetId(NULL, &second));
    assert_true(first != second);
    OK(cuCtxGetApiVersion(a, &u));
    OK(cuCtxDestroy_v2(b));
    assert_ptr_equal(current(), a);
    OK(cuCtxGetFlags(&u));
    assert_int_equal(u, CU_CTX_SCHED_SPIN);
    OK(cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    OK(cuCtxGetFlags(&u));
    assert_int_equal(u, CU_CTX_SCHED_BLOCKING_SYNC);
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(3));
    OK(cuCtxDestroy_v2(a));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(a));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(a));
    assert_null(current());
}

static void test_stack(void **state)
{
    CUcontext a, b, x;
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxCreate_v2(&b, 0, 0));
    OK(cuCtxPushCurrent_v2(a));
    OK(cuCtxPopCurrent_v2(&x));
    assert_ptr_equal(x, a);
    OK(cuCtxSetCurrent(a));
    OK(cuCtxPopCurrent_v2(NULL));
    assert_ptr_equal(current(), a);
    OK(cuCtxSetCurrent(NULL));
    assert_null(current());
    unsigned depth = 0;
    while (cuCtxPushCurrent_v2(a) == CUDA_SUCCESS)
        depth++;
    assert_true(depth >= 100);
    IS(CUDA_ERROR_OUT_OF_MEMORY, cuCtxPushCurrent_v2(a));
    IS(CUDA_ERROR_OUT_OF_MEMORY, cuCtxCreate_v2(&x, 0, 0));
    while (depth--)
        OK(cuCtxPopCurrent_v2(NULL));
    OK(cuCtxDestroy_v2(a));
    OK(cuCtxDestroy_v2(b));
}

static void test_attach(void **state)
{
    CUcontext a, x;
    OK(cuCtxCreate_v2(&a, 0, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&x, 1));
    OK(cuCtxAttach(&x, 0));
    assert_ptr_equal(x, a);
    OK(cuCtxDetach(a));
    assert_ptr_equal(current(), a);
    OK(cuCtxDetach(a));
    assert_null(current());
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(a));
}

// Another thread destroys a context, whose memory then serves a new one.
static atomic_int step;
static CUcontext shared;

static void *use_destroyed(void *arg)
{
    CUresult *results = arg;
    CUcontext x;
    CUdeviceptr p;
    results[0] = cuCtxSetCurrent(shared);
    atomic_store(&step, 1);
    while (atomic_load(&step) != 2)
        usleep(100);
    results[1] = cuMemAlloc_v2(&p, 4);
    results[2] = cuCtxSynchronize();
    results[3] = cuCtxGetCurrent(&x);
    results[4] = cuCtxPopCurrent_v2(&x);
    results[5] = cuCtxPopCurrent_v2(&x);
    return NULL;
}

static void test_destroyed_elsewhere(void **state)
{
    pthread_t thread;
    CUresult results[6];
    CUcontext next;
    OK(cuCtxCreate_v2(&shared, 0, 0));
    atomic_store(&step, 0);
    assert_int_equal(pthread_create(&thread, NULL, use_destroyed, results), 0);
    while (atomic_load(&step) != 1)
        usleep(100);
    OK(cuCtxDestroy_v2(shared));
    OK(cuCtxCreate_v2(&next, 0, 0));
    assert_ptr_equal(next, shared);
    atomic_store(&step, 2);
    pthread_join(thread, NULL);
    OK(results[0]);
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, results[1]);
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, results[2]);
    OK(results[3]);
    OK(results[4]);
    IS(CUDA_ERROR_INVALID_CONTEXT, results[5]);
    OK(cuCtxDestroy_v2(next));
}

// A stream has its context, so that none need be current; but a destroyed current context is an error.
static void test_stream_of_another(void **state)
{
    CUcontext a, b;
    CUdeviceptr p;
    CUstream s;
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuCtxCreate_v2(&b, 0, 0));
    OK(cuMemsetD8Async(p, 1, 4, s));
    OK(cuCtxPushCurrent_v2(b));
    OK(cuCtxDestroy_v2(b));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemsetD8Async(p, 1, 4, s));
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuCtxPopCurrent_v2(NULL));
    assert_null(current());
    OK(cuMemsetD8Async(p, 1, 4, s));
    OK(cuCtxDestroy_v2(a));
}

static void expect_primary(unsigned flags, int active)
{
    unsigned f = 99;
    int a = 99;
    OK(cuDevicePrimaryCtxGetState(0, &f, &a));
    assert_int_equal(f, flags);
    assert_int_equal(a, active);
}

static void test_primary(void **state)
{
    CUcontext a, b;
    CUdeviceptr p;
    unsigned u;
    expect_primary(0, 0);
    IS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD));
    IS(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags_v2(0, 3));
    expect_primary(CU_CTX_SCHED_YIELD, 0);
    IS(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxRetain(NULL, 0));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&a, 5));
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuDevicePrimaryCtxRetain(&b, 0));
    assert_ptr_equal(a, b);
    assert_null(current());
    OK(cuCtxSetCurrent(a));
    OK(cuCtxGetFlags(&u));
    assert_int_equal(u, CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST);
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(a));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    expect_primary(0, 0);
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&p, 4));
    assert_ptr_equal(current(), a);
    OK(cuCtxSetCurrent(a));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
}

static void test_primary_comes_back(void **state)
{
    CUcontext a;
    CUdeviceptr p;
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuCtxSetCurrent(a));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuDevicePrimaryCtxReset_v2(0));
    expect_primary(0, 0);
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&p, 4));
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    expect_primary(0, 1);
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSetCurrent(NULL));
}

static atomic_bool resets_over;
static atomic_uint allocated, retained;

// Allocates and frees in the primary context, whatever the driver answers.
static void *allocate_on(void *unused)
{
    CUdeviceptr plain, ordered = 0;
    CUcontext primary = NULL;
    void *pinned;
    while (!atomic_load(&resets_over)) {
        atomic_fetch_add(&retained, cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
        cuCtxSetCurrent(primary);
        while (!atomic_load(&resets_over) && !cuMemAlloc_v2(&plain, 4096)) {
            atomic_fetch_add(&allocated, 1);
            cuMemHostAlloc(&pinned, 1000, 0);
            if (ordered || !cuMemAllocAsync(&ordered, 5000, NULL))
                ordered = cuMemFreeAsync(ordered, NULL) ? ordered : 0;
        }
    }
    return NULL;
}

// A reset may free a block before the call that has allocated it returns.
static void test_reset_beside_allocations(void **state)
{
    enum { THREADS = 3, RESETS = 50, ALLOCATIONS = 500 };
    pthread_t threads[THREADS];
    OK(cuInit(0));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_on, NULL), 0);
    for (unsigned n = 0; n < RESETS || atomic_load(&allocated) < ALLOCATIONS; n++) {
        OK(cuDevicePrimaryCtxReset_v2(0));
        sched_yield();
    }
    atomic_store(&resets_over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned n = atomic_load(&retained); n; n--)
        OK(cuDevicePrimaryCtxRelease_v2(0));
    expect_primary(0, 0);
}

// The first fault sticks to its context and to no other, until it is destroyed.
static void test_fault_sticks(void **state)
{
    CUcontext a = whole_context(), other;
    CUdeviceptr p;
    size_t limit;
    unsigned u;
    struct exec_fault assert_failed = {.kind = EXEC_ASSERT},
                      wild = {.kind = EXEC_ILLEGAL_ADDRESS, .address = 0x123};
    cpu_context_fail(a, &wild);
    cpu_context_fail(a, &assert_failed);
    assert_int_equal(a->fault.address, 0x123);
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&p, 4));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuModuleLoadData(&(CUmodule){0}, WHOLE_PTX));
    OK(cuCtxGetFlags(&u));
    OK(cuCtxGetDevice(&(CUdevice){0}));
    assert_ptr_equal(current(), a);
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxDestroy_v2(a));
    a = whole_context();
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuCtxDestroy_v2(a));
}

static void test_fault_codes(void **state)
{
    assert_int_equal(cpu_context_error_of(EXEC_NO_FAULT), 0);
    assert_int_equal(cpu_context_error_of(EXEC_ILLEGAL_ADDRESS), 700);
    assert_int_equal(cpu_context_error_of(EXEC_ASSERT), 710);
    assert_int_equal(cpu_context_error_of(EXEC_ILLEGAL_INSTRUCTION), 715);
    assert_int_equal(cpu_context_error_of(EXEC_MISALIGNED_ADDRESS), 716);
    assert_int_equal(cpu_context_error_of(EXEC_INVALID_ADDRESS_SPACE), 717);
    assert_int_equal(cpu_context_error_of(EXEC_INVALID_PC), 718);
    assert_int_equal(cpu_context_error_of(EXEC_LAUNCH_FAILED), 719);
    assert_int_equal(cpu_context_error_of(EXEC_OUT_OF_MEMORY), 2);
    assert_int_equal(cpu_context_error_of((enum exec_fault_kind)99), 999);
}

static size_t set_limit(CUlimit limit, size_t value)
{
    size_t now;
    OK(cuCtxSetLimit(limit, value));
    OK(cuCtxGetLimit(&now, limit));
    return now;
}

static void test_limits(void **state)
{
    CUcontext a = whole_context();
    size_t v;
    OK(cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
    assert_int_equal(v, 1024);
    assert_int_equal(set_limit(CU_LIMIT_STACK_SIZE, 100), 112);
    assert_int_equal(set_limit(CU_LIMIT_STACK_SIZE, 0), 0);
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1 << 40));
    assert_int_equal(set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, 1), 4 << 20);
    assert_int_equal(set_limit(CU_LIMIT_PRINTF_FIFO_SIZE, 1), 512 << 10);
    assert_int_equal(set_limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1), 3932160);
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129));
    IS(CUDA_ERROR_NOT_PERMITTED, cuCtxSetLimit(CU_LIMIT_SHMEM_SIZE, 1));
    IS(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&v, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&v, CU_LIMIT_MAX));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&v, (CUlimit)-1));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    OK(cuCtxDestroy_v2(a));
}

static void test_settings(void **state)
{
    CUcontext a = whole_context();
    CUfunc_cache cache;
    CUsharedconfig shape;
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    OK(cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_L1);
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig((CUfunc_cache)77));
    OK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    OK(cuCtxGetSharedMemConfig(&shape));
    assert_int_equal(shape, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxSetSharedMemConfig((CUsharedconfig)9));
    OK(cuCtxResetPersistingL2Cache());
    CUexecAffinityParam affinity;
    OK(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    assert_int_equal(affinity.param.smCount.val, device_sm_count());
    IS(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_MAX));
    OK(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    IS(CUDA_ERROR_INVALID_VALUE,
       cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                  (CUflushGPUDirectRDMAWritesScope)7));
    OK(cuProfilerStart());
    OK(cuProfilerStop());
    IS(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(a, 0));
    IS(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(a));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDisablePeerAccess(NULL));
    OK(cuCtxDestroy_v2(a));
}

static int in_child(void)
{
    CUcontext x;
    CUdeviceptr p;
    int n;
    return cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED &&
           cuMemAlloc_v2(&p, 4) == CUDA_ERROR_NOT_INITIALIZED &&
           cuCtxGetCurrent(&x) == CUDA_ERROR_NOT_INITIALIZED &&
           cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_NOT_INITIALIZED &&
           cuDriverGetVersion(&n) == CUDA_SUCCESS;
}

static void test_fork(void **state)
{
    CUcontext a = whole_context();
    CUdeviceptr p;
    int status;
    pid_t child = fork();
    if (!child)
        _exit(in_child() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuCtxDestroy_v2(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),  // must be the first
        cmocka_unit_test(test_wild_handles),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_attach),
        cmocka_unit_test(test_destroyed_elsewhere),
        cmocka_unit_test(test_stream_of_another),
        cmocka_unit_test(test_primary),
        cmocka_unit_test(test_primary_comes_back),
        cmocka_unit_test(test_reset_beside_allocations),
        cmocka_unit_test(test_fault_sticks),
        cmocka_unit_test(test_fault_codes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
