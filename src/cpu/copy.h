// SPDX-License-Identifier: MIT
// One description of every copy and memset: rows of bytes in slices, from one place to another.
#ifndef MOAT_CPU_COPY_H
#define MOAT_CPU_COPY_H

#include "cpu/cpu.h"
#include "cpu/memory.h"

struct copy_side {
    uint64_t at;          // address of the first byte
    size_t pitch, slice;  // bytes from row to row, from slice to slice
    bool known;           // must lie in an allocation
    enum memory_where where;
    struct CUarray_st *array;  // NULL, or the array it is part of, with
    size_t x, y, z;            // the position in it, x in bytes
};

enum copy_source {
    COPY_AT_ONCE,   // pageable memory is read before the call returns
    COPY_IN_CALL,   // all memory is read before the call returns
    COPY_IN_ORDER,  // read when the stream reaches the copy
};

enum copy_when {
    COPY_NOW,
    COPY_PLANNED,   // by a node of a graph: memory that a graph will have allocated by then is valid, too
    COPY_CAPTURED,  // the same, and a memset is not checked before it runs, as with an H200's driver
};

struct copy_job {
    struct copy_side dst, src;
    size_t width, height, depth;  // bytes of a row, rows, slices; nothing to do if one is 0
    unsigned element;             // memset: bytes of the value; 0: a copy
    uint32_t value;
    enum copy_source source;
    char *staged;         // the rows of the source, packed; owned
    enum copy_when when;  // what it was checked for
};

// Checks both sides. Returns CUDA_SUCCESS or CUDA_ERROR_INVALID_VALUE.
CUresult copy_run_check(struct copy_job *j, enum copy_when when);
// Appends a checked job to a stream, or runs it at once where no difference can be observed. async: the
// caller does not wait, as far as the kind of memory allows.
CUresult copy_run_submit(const struct copy_job *j, struct CUstream_st *s, bool async);
// Checks a job again and runs it: for nodes of graphs, whose job was checked long before. *bad: the side that
// is wrong.
CUresult copy_run_now(const struct copy_job *j, const struct copy_side **bad);
// Gets the stream, checks the job and submits it.
CUresult copy_run(struct copy_job *j, CUstream stream, bool per_thread, bool async);

// Convert between the application's structures and jobs; the _params functions need a checked job.
CUresult copy_shape_job(const CUDA_MEMCPY3D *c, struct copy_job *j);
void copy_shape_params(const struct copy_job *j, CUDA_MEMCPY3D *out);
CUresult copy_set_job(const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct copy_job *j);
void copy_set_params(const struct copy_job *j, CUDA_MEMSET_NODE_PARAMS_v2 *out);

// Describes the rows of a job in an array. Returns CUDA_ERROR_INVALID_HANDLE if a is no array,
// CUDA_ERROR_INVALID_VALUE if the rows are outside of it.
CUresult copy_array_side(struct CUarray_st *a, size_t x, size_t y, size_t z, const struct copy_job *j,
                         struct copy_side *out);

// Defines a call and its twin for per-thread default streams; `per_thread` tells them apart in the
// expression.
#define COPY_CALL(name, suffix, parameters, ...) \
    CUresult name parameters                     \
    {                                            \
        const bool per_thread = false;           \
        return __VA_ARGS__;                      \
    }                                            \
    CUresult name##suffix parameters             \
    {                                            \
        const bool per_thread = true;            \
        return __VA_ARGS__;                      \
    }

#endif
