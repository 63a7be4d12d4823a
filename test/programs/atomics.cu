// SPDX-License-Identifier: MIT
// The atomic operations on global memory, two on shared, with results that no order changes.
#include "program.h"

enum { LIMIT = 36, SWAP_SLOTS = 8, FACTOR_STRIDE = 128 };

struct results {
    int sum, difference, least, greatest;
    unsigned all_bits, any_bits, odd_bits, up, down, block_sum;
    unsigned long long wide_sum, wide_greatest, swapped_out, swap_slots[SWAP_SLOTS];
    float float_sum;
    unsigned product;
    double double_sum;
};

__device__ void multiply(unsigned *product, unsigned factor)
{
    unsigned seen = 1, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(product, assumed, assumed * factor);
    } while (seen != assumed);
}

__global__ void update(struct results *results, const int *in, int n)
{
    __shared__ unsigned block_sum;
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = i < n ? in[i] : 0;
    if (threadIdx.x == 0)
        block_sum = 0;
    __syncthreads();
    if (i < n) {
        atomicAdd_block(&block_sum, (unsigned)value);
        atomicAdd(&results->sum, value);
        atomicSub(&results->difference, value);
        atomicMin(&results->least, value);
        atomicMax(&results->greatest, value);
        atomicAnd(&results->all_bits, ~(1u << value % 30));
        atomicOr(&results->any_bits, 1u << value % 32);
        atomicXor(&results->odd_bits, 1u << value % 32);
        atomicInc(&results->up, LIMIT);
        atomicDec(&results->down, LIMIT);
        atomicAdd_system(&results->wide_sum, (unsigned long long)value << 30);
        atomicMax(&results->wide_greatest, (unsigned long long)value << 30);
        atomicAdd(&results->float_sum, value % 2 ? 1.0f : -1.0f);
        atomicAdd(&results->double_sum, value + 0.5);
        if (i % FACTOR_STRIDE == 0) // all at once would get in each other's way for seconds
            multiply(&results->product, 2 * value + 1);
        unsigned long long old = atomicExch(&results->swap_slots[i % SWAP_SLOTS], value);
        atomicAdd(&results->swapped_out, old);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&results->block_sum, block_sum);
}

static struct results initial(void)
{
    struct results results = {};
    results.least = INT32_MAX;
    results.greatest = INT32_MIN;
    results.all_bits = ~0u;
    results.product = 1;
    return results;
}

static struct results reference(const std::vector<int> &in)
{
    struct results results = initial();
    for (int value : in) {
        results.sum += value;
        results.least = std::min(results.least, value);
        results.greatest = std::max(results.greatest, value);
        results.all_bits &= ~(1u << value % 30);
        results.any_bits |= 1u << value % 32;
        results.odd_bits ^= 1u << value % 32;
        results.float_sum += value % 2 ? 1.0f : -1.0f;
        results.double_sum += value + 0.5;
    }
    for (size_t i = 0; i < in.size(); i += FACTOR_STRIDE)
        results.product *= 2 * in[i] + 1;
    results.difference = -results.sum;
    results.block_sum = results.sum;
    results.up = in.size() % (LIMIT + 1);
    results.down = (LIMIT + 1 - results.up) % (LIMIT + 1);
    results.wide_sum = (unsigned long long)results.sum << 30;
    results.wide_greatest = (unsigned long long)results.greatest << 30;
    return results;
}

// Each number that was swapped in was swapped out again or is still in its slot.
static long check(const struct results *a, const struct results *e)
{
    unsigned long long swapped = a->swapped_out;
    for (int i = 0; i < SWAP_SLOTS; i++)
        swapped += a->swap_slots[i];
    return program_wrong(0, a->sum, e->sum) + program_wrong(1, a->difference, e->difference) +
           program_wrong(2, a->least, e->least) + program_wrong(3, a->greatest, e->greatest) +
           program_wrong(4, a->all_bits, e->all_bits) + program_wrong(5, a->any_bits, e->any_bits) +
           program_wrong(6, a->odd_bits, e->odd_bits) + program_wrong(7, a->up, e->up) +
           program_wrong(8, a->down, e->down) + program_wrong(9, a->block_sum, e->block_sum) +
           program_wrong(10, a->wide_sum, e->wide_sum) +
           program_wrong(11, a->wide_greatest, e->wide_greatest) +
           program_wrong(12, a->float_sum, e->float_sum) +
           program_wrong(13, a->product, e->product) +
           program_wrong(14, a->double_sum, e->double_sum) +
           program_wrong<unsigned long long>(15, swapped, e->sum);
}

int main(int argc, char **argv)
{
    long n = 800, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 20}, {"repeats", &repeats, 1, 100000}});
    std::vector<int> in = program_numbers<int>(n, 0, 1000, 1);
    int *device_in = program_upload(in);
    struct results *results = program_allocate<struct results>(1), before = initial();

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemcpy(results, &before, sizeof before, cudaMemcpyHostToDevice));
        update<<<program_blocks(n, 128), 128>>>(results, device_in, n);
    }
    program_stop(start);

    struct results actual = program_download(results, 1)[0], expected = reference(in);
    program_free(device_in, results);
    return program_result("atomics", check(&actual, &expected));
}
