// SPDX-License-Identifier: MIT
// Loads and stores of every width, from signed bytes to 16-byte vectors, some with cache hints.
#include "program.h"

struct columns {
    uchar4 *bytes;
    short2 *shorts;
    float4 *floats;
    double2 *doubles;
    longlong2 *longs;
    signed char *signs;
};

__global__ void spread(struct columns out, const int *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int value = __ldg(&in[i]), next = __ldcg(&in[n - 1 - i]);
    out.bytes[i] = make_uchar4(value, value >> 8, next, next >> 8);
    out.shorts[i] = make_short2(value, -next);
    __stcs(&out.floats[i], make_float4(value, next, value - next, 0.5f));
    out.doubles[i] = make_double2(value / 2.0, next * 3.0);
    out.longs[i] = make_longlong2((long long)value << 32, -next);
    out.signs[i] = value;
}

__global__ void gather(long long *sums, struct columns in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uchar4 bytes = in.bytes[i];
    short2 shorts = in.shorts[i];
    float4 floats = __ldcs(&in.floats[i]);
    double2 doubles = in.doubles[i];
    longlong2 longs = in.longs[i];
    sums[i] = bytes.x + 3 * bytes.y + 5 * bytes.z + 7 * bytes.w + 11 * shorts.x + 13 * shorts.y +
              (long long)(floats.x + floats.y * 17 + floats.z + floats.w * 2) +
              (long long)(doubles.x * 2 + doubles.y) + (longs.x >> 32) + longs.y + in.signs[i];
}

static long long reference(int value, int next)
{
    long long bytes = (value & 255) + 3 * (value >> 8) + 5 * (next & 255) + 7 * (next >> 8);
    long long numbers = 11 * value - 13 * next + value + 17 * next + value - next + 1;
    return bytes + numbers + value + 3 * next + value - next + (signed char)value;
}

int main(int argc, char **argv)
{
    long n = 2500, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 26}, {"repeats", &repeats, 1, 100000}});
    std::vector<int> in = program_numbers<int>(n, 0, 32767, 1);
    int *device_in = program_upload(in);
    long long *sums = program_allocate<long long>(n);
    struct columns columns = {program_allocate<uchar4>(n),      program_allocate<short2>(n),
                              program_allocate<float4>(n),      program_allocate<double2>(n),
                              program_allocate<longlong2>(n),   program_allocate<signed char>(n)};

    unsigned blocks = program_blocks(n, 256);
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        spread<<<blocks, 256>>>(columns, device_in, n);
        gather<<<blocks, 256>>>(sums, columns, n);
    }
    program_stop(start);

    std::vector<long long> out = program_download(sums, n);
    program_free(device_in, sums, columns.bytes, columns.shorts, columns.floats, columns.doubles,
                 columns.longs, columns.signs);
    long errors = 0;
    for (size_t i : program_sample(n, 1 << 20))
        errors += program_wrong(i, out[i], reference(in[i], in[n - 1 - i]));
    return program_result("vector_access", errors);
}
