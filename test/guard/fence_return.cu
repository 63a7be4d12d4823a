// SPDX-License-Identifier: MIT
// Buffers come and go, and what kernels write into those that went does no harm. The driver's own library,
// past moat (FENCE_DRIVER names it), says how much memory the device has left.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>

enum { BUFFERS = 12 };
static const size_t SIZE = 96 << 20;

__global__ void write(unsigned *p, unsigned value)
{
    p[blockIdx.x * 4096 * 4 + threadIdx.x] = value;
}

__global__ void follow(unsigned **pp, unsigned value)
{
    (*pp)[threadIdx.x] = value;
}

static size_t left()
{
    static void *library = dlopen(getenv("FENCE_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    auto get = (int (*)(size_t *, size_t *))dlsym(library, "cuMemGetInfo_v2");
    size_t free = 0, total = 0;
    if (!get || get(&free, &total))
        printf("no memory info\n");
    return free;
}

static bool is_right(unsigned *p, unsigned value)
{
    unsigned host = 0;
    char *at = (char *)p + 64 * 4096 * 16;
    return !cudaMemcpy(&host, at, sizeof host, cudaMemcpyDeviceToHost) && host == value;
}

int main(int argc, char **argv)
{
    unsigned *p[BUFFERS], **pp;
    bool right = true;
    cudaMalloc(&pp, sizeof *pp);
    for (int round = 0; round < 3; round++) {
        size_t before = left();
        for (int i = 0; i < BUFFERS; i++) {
            right &= !cudaMalloc(&p[i], SIZE);
            write<<<65, 32>>>(p[i], 100 * round + i);
        }
        size_t during = left();
        cudaMemcpy(pp, &p[5], sizeof p[5], cudaMemcpyHostToDevice);
        for (int i = 0; i < BUFFERS; i++)
            right &= is_right(p[i], 100 * round + i);
        // All but one go, in an order that leaves holes.
        for (int i = 1; i < BUFFERS; i += 2)
            cudaFree(p[i]);
        right &= is_right(p[0], 100 * round);
        for (int i = 2; i < BUFFERS; i += 2)
            cudaFree(p[i]);
        follow<<<1, 32>>>(pp, 7);  // a freed one: its addresses stay mapped
        right &= !cudaDeviceSynchronize() && is_right(p[0], 100 * round);
        size_t after = left();
        cudaFree(p[0]);
        printf("round %d: taken %zu MiB, given back %zu MiB\n", round, (before - during) >> 20,
               (after - during) >> 20);
    }
    printf("%s\n", right ? "right" : "wrong");
    return !right;
}
