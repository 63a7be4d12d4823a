// SPDX-License-Identifier: MIT
// Kernels that fault: the result is a GPU's sticky error of the context, and the process survives. On a GPU
// no context of the process works afterwards, so each fault has a process of its own; on the CPU device a new
// context works.
#include <sys/wait.h>
#include <unistd.h>

#include "driver_check.h"

struct fault {
    const char *kernel;
    CUresult expected;
    CUdeviceptr address;  // argument of the kernel, or
    unsigned offset;      // not 0: this far behind the start of a buffer
};

static void still_works(void)
{
    CUcontext context;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module = check_module("faults.ptx");
    CUdeviceptr p = check_zeroed(16);
    TRY(LAUNCH(check_function(module, "write"), 3, 64, 0, NULL, &p));
    unsigned value = 0;
    TRY(cuMemcpyDtoH_v2(&value, p, 4));
    EQUAL(value, 1);
    TRY(cuCtxDestroy_v2(context));
}

static void fails(const struct fault *fault)
{
    CUcontext context;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module = check_module("faults.ptx");
    CUdeviceptr out = check_zeroed(64), p = fault->offset ? out + fault->offset : fault->address;
    CUfunction f = check_function(module, fault->kernel), nothing = check_function(module, "nothing");
    TRY(LAUNCH(nothing, 1, 1, 0, NULL, &p));
    TRY(LAUNCH(f, 3, 64, 0, NULL, &p, &out));
    if (!EXPECT(fault->expected, cuCtxSynchronize()))
        printf("  in kernel %s\n", fault->kernel);
    // The error is sticky.
    EXPECT(fault->expected, cuCtxSynchronize());
    EXPECT(fault->expected, LAUNCH(nothing, 1, 1, 0, NULL, &p));
    EXPECT(fault->expected, cuMemAlloc_v2(&p, 16));
    unsigned word;
    EXPECT(fault->expected, cuMemcpyDtoH_v2(&word, out, 4));
    EXPECT(fault->expected, cuStreamQuery(NULL));
    // Calls that need no context still work.
    int value = 0;
    EXPECT(CUDA_SUCCESS, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    EQUAL(value, 1024);
    cuCtxDestroy_v2(context);
    if (!check_on_gpu())
        still_works();
}

// Freed memory is inaccessible at once.
static void freed(const struct fault *fault)
{
    CUcontext context;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr p;
    TRY(cuMemAlloc_v2(&p, 64 << 20));
    TRY(cuMemFree_v2(p));
    TRY(cuCtxDestroy_v2(context));
    struct fault gone = {fault->kernel, fault->expected, p + (32 << 20), 0};
    fails(&gone);
}

// An endless kernel in another stream is ended by the fault.
static void ends_others(const struct fault *fault)
{
    CUcontext context;
    CUstream a, b;
    TRY(cuCtxCreate_v2(&context, 0, 0));
    CUmodule module = check_module("faults.ptx");
    CUdeviceptr flag = check_zeroed(4), nowhere = 0;
    TRY(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    TRY(cuCtxSynchronize());
    TRY(LAUNCH(check_function(module, "forever"), 1, 32, 0, a, &flag));
    TRY(LAUNCH(check_function(module, fault->kernel), 3, 64, 0, b, &nowhere));
    EXPECT(fault->expected, cuStreamSynchronize(b));
    EXPECT(fault->expected, cuStreamSynchronize(a));
    cuCtxDestroy_v2(context);
}

// Runs the test in a process of its own, which has not used the device before.
static void alone(void (*test)(const struct fault *), const struct fault *fault)
{
    fflush(stdout);
    pid_t child = fork();
    check_need(child >= 0);
    if (!child) {
        TRY(cuInit(0));
        test(fault);
        fflush(stdout);
        _exit(check_wrong != 0);
    }
    int status = 0;
    check_need(waitpid(child, &status, 0) == child);
    if (!CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        printf("  kernel %s at 0x%llx or offset %u: status 0x%x\n", fault->kernel,
               (unsigned long long)fault->address, fault->offset, (unsigned)status);
}

int main(void)
{
    static unsigned host;  // which no kernel may access
    const CUdeviceptr wild = 0x123456789000;
    const struct fault faults[] = {
        {"write", CUDA_ERROR_ILLEGAL_ADDRESS, 0, 0},
        {"write", CUDA_ERROR_ILLEGAL_ADDRESS, wild, 0},
        {"write", CUDA_ERROR_ILLEGAL_ADDRESS, (CUdeviceptr)-4, 0},
        {"read", CUDA_ERROR_ILLEGAL_ADDRESS, wild, 0},
        {"add_to", CUDA_ERROR_ILLEGAL_ADDRESS, wild, 0},
        {"write", CUDA_ERROR_MISALIGNED_ADDRESS, 0, 2},
        {"read", CUDA_ERROR_MISALIGNED_ADDRESS, 0, 1},
        {"add_to", CUDA_ERROR_MISALIGNED_ADDRESS, 0, 2},
        {"trap_there", CUDA_ERROR_LAUNCH_FAILED, 0, 0},
        {"assert_there", CUDA_ERROR_ASSERT, 0, 0},
        {"shared_past", CUDA_ERROR_ILLEGAL_ADDRESS, 1 << 20, 0},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        alone(fails, &faults[i]);
    // A GPU's driver may have given freed memory to another allocation, an endless kernel may stay, and host
    // memory may be accessible.
    if (!check_on_gpu()) {
        alone(freed, &faults[0]);
        alone(ends_others, &faults[0]);
        alone(fails, &(struct fault){"read", CUDA_ERROR_ILLEGAL_ADDRESS, (CUdeviceptr)(uintptr_t)&host, 0});
    }
    return check_end("driver_faults");
}
