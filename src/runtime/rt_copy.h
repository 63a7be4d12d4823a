// SPDX-License-Identifier: MIT
// Copies and memsets in every shape. A call, its _ptds twin and its asynchronous form differ in when and
// where the work happens: struct rt_copy_how.
#ifndef MOAT_RUNTIME_RT_COPY_H
#define MOAT_RUNTIME_RT_COPY_H

#include "runtime/rt.h"

struct rt_copy_how {
    bool async;       // the driver's asynchronous form
    bool wait;        // with async: waits until it is done
    CUstream stream;  // with async
};

#define RT_COPY_SYNC ((struct rt_copy_how){false, false, NULL})
#define RT_COPY_SYNC_OWN ((struct rt_copy_how){true, true, CU_STREAM_PER_THREAD})
#define RT_COPY_ASYNC(stream) ((struct rt_copy_how){true, false, stream})

// None of these sets the last error. rt_enter must have been called.
cudaError_t rt_copy_bytes(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                          struct rt_copy_how how);
cudaError_t rt_copy_plane(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                          size_t height, cudaMemcpyKind kind, struct rt_copy_how how);
cudaError_t rt_copy_volume(const CUDA_MEMCPY3D *copy, struct rt_copy_how how);

// Return the CU_MEMORYTYPE_* of one side of a copy; the kind must be valid.
CUmemorytype rt_copy_source_type(cudaMemcpyKind kind);
CUmemorytype rt_copy_target_type(cudaMemcpyKind kind);
bool rt_copy_kind_valid(cudaMemcpyKind kind);

// Describes a copy in one dimension.
cudaError_t rt_copy_line(CUDA_MEMCPY3D *to, void *dst, const void *src, size_t size, cudaMemcpyKind kind);

// Finds the address of part of a variable. Fails if the variable is smaller.
cudaError_t rt_copy_symbol(const void *symbol, size_t offset, size_t size, void **address);

// Defines a synchronous copy and its twin for the thread's own stream; `call` uses how.
#define RT_COPY_SYNC_CALLS(name, parameters, call) \
    cudaError_t name parameters                    \
    {                                              \
        struct rt_copy_how how = RT_COPY_SYNC;     \
        RT_ENTER();                                \
        return rt_return(call);                    \
    }                                              \
    cudaError_t name##_ptds parameters             \
    {                                              \
        struct rt_copy_how how = RT_COPY_SYNC_OWN; \
        RT_ENTER();                                \
        return rt_return(call);                    \
    }

// Defines an asynchronous copy and its twin; the parameters include a stream.
#define RT_COPY_ASYNC_CALLS(name, parameters, call)                    \
    cudaError_t name parameters                                        \
    {                                                                  \
        struct rt_copy_how how = RT_COPY_ASYNC(stream);                \
        RT_ENTER();                                                    \
        return rt_return(call);                                        \
    }                                                                  \
    cudaError_t name##_ptsz parameters                                 \
    {                                                                  \
        struct rt_copy_how how = RT_COPY_ASYNC(rt_own_stream(stream)); \
        RT_ENTER();                                                    \
        return rt_return(call);                                        \
    }

#endif
