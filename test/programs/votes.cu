// SPDX-License-Identifier: MIT
// Warp votes, matches, shuffles and reductions; the redux instruction from sm_80, shuffles before.
#include "program.h"

enum { RESULTS = 8 };
static const unsigned FULL = ~0u;

__device__ int sum_warp(int value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(FULL, value);
#else
    for (int mask = 16; mask > 0; mask /= 2)
        value += __shfl_xor_sync(FULL, value, mask);
    return value;
#endif
}

__device__ unsigned or_warp(unsigned value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(FULL, value);
#else
    for (int mask = 16; mask > 0; mask /= 2)
        value |= __shfl_xor_sync(FULL, value, mask);
    return value;
#endif
}

// The blocks are whole warps and n is padded to them: every lane takes part.
__global__ void vote(unsigned *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, value = in[i], same;
    unsigned *results = &out[(size_t)i * RESULTS];
    results[0] = __ballot_sync(FULL, value & 1);
    results[1] = __any_sync(FULL, value == 7) ? 1 : __all_sync(FULL, value != 7) ? 2 : 3;
    results[2] = __match_any_sync(FULL, value);
    results[3] = __match_all_sync(FULL, value / 64, &same);
    results[3] ^= same != 0;
    results[4] = __shfl_up_sync(FULL, value, 3) + __shfl_down_sync(FULL, value, 5, 8);
    results[5] = __shfl_sync(FULL, value, value, 16);
    results[6] = sum_warp(value) ^ or_warp(1u << value % 32);
    results[7] = 0;
    unsigned low = __ballot_sync(FULL, lane < 16);
    if (lane < 16)
        results[7] = __ballot_sync(low, value > 20) + __popc(low);
}

// What lane must find in results when its warp holds these values.
static void reference(unsigned *results, const int *values, int lane)
{
    unsigned odd = 0, sevens = 0, equal = 0, large = 0, any_bit = 0, sum = 0, alike = 0;
    for (int i = 0; i < 32; i++) {
        odd |= (unsigned)(values[i] & 1) << i;
        sevens += values[i] == 7;
        equal |= (unsigned)(values[i] == values[lane]) << i;
        alike += values[i] / 64 == values[0] / 64;
        any_bit |= 1u << values[i] % 32;
        sum += values[i];
        large |= (unsigned)(i < 16 && values[i] > 20) << i;
    }
    int above = lane >= 3 ? lane - 3 : lane, below = lane % 8 + 5 < 8 ? lane + 5 : lane;
    results[0] = odd;
    results[1] = sevens > 0 ? 1 : 2;
    results[2] = equal;
    results[3] = alike == 32 ? ~1u : 0;
    results[4] = values[above] + values[below];
    results[5] = values[lane / 16 * 16 + values[lane] % 16];
    results[6] = sum ^ any_bit;
    results[7] = lane < 16 ? large + 16 : 0;
}

int main(int argc, char **argv)
{
    long warps = 30, repeats = 1;
    program_arguments(argc, argv,
                      {{"warps", &warps, 1, 1 << 20}, {"repeats", &repeats, 1, 100000}});
    size_t n = (size_t)program_blocks(warps, 2) * 64;
    std::vector<int> in = program_numbers<int>(n, 0, 66, 1);
    for (size_t i = 0; i < n; i++)
        if (i / 32 % 3 == 0)
            in[i] %= 40; // warps for which the match of all succeeds
    int *device_in = program_upload(in);
    unsigned *device_out = program_allocate<unsigned>(n * RESULTS);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        vote<<<n / 64, 64>>>(device_out, device_in);
    program_stop(start);

    std::vector<unsigned> out = program_download(device_out, n * RESULTS);
    program_free(device_in, device_out);
    long errors = 0;
    for (size_t i : program_sample(n, 50000)) {
        unsigned expected[RESULTS];
        reference(expected, &in[i / 32 * 32], i % 32);
        for (int j = 0; j < RESULTS; j++)
            errors += program_wrong(i * RESULTS + j, out[i * RESULTS + j], expected[j]);
    }
    return program_result("votes", errors);
}
