// SPDX-License-Identifier: MIT
// The mathematical functions in double and single precision, against the host's library.
#include "program.h"

enum { FUNCTIONS = 12 };

template <typename T> __host__ __device__ T evaluate(int function, T x)
{
    switch (function) {
    case 0: return sin(x);
    case 1: return cos(x) + tan(x / 8);
    case 2: return exp(x / 4);
    case 3: return log(x + 1);
    case 4: return pow(x + 1, x / 10);
    case 5: return erf(x - 3);
    case 6: return tgamma(x / 4 + 1);
    case 7: return atan2(x, x + 2) + asin(x / 16);
    case 8: return sqrt(x) + cbrt(x);
    case 9: return sinh(x / 4) + tanh(x);
    case 10: return fmod(x * 7, (T)3) + floor(x) - log2(x + 2);
    default: return hypot(x, (T)3) + acos(x / 16) + exp2(x / 4);
    }
}

__global__ void evaluate_all(double *doubles, float *floats, const double *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    doubles[i] = evaluate<double>(i % FUNCTIONS, in[i]);
    floats[i] = evaluate<float>(i % FUNCTIONS, (float)in[i]);
}

int main(int argc, char **argv)
{
    long n = 2400, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 27}, {"repeats", &repeats, 1, 100000}});
    // From 0 to 16 in steps that both types hold; fmod's argument is then exact as well.
    std::vector<double> in = program_numbers<double>(n, 0, 16 << 10, 1);
    for (double &x : in)
        x = ldexp(x, -10);
    double *device_in = program_upload(in), *device_doubles = program_allocate<double>(n);
    float *device_floats = program_allocate<float>(n);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        evaluate_all<<<program_blocks(n, 128), 128>>>(device_doubles, device_floats, device_in, n);
    program_stop(start);

    // The CUDA guide allows such functions up to 10 units in the last place, 20 roundings. There
    // are at most three in a sum; single precision has its own roundings of the arguments too.
    std::vector<double> doubles = program_download(device_doubles, n);
    std::vector<float> floats = program_download(device_floats, n);
    program_free(device_in, device_doubles, device_floats);
    long errors = 0;
    for (size_t i : program_sample(n, 200000)) {
        double expected = evaluate<double>(i % FUNCTIONS, in[i]);
        errors += program_wrong(i, doubles[i], expected, ldexp(64, -53));
        errors += program_wrong<double>(i, floats[i], expected, ldexp(128, -24));
    }
    return program_result("transcendental", errors);
}
