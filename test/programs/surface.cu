// SPDX-License-Identifier: MIT
// A surface object over a CUDA array that kernels read and write, copied in and out by rows.
#include "program.h"

__global__ void fold(cudaSurfaceObject_t surface, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    uint2 texel;
    surf2Dread(&texel, surface, x * (int)sizeof texel, y);
    surf2Dwrite(make_uint2(texel.y, texel.x + texel.y), surface, x * (int)sizeof texel, y);
}

static cudaSurfaceObject_t make_surface(cudaArray_t array)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    CUDA_TRY(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
}

int main(int argc, char **argv)
{
    long width = 50, height = 40, steps = 3;
    program_arguments(argc, argv, {{"width", &width, 1, 16384}, {"height", &height, 1, 16384},
                                   {"steps", &steps, 1, 100000}});
    std::vector<unsigned> in = program_numbers<unsigned>(2 * width * height, 0, 1000, 1),
                          out(in.size());
    size_t pitch = width * sizeof(uint2);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uint2>();
    cudaArray_t array;
    CUDA_TRY(cudaMallocArray(&array, &format, width, height, cudaArraySurfaceLoadStore));
    CUDA_TRY(cudaMemcpy2DToArray(array, 0, 0, in.data(), pitch, pitch, height,
                                 cudaMemcpyHostToDevice));
    cudaSurfaceObject_t surface = make_surface(array);

    dim3 block(16, 16), grid(program_blocks(width, 16), program_blocks(height, 16));
    double start = program_start();
    for (long step = 0; step < steps; step++)
        fold<<<grid, block>>>(surface, width, height);
    program_stop(start);

    CUDA_TRY(cudaMemcpy2DFromArray(out.data(), pitch, array, 0, 0, pitch, height,
                                   cudaMemcpyDeviceToHost));
    CUDA_TRY(cudaDestroySurfaceObject(surface));
    CUDA_TRY(cudaFreeArray(array));
    // The step is linear modulo 2^32: what it makes of (1, 0) and (0, 1) determines every texel.
    uint2 by_x = {1, 0}, by_y = {0, 1};
    for (long step = 0; step < steps; step++) {
        by_x = make_uint2(by_x.y, by_x.x + by_x.y);
        by_y = make_uint2(by_y.y, by_y.x + by_y.y);
    }
    long errors = 0;
    for (size_t i : program_sample(out.size(), 1 << 20)) {
        unsigned x = in[i & ~(size_t)1], y = in[i | 1];
        unsigned expected = i & 1 ? x * by_x.y + y * by_y.y : x * by_x.x + y * by_y.x;
        errors += program_wrong(i, out[i], expected);
    }
    return program_result("surface", errors);
}
