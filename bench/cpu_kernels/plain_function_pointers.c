// SPDX-License-Identifier: MIT
#include "plain.h"

typedef uint32_t operation(uint32_t value, uint32_t operand);

static uint32_t add(uint32_t value, uint32_t operand)
{
    return value + operand;
}

static uint32_t multiply(uint32_t value, uint32_t operand)
{
    return value * (operand | 1);
}

static uint32_t exclusive_or(uint32_t value, uint32_t operand)
{
    return value ^ operand << 7;
}

static uint32_t rotate(uint32_t value, uint32_t operand)
{
    return value << operand % 31 | value >> (32 - operand % 31) % 32;
}

static operation *const table[] = {add, multiply, exclusive_or, rotate};

KERNEL interpret_all(uint32_t *out, int threads, int steps)
{
    for (int i = 0; i < threads; i++) {
        uint64_t random = (uint64_t)i;
        uint32_t value = (uint32_t)i;
        for (int step = 0; step < steps; step++) {
            uint32_t instruction = plain_next(&random);
            value = table[instruction >> 30](value, instruction & 0xffff);
        }
        out[i] = value;
    }
}

int main(int argc, char **argv)
{
    long threads = plain_argument(argc, argv, 1), steps = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    uint32_t *out = plain_memory(threads, sizeof *out);
    plain_start();
    for (long i = 0; i < repeats; i++)
        interpret_all(out, threads, steps);
    plain_stop();
    return plain_end(out[threads / 2]);
}
