// SPDX-License-Identifier: MIT
// Launches that are equal to earlier ones, so that what was found out about those is remembered, and between
// them a change of the buffers that makes them wrong, or does not: check_remembered bad|good NAME, or list.
#include <cuda.h>
#include <thread>

#include "check_cases.cuh"
#include "moat.h"

enum { COUNT = 1000, BYTES = COUNT * 4, EQUAL = 6, UNIT = 2 << 20 };

#define DRIVER(call)                                         \
    do {                                                     \
        CUresult r_ = (call);                                \
        if (r_) {                                            \
            printf("%d: %s gives %d\n", __LINE__, #call, r_); \
            exit(2);                                         \
        }                                                    \
    } while (0)

static __global__ void fill(int *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = i;
}

// Which element depends on memory, so that the store is checked, by the bounds of a's buffer.
static __global__ void fill_by(int *a, const int *which, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[which[i]] = i;
}

static int *a, *b, *which;

static void start(void)
{
    a = take<int>(COUNT);
    b = take<int>(COUNT);
    which = take<int>(COUNT);
}

static void launch(void)
{
    fill<<<4, 256>>>(a, COUNT);
    wait();
}

static void launch_in_part(void)
{
    fill_by<<<4, 256>>>(a, which, COUNT);
    wait();
}

// No two of these are equal: each is judged by itself, with the buffers that the one before has found.
static int smaller;

static void launch_other(void)
{
    fill<<<4, 256>>>(a, COUNT - smaller++);
    wait();
}

static void launch_other_in_part(void)
{
    fill_by<<<4, 256>>>(a, which, COUNT - smaller++);
    wait();
}

static void repeat(void (*f)(void))
{
    for (int i = 0; i < EQUAL; i++)
        f();
}

static void freed(bool bad)
{
    start();
    repeat(launch);
    NEED(cudaFree(bad ? a : b));
    launch();
}

static void freed_elsewhere(bool bad)
{
    start();
    repeat(launch);
    std::thread other([=] { NEED(cudaFree(bad ? a : b)); });
    other.join();
    launch();
}

// Each thread repeats the launch, and frees after the other one has.
static void freed_in_turn(bool bad)
{
    start();
    std::thread other([=] {
        repeat(launch);
        NEED(cudaFree(b));
    });
    other.join();
    repeat(launch);
    std::thread another([=] { NEED(cudaFree(bad ? a : which)); });
    another.join();
    std::thread last(launch);
    last.join();
}

static void freed_and_taken(bool bad)
{
    start();
    repeat(launch);
    NEED(cudaFree(bad ? a : b));
    take<int>(COUNT);
    launch();
}

static void freed_in_part(bool bad)
{
    start();
    repeat(launch_in_part);
    NEED(cudaFree(bad ? a : b));
    launch_in_part();
}

static void other_freed_in_part(bool bad)
{
    start();
    repeat(launch_in_part);
    NEED(cudaFree(bad ? which : b));
    launch_in_part();
}

static void freed_between_others(bool bad)
{
    start();
    repeat(launch_other);
    NEED(cudaFree(bad ? a : b));
    launch_other();
}

static void freed_between_others_elsewhere(bool bad)
{
    start();
    std::thread first([=] { repeat(launch_other); });
    first.join();
    repeat(launch_other);
    std::thread other([=] { NEED(cudaFree(bad ? a : b)); });
    other.join();
    launch_other();
}

static void freed_between_others_in_part(bool bad)
{
    start();
    repeat(launch_other_in_part);
    NEED(cudaFree(bad ? which : b));
    launch_other_in_part();
}

// The last one is passed another pointer, to a buffer that was there before.
static void smaller_between_others(bool bad)
{
    start();
    int *small = take<int>(COUNT / 2);
    repeat(launch_other);
    a = bad ? small : b;
    launch_other();
}

static void announced_between_others(bool bad)
{
    start();
    repeat(launch_other);
    moat_block_made(a, bad ? BYTES / 2 : BYTES, "piece");
    launch_other();
}

// From then on the pointer is one into the smaller block.
static void announced(bool bad)
{
    start();
    repeat(launch);
    moat_block_made(a, bad ? BYTES / 2 : BYTES, "piece");
    launch();
}

static void announced_in_part(bool bad)
{
    start();
    int element = bad ? COUNT / 2 : 0;
    NEED(cudaMemcpy(&which[COUNT - 1], &element, sizeof element, cudaMemcpyHostToDevice));
    repeat(launch_in_part);
    moat_block_made(a, BYTES / 2, "piece");
    launch_in_part();
}

static void withdrawn(bool bad)
{
    start();
    moat_block_made(a, BYTES, "piece");
    repeat(launch);
    moat_block_gone(a);
    launch();
    moat_block_made(a, bad ? BYTES / 2 : BYTES, "piece");
    launch();
}

static void map(CUdeviceptr at, size_t size)
{
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    CUmemGenericAllocationHandle handle;
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemCreate(&handle, size, &prop, 0));
    DRIVER(cuMemMap(at, size, 0, handle, 0));
    DRIVER(cuMemSetAccess(at, size, &access, 1));
    DRIVER(cuMemRelease(handle));
}

// Addresses that lose their memory and get other memory.
static void mapped_again(bool bad)
{
    CUdeviceptr at;
    start();
    DRIVER(cuMemAddressReserve(&at, UNIT, 0, 0, 0));
    map(at, UNIT);
    a = (int *)at;
    repeat(launch);
    DRIVER(cuMemUnmap(at, UNIT));
    if (!bad)
        map(at, UNIT);
    launch();
}

static const check_case cases[] = {
    {"freed", freed, "heap-use-after-free"},
    {"freed_elsewhere", freed_elsewhere, "heap-use-after-free"},
    {"freed_in_turn", freed_in_turn, "heap-use-after-free"},
    {"freed_and_taken", freed_and_taken, "heap-use-after-free"},
    {"freed_in_part", freed_in_part, "heap-use-after-free"},
    {"other_freed_in_part", other_freed_in_part, "heap-use-after-free"},
    {"freed_between_others", freed_between_others, "heap-use-after-free"},
    {"freed_between_others_elsewhere", freed_between_others_elsewhere, "heap-use-after-free"},
    {"freed_between_others_in_part", freed_between_others_in_part, "heap-use-after-free"},
    {"smaller_between_others", smaller_between_others, "heap-buffer-overflow"},
    {"announced_between_others", announced_between_others, "heap-buffer-overflow"},
    {"announced", announced, "heap-buffer-overflow"},
    {"announced_in_part", announced_in_part, "heap-buffer-overflow"},
    {"withdrawn", withdrawn, "heap-buffer-overflow"},
    {"mapped_again", mapped_again, "heap-use-after-free"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
