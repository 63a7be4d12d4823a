// SPDX-License-Identifier: MIT
//
// A process that ends while its threads use CUDA. `exit_threads exit`: four detached threads allocate, launch
// and free while main returns; the exit handler that nvcc's code registers unregisters the module meanwhile.
// `exit_threads close LIBRARY`: a library that was opened takes its module along when it is closed, again and
// again, and the process ends in order after that. The library is this file with -DLIBRARY and our static
// runtime: what it loaded must be unloaded, although the runtime itself leaves.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cudart_api.h"

enum { THREADS = 4 };

static char image[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                      ".visible .entry store(.param .u64 p)\n"
                      "{ .reg .b64 %a; ld.param.u64 %a, [p]; st.global.u32 [%a], 7; ret; }\n"
                      ".visible .global .align 4 .b8 big[1048576];\n";
static char name[] = "store", stub;
static void **module;
static atomic_int rounds;

static int round_trip(void)
{
    const dim3 one = {1, 1, 1};
    void *memory = NULL, *args[] = {&memory};
    if (cudaMalloc(&memory, 4096))
        return 0;
    cudaError_t error = cudaLaunchKernel(&stub, one, one, args, 0, NULL);
    cudaFree(memory);
    return !error;
}

static void *use(void *unused)
{
    for (;;)
        if (round_trip())
            atomic_fetch_add(&rounds, 1);
    return NULL;
}

static void forget(void)
{
    __cudaUnregisterFatBinary(module);
}

// Others' exit handlers take time, in which the threads go on; and may launch themselves.
static void run_late(void)
{
    if (atomic_load(&rounds) && !round_trip()) {
        printf("a launch in an exit handler fails\n");
        fflush(stdout);
        _exit(3);
    }
    usleep(20000);
}

// As nvcc's code does it, before main. Handlers run in the opposite order.
static void __attribute__((constructor)) begin(void)
{
    module = __cudaRegisterFatBinary(image);
    __cudaRegisterFunction(module, &stub, name, name, -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(module);
    atexit(run_late);
    atexit(forget);
}

static int end_under_threads(void)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, use, NULL) || pthread_detach(thread))
            return 1;
    }
    while (!atomic_load(&rounds))
        usleep(100);
    return 0;
}

static int close_again_and_again(const char *path)
{
    size_t before = 0, now, total;
    for (int i = 0; i < 10; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int (*run)(void) = NULL;
        if (!library) {
            printf("%s\n", dlerror());
            return 1;
        }
        *(void **)&run = dlsym(library, "exit_threads_run");
        if (!run || !run()) {
            printf("round %d: the library's kernel does not run\n", i);
            return 1;
        }
        dlclose(library);
        if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {
            printf("round %d: the library has not gone\n", i);
            return 1;
        }
        if (cudaMemGetInfo(&now, &total) || (i && now != before)) {
            printf("round %d: %zu bytes are free, after the round before %zu\n", i, now, before);
            return 1;
        }
        before = now;
    }
    return 0;
}

#ifdef LIBRARY
int __attribute__((visibility("default"))) exit_threads_run(void)
{
    return round_trip();
}
#endif

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "exit") == 0)
        return end_under_threads();
    if (argc == 3 && strcmp(argv[1], "close") == 0)
        return close_again_and_again(argv[2]);
    return 2;
}
