// SPDX-License-Identifier: MIT
// Objects with virtual functions made by new in one kernel, used in a second, deleted in a third.
#include "program.h"

class shape {
public:
    __host__ __device__ virtual ~shape() {}
    __host__ __device__ virtual int area(int scale) const = 0;
};

class rectangle : public shape {
public:
    __host__ __device__ rectangle(int width, int height) : width(width), height(height) {}
    __host__ __device__ int area(int scale) const override
    {
        return width * scale * height * scale;
    }

private:
    int width, height;
};

class square : public rectangle {
public:
    __host__ __device__ explicit square(int side) : rectangle(side, side) {}
};

class polygon : public shape {
public:
    __host__ __device__ explicit polygon(int sides) : sides(sides)
    {
        for (int i = 0; i < sides; i++)
            triangles[i] = i + 1;
    }
    __host__ __device__ int area(int scale) const override
    {
        int sum = 0;
        for (int i = 0; i < sides; i++)
            sum += triangles[i] * scale * scale;
        return sum;
    }

private:
    int sides, triangles[6];
};

__host__ __device__ shape *make(int i)
{
    switch (i % 3) {
    case 0:
        return new square(i % 10);
    case 1:
        return new rectangle(i % 7, i % 5);
    default:
        return new polygon(i % 6 + 1);
    }
}

__global__ void make_all(shape **shapes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        shapes[i] = make(i);
}

__global__ void measure_all(int *areas, shape *const *shapes, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int sum = 0;
    for (int round = 0; round < rounds; round++)
        sum += shapes[i]->area(round % 8);
    areas[i] = sum;
}

__global__ void delete_all(shape **shapes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        delete shapes[i];
}

static int reference(int i, int rounds)
{
    shape *shape = make(i);
    int sum = 0;
    for (int round = 0; round < rounds; round++)
        sum += shape->area(round % 8);
    delete shape;
    return sum;
}

int main(int argc, char **argv)
{
    long n = 300, rounds = 8;
    program_arguments(argc, argv, {{"objects", &n, 1, 1 << 22}, {"rounds", &rounds, 1, 20000}});
    CUDA_TRY(cudaDeviceSetLimit(cudaLimitMallocHeapSize, std::max(8L << 20, n * 256)));
    shape **shapes = program_allocate<shape *>(n);
    int *device_areas = program_allocate<int>(n);

    unsigned blocks = program_blocks(n, 128);
    double start = program_start();
    make_all<<<blocks, 128>>>(shapes, n);
    measure_all<<<blocks, 128>>>(device_areas, shapes, n, rounds);
    delete_all<<<blocks, 128>>>(shapes, n);
    program_stop(start);

    std::vector<int> areas = program_download(device_areas, n);
    program_free(shapes, device_areas);
    long errors = 0;
    for (size_t i : program_sample(n, 1 + 1000000 / rounds))
        errors += program_wrong(i, areas[i], reference(i, rounds));
    return program_result("virtual_calls", errors);
}
