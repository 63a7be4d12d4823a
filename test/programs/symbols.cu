// SPDX-License-Identifier: MIT
// Module variables of several kinds, which the host reads and writes by symbol, offset and address.
#include "program.h"

enum { ENTRIES = 256, VISIT_STRIDE = 256 };

struct settings {
    unsigned factor;
    short shift[2];
    const unsigned *input;
};

__device__ unsigned table[ENTRIES];
__device__ struct settings settings = {7, {3, -3}, nullptr};
__device__ unsigned primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ unsigned long long visits;
static __device__ char tag = 'm';

__global__ void look_up(unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned value = settings.input[i];
    out[i] = table[value % ENTRIES] * settings.factor + primes[value % 8] + settings.shift[i & 1] +
             tag;
    if (i % VISIT_STRIDE == 0)
        atomicAdd(&visits, 1);
}

// Halves the table from its own address, so that the first kernel finds what this one left.
__global__ void halve(unsigned *entries)
{
    entries[threadIdx.x] /= 2;
}

static void set_symbols(const unsigned *device_in, const std::vector<unsigned> &entries)
{
    void *address;
    size_t size;
    unsigned factor = 9, prime = 23;
    CUDA_TRY(cudaGetSymbolSize(&size, table));
    CUDA_TRY(cudaGetSymbolAddress(&address, table));
    CUDA_TRY(cudaMemcpyToSymbol(table, entries.data(), size));
    halve<<<1, ENTRIES>>>((unsigned *)address);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaMemcpyToSymbol(settings, &factor, sizeof factor));
    CUDA_TRY(cudaMemcpyToSymbol(settings, &device_in, sizeof device_in,
                                offsetof(struct settings, input)));
    CUDA_TRY(cudaMemcpyToSymbol(primes, &prime, sizeof prime, 3 * sizeof prime));
}

static unsigned reference(const std::vector<unsigned> &entries, unsigned value, size_t i)
{
    static const unsigned numbers[8] = {2, 3, 5, 23, 11, 13, 17, 19};
    return entries[value % ENTRIES] / 2 * 9 + numbers[value % 8] + (i & 1 ? -3 : 3) + 'm';
}

int main(int argc, char **argv)
{
    long n = 3000, repeats = 2;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1);
    std::vector<unsigned> entries = program_numbers<unsigned>(ENTRIES, 0, 1 << 30, 2);
    unsigned *device_in = program_upload(in), *device_out = program_allocate<unsigned>(n);
    set_symbols(device_in, entries);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        look_up<<<program_blocks(n, 128), 128>>>(device_out, n);
    program_stop(start);

    unsigned long long visited;
    unsigned last_entry;
    CUDA_TRY(cudaMemcpyFromSymbol(&visited, visits, sizeof visited));
    CUDA_TRY(cudaMemcpyFromSymbol(&last_entry, table, sizeof last_entry,
                                  (ENTRIES - 1) * sizeof last_entry));
    std::vector<unsigned> out = program_download(device_out, n);
    program_free(device_in, device_out);
    unsigned long long expected_visits = repeats * (long)program_blocks(n, VISIT_STRIDE);
    long errors = program_wrong(0, visited, expected_visits) +
                  program_wrong(1, last_entry, entries[ENTRIES - 1] / 2);
    for (size_t i : program_sample(n, 1 << 20))
        errors += program_wrong(i, out[i], reference(entries, in[i], i));
    return program_result("symbols", errors);
}
