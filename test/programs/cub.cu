// SPDX-License-Identifier: MIT
// CUB: device-wide radix sort, scan, histogram, selection, run lengths; and a block's collectives in a kernel
// of ours.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

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

// Everything that is computed on the device.
struct Results {
    unsigned *sorted_blocks, *block_sums, *sorted, *sums, *odd, *kept, *most;
    int *bins;
};

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

static void compute(const Results &r, const unsigned *in, int count)
{
    sort_blocks<<<count / (THREADS * ITEMS), THREADS>>>(r.sorted_blocks, r.block_sums, in);
    with_scratch(
        [&](void *s, size_t &n) { return cub::DeviceRadixSort::SortKeys(s, n, in, r.sorted, count); });
    with_scratch([&](void *s, size_t &n) { return cub::DeviceScan::ExclusiveSum(s, n, in, r.sums, count); });
    with_scratch([&](void *s, size_t &n) {
        return cub::DeviceHistogram::HistogramEven(s, n, in, r.bins, BINS + 1, 0u, (unsigned)BINS, count);
    });
    with_scratch(
        [&](void *s, size_t &n) { return cub::DeviceSelect::If(s, n, in, r.odd, r.kept, count, Odd()); });
    with_scratch([&](void *s, size_t &n) { return cub::DeviceReduce::Max(s, n, in, r.most, count); });
}

static long check_blocks(const Results &r, const std::vector<unsigned> &in)
{
    std::vector<unsigned> sorted(in), sums(in.size());
    for (size_t i = 0; i < in.size(); i += THREADS * ITEMS) {
        std::sort(&sorted[i], &sorted[i] + THREADS * ITEMS);
        for (size_t k = 0; k < THREADS * ITEMS; k++)
            sums[i + k] = sorted[i + k] + (k ? sums[i + k - 1] : 0);
    }
    return program_compare(program_download(r.sorted_blocks, in.size()), sorted) +
           program_compare(program_download(r.block_sums, in.size()), sums);
}

static long check_device(const Results &r, const std::vector<unsigned> &in)
{
    std::vector<unsigned> sorted(in), sums, odd;
    std::vector<int> bins(BINS);
    unsigned sum = 0;
    std::sort(sorted.begin(), sorted.end());
    for (unsigned x : in) {
        sums.push_back(sum);
        sum += x;
        bins[x]++;
    }
    std::copy_if(in.begin(), in.end(), std::back_inserter(odd), Odd());
    long errors = program_compare(program_download(r.sorted, in.size()), sorted);
    errors += program_compare(program_download(r.sums, in.size()), sums);
    errors += program_compare(program_download(r.bins, BINS), bins);
    errors += program_download(r.kept, 1)[0] != odd.size();
    errors += program_compare(program_download(r.odd, odd.size()), odd);
    return errors + (program_download(r.most, 1)[0] != sorted.back());
}

int main(int argc, char **argv)
{
    long blocks = 3, repeats = 1;
    program_arguments(argc, argv, {{"blocks", &blocks, 1, 1 << 16}, {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned> in = program_numbers<unsigned>(blocks * THREADS * ITEMS, 0, BINS - 1, 1);
    size_t count = in.size();
    unsigned *device_in = program_upload(in);
    Results r = {program_allocate<unsigned>(count), program_allocate<unsigned>(count),
                 program_allocate<unsigned>(count), program_allocate<unsigned>(count),
                 program_allocate<unsigned>(count), program_allocate<unsigned>(1),
                 program_allocate<unsigned>(1),     program_allocate<int>(BINS)};
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        compute(r, device_in, (int)count);
    program_stop(start);
    long errors = check_blocks(r, in) + check_device(r, in);
    program_free(device_in, r.sorted_blocks, r.block_sums, r.sorted, r.sums, r.odd, r.kept, r.most, r.bins);
    return program_result("cub", errors);
}
