// SPDX-License-Identifier: MIT
// The words of CUDA that device code needs, for clang without a CUDA toolkit: clang -x cuda -nocudainc
// -include.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

#define CUDA_VECTOR(name, sreg)                                                                              \
    static const struct name##_t {                                                                           \
        __declspec(property(get = get_x)) unsigned x;                                                        \
        __declspec(property(get = get_y)) unsigned y;                                                        \
        static __device__ unsigned get_x() { return __nvvm_read_ptx_sreg_##sreg##_x(); }                     \
        static __device__ unsigned get_y() { return __nvvm_read_ptx_sreg_##sreg##_y(); }                     \
    } name = {};
CUDA_VECTOR(threadIdx, tid)
CUDA_VECTOR(blockIdx, ctaid)
CUDA_VECTOR(blockDim, ntid)
#undef CUDA_VECTOR
