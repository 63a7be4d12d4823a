// SPDX-License-Identifier: MIT
// Calls through a table of function pointers, chosen by data: divergent indirect calls.
#include "program.h"

typedef uint32_t (*operation)(uint32_t value, uint32_t operand);

__host__ __device__ uint32_t add(uint32_t value, uint32_t operand)
{
    return value + operand;
}

__host__ __device__ uint32_t multiply(uint32_t value, uint32_t operand)
{
    return value * (operand | 1);
}

__host__ __device__ uint32_t exclusive_or(uint32_t value, uint32_t operand)
{
    return value ^ operand << 7;
}

__host__ __device__ uint32_t rotate(uint32_t value, uint32_t operand)
{
    return value << operand % 31 | value >> (32 - operand % 31) % 32;
}

enum { OPERATIONS = 4 };
__device__ operation device_table[OPERATIONS] = {add, multiply, exclusive_or, rotate};
static const operation host_table[OPERATIONS] = {add, multiply, exclusive_or, rotate};

// Runs a small program whose instructions are hashes of the thread's number and the step.
__host__ __device__ uint32_t interpret(const operation *table, uint32_t thread, int steps)
{
    program_random random = {thread};
    uint32_t value = thread;
    for (int step = 0; step < steps; step++) {
        uint32_t instruction = program_next(&random);
        value = table[instruction >> 30](value, instruction & 0xffff);
    }
    return value;
}

__global__ void interpret_all(uint32_t *out, int threads, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < threads)
        out[i] = interpret(device_table, i, steps);
}

int main(int argc, char **argv)
{
    long threads = 500, steps = 16, repeats = 1;
    program_arguments(argc, argv, {{"threads", &threads, 1, 1 << 24}, {"steps", &steps, 1, 10000},
                                   {"repeats", &repeats, 1, 10000}});
    uint32_t *device_out = program_allocate<uint32_t>(threads);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        interpret_all<<<program_blocks(threads, 128), 128>>>(device_out, threads, steps);
    program_stop(start);

    std::vector<uint32_t> out = program_download(device_out, threads);
    program_free(device_out);
    long errors = 0;
    for (size_t i : program_sample(threads, 1 + 4000000 / steps))
        errors += program_wrong(i, out[i], interpret(host_table, i, steps));
    return program_result("function_pointers", errors);
}
