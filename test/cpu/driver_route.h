// SPDX-License-Identifier: MIT
// Runs the suite's programs on the driver API alone: the functions of the CUDA runtime that nvcc's host code
// calls, implemented with driver calls, without a runtime in the program. Link a program's object with those
// of driver_route*.cpp, -cudart none and -lcuda; it runs on any libcuda. Where the driver has several calls
// for one thing, this uses others than our runtime does (a context of its own, modules), and the number in
// DRIVER_ROUTE chooses among them: each of load_forms and of launch_forms is used by some value, and the
// launches of a program take turns.
#ifndef DRIVER_ROUTE_H
#define DRIVER_ROUTE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

extern CUcontext route_context;
extern unsigned long route_way;  // DRIVER_ROUTE

CUresult route_enter();  // ensures that a context exists and is current
cudaError_t route_done(CUresult result);
CUresult route_kernel(const void *host, CUfunction *function);
CUresult route_variable(const void *host, CUdeviceptr *address, size_t *size);

#define ROUTE_TRY(call)            \
    do {                           \
        CUresult route_r = (call); \
        if (route_r)               \
            return route_r;        \
    } while (0)

#define MAP(name, parameters, call)                  \
    extern "C" cudaError_t name parameters           \
    {                                                \
        CUresult result = route_enter();             \
        return route_done(result ? result : (call)); \
    }

static inline CUdeviceptr route_at(const void *pointer)
{
    return (CUdeviceptr)pointer;
}

#endif
