// SPDX-License-Identifier: MIT
// Texture objects: a filtered 2D one over a CUDA array, and one over linear memory, by index.
#include "program.h"

// Half-way between texels the filter's weights are exactly a quarter each.
__global__ void smooth(float *out, cudaTextureObject_t image, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        out[y * width + x] = tex2D<float>(image, x + 1.0f, y + 1.0f);
}

__global__ void reverse(int *out, cudaTextureObject_t numbers, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1Dfetch<int>(numbers, n - 1 - i);
}

static cudaTextureObject_t make_image(cudaArray_t array)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description = {};
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    description.filterMode = cudaFilterModeLinear;
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    CUDA_TRY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    return texture;
}

static cudaTextureObject_t make_numbers(int *device, long n)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = n * sizeof(int);
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    CUDA_TRY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    return texture;
}

static long check_image(const std::vector<float> &out, const std::vector<float> &in, long width,
                        long height)
{
    long errors = 0;
    for (size_t i : program_sample(out.size(), 1 << 20)) {
        long x = i % width, y = i / width;
        long right = std::min(x + 1, width - 1), below = std::min(y + 1, height - 1);
        float sum = in[y * width + x] + in[y * width + right] + in[below * width + x] +
                    in[below * width + right];
        // Texels are whole and below 1000: a wrong one is off by 0.25, more than the tolerance.
        errors += program_wrong(i, out[i], sum / 4, 1e-4);
    }
    return errors;
}

int main(int argc, char **argv)
{
    long width = 60, height = 50, repeats = 1;
    program_arguments(argc, argv, {{"width", &width, 1, 16384}, {"height", &height, 1, 16384},
                                   {"repeats", &repeats, 1, 100000}});
    long n = std::min(width * height, 1L << 26);
    std::vector<float> in = program_numbers<float>(width * height, 0, 999, 1);
    std::vector<int> numbers = program_numbers<int>(n, 0, 1 << 30, 2), mirrored(numbers);
    std::reverse(mirrored.begin(), mirrored.end());
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CUDA_TRY(cudaMallocArray(&array, &format, width, height));
    CUDA_TRY(cudaMemcpy2DToArray(array, 0, 0, in.data(), width * sizeof(float),
                                 width * sizeof(float), height, cudaMemcpyHostToDevice));
    int *device_numbers = program_upload(numbers), *reversed = program_allocate<int>(n);
    float *smoothed = program_allocate<float>(width * height);
    cudaTextureObject_t image = make_image(array), line = make_numbers(device_numbers, n);

    dim3 block(16, 16), grid(program_blocks(width, 16), program_blocks(height, 16));
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        smooth<<<grid, block>>>(smoothed, image, width, height);
        reverse<<<program_blocks(n, 256), 256>>>(reversed, line, n);
    }
    program_stop(start);

    long errors = check_image(program_download(smoothed, width * height), in, width, height) +
                  program_compare(program_download(reversed, n), mirrored);
    CUDA_TRY(cudaDestroyTextureObject(image));
    CUDA_TRY(cudaDestroyTextureObject(line));
    CUDA_TRY(cudaFreeArray(array));
    program_free(device_numbers, reversed, smoothed);
    return program_result("texture", errors);
}
