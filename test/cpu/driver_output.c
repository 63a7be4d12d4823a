// SPDX-License-Identifier: MIT
// printf of kernels, whose output appears when the host waits, and their malloc and free.
#include <unistd.h>

#include "driver_check.h"

enum { BLOCKS = 2, THREADS = 40 };

static CUresult run_and_wait(CUfunction kernel)
{
    CUresult r = LAUNCH(kernel, BLOCKS, THREADS, 0, NULL, NULL);
    return r ? r : cuCtxSynchronize();
}

// The kernel has failed before the host waits, which it then does not: the call fails at once.
static CUresult run_and_wait_late(CUfunction kernel)
{
    CUresult r = LAUNCH(kernel, 1, THREADS, 0, NULL, NULL);
    if (r)
        return r;
    while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
        usleep(1000);
    return cuCtxSynchronize();
}

// Redirects standard output into a file while the kernel runs. Returns the file, with what was in it after
// the wait.
static FILE *printed(CUresult (*run)(CUfunction), CUfunction kernel, CUresult *r)
{
    fflush(stdout);
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    check_need(file && saved >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    *r = run(kernel);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    return file;
}

static void printing(CUmodule module)
{
    CUresult r;
    FILE *file = printed(run_and_wait, check_function(module, "say"), &r);
    TRY(r);
    bool seen[BLOCKS][THREADS] = {{false}};
    char line[200], text[8];
    int lines = 0, block, thread;
    for (; fgets(line, sizeof line, file); lines++) {
        float value;
        long long number;
        int n = 0;
        bool good = sscanf(line, "block %d thread %d: %f %7s %lld %%\n%n", &block, &thread, &value, text,
                           &number, &n) == 5 &&
                    !line[n] && block >= 0 && block < BLOCKS && thread >= 0 && thread < THREADS &&
                    value == 1.5f * (float)thread && strcmp(text, "text") == 0 && number == -5000000000;
        if (!good)
            printf("unexpected line: %s", line);
        CHECK(good);
        if (good) {
            CHECK(!seen[block][thread]);
            seen[block][thread] = true;
        }
    }
    EQUAL(lines, BLOCKS * THREADS);
    fclose(file);
}

// What a kernel printed before it failed is there, whether or not it had failed when the host began to wait.
static void printing_and_failing(CUmodule module)
{
    CUresult r;
    char line[200];
    int lines = 0;
    FILE *file = printed(run_and_wait_late, check_function(module, "say_and_trap"), &r);
    EQUAL(r, CUDA_ERROR_LAUNCH_FAILED);
    for (; fgets(line, sizeof line, file); lines++)
        CHECK(strcmp(line, "text\n") == 0);
    EQUAL(lines, 1);
    fclose(file);
}

static void heap(CUmodule module)
{
    static uint64_t address[BLOCKS * THREADS];
    CUdeviceptr list = check_zeroed(sizeof address), count = check_zeroed(4);
    uint64_t size = 100;
    unsigned found = 0;
    TRY(LAUNCH(check_function(module, "take"), BLOCKS, THREADS, 0, NULL, &list, &size));
    TRY(cuMemcpyDtoH_v2(address, list, sizeof address));
    for (int i = 0; i < BLOCKS * THREADS; i++) {
        CHECK(address[i] && address[i] % 16 == 0);
        for (int j = 0; j < i; j++)
            CHECK(address[i] >= address[j] + size || address[j] >= address[i] + size);
    }
    TRY(LAUNCH(check_function(module, "give_back"), BLOCKS, THREADS, 0, NULL, &list, &count));
    TRY(cuMemcpyDtoH_v2(&found, count, 4));
    EQUAL(found, BLOCKS * THREADS);
    // Too large for the heap: NULL, and no error.
    size = (uint64_t)1 << 40;
    TRY(LAUNCH(check_function(module, "take"), 1, 1, 0, NULL, &list, &size));
    TRY(cuMemcpyDtoH_v2(address, list, 8));
    EQUAL(address[0], 0);
    size_t limit = 0;
    TRY(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    CHECK(limit >= 8 << 20);
    TRY(cuMemFree_v2(list));
    TRY(cuMemFree_v2(count));
}

int main(void)
{
    CUcontext context = check_context();
    CUmodule module = check_module("output.ptx");
    printing(module);
    heap(module);
    printing_and_failing(module);
    cuCtxDestroy_v2(context);
    return check_end("driver_output");
}
