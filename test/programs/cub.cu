// SPDX-License-Identifier: MIT
// CUB: device-wide radix sort, scan, histogram, selection, run lengths; and a block's collectives in a kernel of ours.
#include <cub/cub.cuh>

#include "program.h"

enum { THREADS = 128, ITEMS = 4, BINS = 64 };

// Each block sorts its part and writes prefix sums of it.
__global__ void sort_blocks(unsigned *sorted, unsigned *sums, const unsigned *in)
{
    using Load = cub::BlockLoad<unsigned, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<unsigned, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<unsigned, THREADS, ITEMS>;
    using Scan = cub::BlockScan<unsigned, THREADS>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Sort::TempStorage sort;
        typename Scan::TempStorage scan;
    } memory;
    size_t first = (size_t)blockIdx.x * THREADS * ITEMS;
    unsigned items[ITEMS];
    Load(memory.load).Load(in + first, items);
    __syncthreads();
    Sort(memory.sort).Sort(items);
    __syncthreads();
    unsigned prefix[ITEMS];
    Scan(memory.scan).InclusiveSum(items, prefix);
    __syncthreads();
    // Stores leave their items in another order.
    Store(memory.store).Store(sorted + first, items);
    __syncthreads();
    Store(memory.store).Store(sums + first, prefix);
}

static long check_blocks(const std::vector<unsigned> &in, const unsigned *device_in)
{
    unsigned *sorted = program_allocate<unsigned>(in.size()), *sums = program_allocate<unsigned>(in.size());
    sort_blocks<<<in.size() / (THREADS * ITEMS), THREADS>>>(sorted, sums, device_in);
    std::vector<unsigned> expected(in), expected_sums(in.size());
    for (size_t i = 0; i < in.size(); i += THREADS * ITEMS) {
        std::sort(&expected[i], &expected[i] + THREADS * ITEMS);
        for (size_t k = 0; k < THREADS * ITEMS; k++)
            expected_sums[i + k] = expected[i + k] + (k ? expected_sums[i + k - 1] : 0);
    }
    long errors = program_compare(program_download(sorted, in.size()), expected) +
                  program_compare(program_download(sums, in.size()), expected_sums);
    program_free(sorted, sums);
    return errors;
}

// Calls a device-wide function twice: for the size of its scratch memory, then with it.
template <typename F> static void with_scratch(F call)
{
    size_t bytes = 0;
    CUDA_TRY(call((void *)nullptr, bytes));
    char *scratch = program_allocate<char>(bytes ? bytes : 1);
    CUDA_TRY(call((void *)scratch, bytes));
    program_free(scratch);
}

struct Odd {
    __host__ __device__ bool operator()(unsigned x) const { return x & 1; }
};

static long check_device(const std::vector<unsigned> &in, const unsigned *device_in)
{
    int count = (int)in.size();
    unsigned *out = program_allocate<unsigned>(count), *kept = program_allocate<unsigned>(1);
    int *bins = program_allocate<int>(BINS);
    std::vector<unsigned> expected(in);
    with_scratch([&](void *s, size_t &n) { return cub::DeviceRadixSort::SortKeys(s, n, device_in, out, count); });
    std::sort(expected.begin(), expected.end());
    long errors = program_compare(program_download(out, count), expected);
    with_scratch([&](void *s, size_t &n) { return cub::DeviceScan::ExclusiveSum(s, n, device_in, out, count); });
    for (int i = 0, sum = 0; i < count; sum += in[i++])
        expected[i] = sum;
    errors += program_compare(program_download(out, count), expected);
    with_scratch([&](void *s, size_t &n) {
        return cub::DeviceHistogram::HistogramEven(s, n, device_in, bins, BINS + 1, 0u, (unsigned)BINS, count);
    });
    std::vector<int> expected_bins(BINS);
    for (unsigned x : in)
        expected_bins[x]++;
    errors += program_compare(program_download(bins, BINS), expected_bins);
    with_scratch([&](void *s, size_t &n) { return cub::DeviceSelect::If(s, n, device_in, out, kept, count, Odd()); });
    expected.clear();
    std::copy_if(in.begin(), in.end(), std::back_inserter(expected), Odd());
    errors += program_download(kept, 1)[0] != expected.size();
    errors += program_compare(program_download(out, expected.size()), expected);
    with_scratch([&](void *s, size_t &n) { return cub::DeviceReduce::Max(s, n, device_in, kept, count); });
    errors += program_download(kept, 1)[0] != *std::max_element(in.begin(), in.end());
    program_free(out, kept, bins);
    return errors;
}

int main(int argc, char **argv)
{
    long blocks = 3, repeats = 1;
    program_arguments(argc, argv, {{"blocks", &blocks, 1, 1 << 16}, {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned> in = program_numbers<unsigned>(blocks * THREADS * ITEMS, 0, BINS - 1, 1);
    unsigned *device_in = program_upload(in);
    long errors = 0;
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        errors += check_blocks(in, device_in) + check_device(in, device_in);
    program_stop(start);
    program_free(device_in);
    return program_result("cub", errors);
}
