// SPDX-License-Identifier: MIT
// printf of kernels, whose output appears when the host waits, and their malloc and free.
#include <unistd.h>

#include "driver_check.h"

enum { BLOCKS = 2, THREADS = 40 };

// Redirects standard output into a file while the kernel runs; what it printed must be there after the wait.
static void printing(CUmodule module)
{
    fflush(stdout);
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    check_need(file && saved >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    CUresult r = LAUNCH(check_function(module, "say"), BLOCKS, THREADS, 0, NULL, NULL);
    r = r ? r : cuCtxSynchronize();
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    TRY(r);
    bool seen[BLOCKS][THREADS] = {{false}};
    char line[200], text[8];
    int lines = 0, block, thread;
    rewind(file);
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
    TRY(cuModuleUnload(module));
    TRY(cuCtxDestroy_v2(context));
    return check_end("driver_output");
}
