// SPDX-License-Identifier: MIT
// Pitched 2D and 3D allocations with their copies: rows with padding that no one may touch.
#include "program.h"

template <typename T> __host__ __device__ T *row_of(cudaPitchedPtr pointer, size_t row)
{
    return (T *)((char *)pointer.ptr + row * pointer.pitch);
}

__global__ void blur(cudaPitchedPtr out, cudaPitchedPtr in, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int sum = 0;
    for (int row = max(y - 1, 0); row <= min(y + 1, height - 1); row++)
        for (int column = max(x - 1, 0); column <= min(x + 1, width - 1); column++)
            sum += row_of<unsigned char>(in, row)[column];
    row_of<unsigned char>(out, y)[x] = sum / 9;
}

// Plane z of the volume is z times the image.
__global__ void stack(cudaPitchedPtr volume, cudaPitchedPtr image, int width, int height, int depth)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    for (int z = 0; z < depth; z++)
        row_of<unsigned short>(volume, (size_t)z * height + y)[x] =
            row_of<unsigned char>(image, y)[x] * z;
}

static unsigned char reference(const unsigned char *in, long x, long y, long width, long height)
{
    int sum = 0;
    for (long row = std::max(y - 1, 0L); row <= std::min(y + 1, height - 1); row++)
        for (long column = std::max(x - 1, 0L); column <= std::min(x + 1, width - 1); column++)
            sum += in[row * width + column];
    return (unsigned char)(sum / 9);
}

static cudaPitchedPtr allocate_image(long width, long height)
{
    cudaPitchedPtr image = {};
    CUDA_TRY(cudaMallocPitch(&image.ptr, &image.pitch, width, height));
    return image;
}

static std::vector<unsigned short> download_volume(cudaPitchedPtr volume, cudaExtent extent)
{
    std::vector<unsigned short> out(extent.width / 2 * extent.height * extent.depth);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = volume;
    copy.dstPtr = make_cudaPitchedPtr(out.data(), extent.width, extent.width, extent.height);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    CUDA_TRY(cudaMemcpy3D(&copy));
    return out;
}

int main(int argc, char **argv)
{
    long width = 45, height = 30, depth = 3, repeats = 1;
    program_arguments(argc, argv, {{"width", &width, 1, 16384}, {"height", &height, 1, 16384},
                                   {"depth", &depth, 1, 64}, {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned char> in = program_numbers<unsigned char>(width * height, 0, 255, 1);
    cudaPitchedPtr image = allocate_image(width, height), blurred = allocate_image(width, height);
    cudaExtent extent = make_cudaExtent(width * sizeof(short), height, depth);
    cudaPitchedPtr volume;
    CUDA_TRY(cudaMalloc3D(&volume, extent));
    CUDA_TRY(cudaMemcpy2D(image.ptr, image.pitch, in.data(), width, width, height,
                          cudaMemcpyHostToDevice));

    dim3 block(32, 4), grid(program_blocks(width, 32), program_blocks(height, 4));
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        blur<<<grid, block>>>(blurred, image, width, height);
        stack<<<grid, block>>>(volume, blurred, width, height, depth);
    }
    program_stop(start);

    std::vector<unsigned short> out = download_volume(volume, extent);
    program_free(image.ptr, blurred.ptr, volume.ptr);
    long errors = 0, plane = width * height;
    for (size_t i : program_sample(out.size(), 200000)) {
        long z = i / plane, y = i % plane / width, x = i % width;
        int expected = reference(in.data(), x, y, width, height) * (int)z;
        errors += program_wrong<int>(i, out[i], expected);
    }
    return program_result("pitched", errors);
}
