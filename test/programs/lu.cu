// SPDX-License-Identifier: MIT
// LU factorisation in place, in double precision: two dependent launches for each column.
#include "program.h"

__global__ void divide_column(double *a, int n, int k)
{
    int row = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n)
        a[row * n + k] /= a[k * n + k];
}

__global__ void update_rest(double *a, int n, int k)
{
    int row = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    int column = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && column < n)
        a[row * n + column] -= a[row * n + k] * a[k * n + column];
}

static void factor(double *a, int n)
{
    dim3 block(32, 8);
    for (int k = 0; k < n - 1; k++) {
        int rest = n - k - 1;
        divide_column<<<program_blocks(rest, 128), 128>>>(a, n, k);
        update_rest<<<dim3(program_blocks(rest, 32), program_blocks(rest, 8)), block>>>(a, n, k);
    }
}

// An entry of L times U, where L has ones on its diagonal.
static double product_entry(const double *lu, int n, int row, int column)
{
    double sum = row <= column ? lu[row * n + column] : 0;
    for (int k = 0; k < row && k <= column; k++)
        sum += lu[row * n + k] * lu[k * n + column];
    return sum;
}

int main(int argc, char **argv)
{
    long n = 24, repeats = 1;
    program_arguments(argc, argv, {{"side", &n, 1, 8192}, {"repeats", &repeats, 1, 10000}});
    std::vector<double> a = program_numbers<double>(n * n, -9, 9, 1);
    for (long i = 0; i < n; i++)
        a[i * n + i] = 10.0 * n; // dominant: no pivoting is needed
    double *device_a = program_upload(a), *lu = program_allocate<double>(n * n);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemcpy(lu, device_a, n * n * sizeof *lu, cudaMemcpyDeviceToDevice));
        factor(lu, n);
    }
    program_stop(start);

    // The backward error is at most n * 2^-53 * |L||U|. Dominance keeps L near 1/n off the diagonal
    // and so |L||U| below 20: 2e-11 for n = 8192, and the check's own sum may add the same.
    std::vector<double> out = program_download(lu, n * n);
    program_free(device_a, lu);
    long errors = 0;
    for (size_t i : program_sample(n * n, 4096))
        errors += program_wrong(i, product_entry(out.data(), n, i / n, i % n), a[i], 1e-10);
    return program_result("lu", errors);
}
