// SPDX-License-Identifier: MIT
// Kernels that kernels launch under --mode=check, each case in a program of its own: see check_cases.cuh.
#include "check_cases.cuh"

__global__ void add(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += 1;
}

struct list {
    float *values;
    int n;
};

__global__ void add_list(struct list *l)
{
    l->values[l->n - 1 - threadIdx.x] += 1;
}

__device__ __noinline__ float *at(float *x, int i)
{
    return x + i;
}

__global__ void by_function(float *x, int i)
{
    *at(x, i) = 1;
}

// Each half launches itself for its halves.
__global__ void halves(float *x, int n, int bad)
{
    if (n == 1) {
        x[bad] = 1;
        return;
    }
    halves<<<1, 1>>>(x, n / 2, 0);
    halves<<<1, 1>>>(x + n / 2, n - n / 2, bad);
}

__global__ void launch_add(float *x, int n)
{
    if (!threadIdx.x)
        add<<<3, 128>>>(x, n);
}

__global__ void launch_list(struct list *l)
{
    add_list<<<1, 32>>>(l);
}

__global__ void launch_function(float *x, int i)
{
    by_function<<<1, 1>>>(x, i);
}

__device__ __noinline__ void launch(float *x, int n)
{
    add<<<3, 128>>>(x, n);
}

__global__ void launch_in_function(float *x, int n)
{
    launch(x, n);
}

// The parent itself is wrong, and its child is not.
__global__ void parent(float *x, int i)
{
    add<<<2, 128>>>(x, 256);
    x[i] = 2;
}

__global__ void chosen(float *x, int n, int which)
{
    auto kernel = which ? add : by_function;
    kernel<<<1, 1>>>(x, n);
}

static float total(float *x, int n)
{
    float *host = new float[n], sum = 0;
    NEED(cudaMemcpy(host, x, n * sizeof *x, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        sum += host[i];
    delete[] host;
    return sum;
}

// What the children have written is right, whatever is left out.
static void expect(float *x, int n, float sum)
{
    if (total(x, n) != sum) {
        printf("the sum is %f\n", total(x, n));
        exit(2);
    }
}

static void parameter(bool bad)
{
    float *x = take<float>(256);
    launch_add<<<1, 32>>>(x, 256 + bad);
    wait();
    expect(x, 256, 256);
}

static void loaded(bool bad)
{
    struct list *l = take<struct list>(1), host = {take<float>(32 - bad), 32};
    NEED(cudaMemcpy(l, &host, sizeof host, cudaMemcpyHostToDevice));
    launch_list<<<1, 1>>>(l);
    wait();
    expect(host.values, 32 - bad, 32 - bad);
}

static void freed(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    if (bad)
        NEED(cudaFree(x));
    launch_add<<<1, 32>>>(bad ? x : spare, 256);
    wait();
}

static void null(bool bad)
{
    float *x = take<float>(256);
    launch_add<<<1, 32>>>(bad ? nullptr : x, 256);
    wait();
}

static void function(bool bad)
{
    float *x = take<float>(256);
    launch_function<<<1, 1>>>(x, 255 + bad);
    wait();
    expect(x, 256, !bad);
}

static void in_function(bool bad)
{
    float *x = take<float>(256);
    launch_in_function<<<1, 1>>>(x, 256 + bad);
    wait();
    expect(x, 256, 256);
}

static void nested(bool bad)
{
    float *x = take<float>(8);
    halves<<<1, 1>>>(x, 8, bad);
    wait();
    expect(x, 8, 8 - bad);
}

static void of_parent(bool bad)
{
    float *x = take<float>(256);
    parent<<<1, 1>>>(x, 255 + bad);
    wait();
}

static void choice(bool bad)
{
    float *x = take<float>(256);
    chosen<<<1, 1>>>(x, 1, 1);
    chosen<<<1, 1>>>(x, 255 + bad, 0);
    wait();
}

static const struct check_case cases[] = {
    {"parameter", parameter, "heap-buffer-overflow add"},
    {"loaded", loaded, "heap-buffer-overflow add_list"},
    {"freed", freed, "heap-use-after-free add"},
    {"null", null, "null-dereference add"},
    {"function", function, "heap-buffer-overflow by_function"},
    {"in_function", in_function, "heap-buffer-overflow add"},
    {"nested", nested, "heap-buffer-overflow halves"},
    {"of_parent", of_parent, "heap-buffer-overflow parent"},
    {"choice", choice, "heap-buffer-overflow by_function"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
