// SPDX-License-Identifier: MIT
//
// Copies and fills in every shape. What differs between a call, its _ptds twin and its asynchronous form is
// when and where the work happens, not what it is: struct rt_copy_how.
#ifndef MOAT_RUNTIME_RT_COPY_H
#define MOAT_RUNTIME_RT_COPY_H

#include "runtime/rt.h"

struct rt_copy_how {
    bool async;       // the driver's asynchronous form
    bool wait;        // and then until it is done
    CUstream stream;  // with async
};

#define RT_COPY_SYNC ((struct rt_copy_how){false, false, NULL})
#define RT_COPY_SYNC_OWN ((struct rt_copy_how){true, true, CU_STREAM_PER_THREAD})
#define RT_COPY_ASYNC(stream) ((struct rt_copy_how){true, false, stream})

// None of these sets the last error. After rt_enter.
cudaError_t rt_copy_bytes(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                          struct rt_copy_how how);
cudaError_t rt_copy_plane(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                          size_t height, cudaMemcpyKind kind, struct rt_copy_how how);
cudaError_t rt_copy_volume(const CUDA_MEMCPY3D *copy, struct rt_copy_how how);

// CU_MEMORYTYPE_* of one side of a copy; the kind is valid.
CUmemorytype rt_copy_source_type(cudaMemcpyKind kind);
CUmemorytype rt_copy_target_type(cudaMemcpyKind kind);
bool rt_copy_kind_valid(cudaMemcpyKind kind);

// A copy in one dimension.
cudaError_t rt_copy_line(CUDA_MEMCPY3D *to, void *dst, const void *src, size_t size, cudaMemcpyKind kind);

// The address of part of a variable, if it has that many bytes and the kind suits it.
cudaError_t rt_copy_symbol(const void *symbol, size_t offset, size_t size, void **address);

// A synchronous copy and its twin for the thread's own stream; `call` uses how.
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

// An asynchronous one and its twin; the parameters have a stream.
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
