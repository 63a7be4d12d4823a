// SPDX-License-Identifier: MIT
// One description for every copy and memset: rows of bytes in slices, from one place to another.
#ifndef MOAT_CPU_COPY_H
#define MOAT_CPU_COPY_H

#include "cpu/cpu.h"
#include "cpu/memory.h"

struct copy_side {
    uint64_t at;          // of the first byte that is touched
    size_t pitch, slice;  // from row to row, from slice to slice
    bool known;           // must lie in an allocation
    enum memory_where where;
    struct CUarray_st *array;  // NULL, or what it is part of, with
    size_t x, y, z;            // the place in it, x in bytes
};

enum copy_source {
    COPY_AT_ONCE,   // what is pageable is read before the call returns
    COPY_IN_CALL,   // everything is
    COPY_IN_ORDER,  // read when the stream comes to it
};

enum copy_when {
    COPY_NOW,
    COPY_PLANNED,   // by a node of a graph: memory that a graph will have allocated by then is good, too
    COPY_CAPTURED,  // as that; a memset may be anywhere until it runs, as with an H200's driver
};

struct copy_job {
    struct copy_side dst, src;
    size_t width, height, depth;  // bytes of a row, rows, slices; one 0: nothing to do
    unsigned element;             // memset: bytes of the value; 0: a copy
    uint32_t value;
    enum copy_source source;
    char *staged;         // the rows, packed; owned
    enum copy_when when;  // it was checked for
};

// Looks at both sides: CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE.
CUresult copy_run_check(struct copy_job *j, enum copy_when when);
// Puts a job that was checked into a stream, or does it at once where nobody can tell. async: the caller does not
// wait, as far as the memory allows.
CUresult copy_run_submit(const struct copy_job *j, struct CUstream_st *s, bool async);
// Checks it again and does it, when nobody has looked for a while: a node of a graph. *bad: the side that is wrong.
CUresult copy_run_now(const struct copy_job *j, const struct copy_side **bad);
// stream_get, check and submit.
CUresult copy_run(struct copy_job *j, CUstream stream, bool per_thread, bool async);

// What the application's structures describe.
CUresult copy_shape_job(const CUDA_MEMCPY3D *c, struct copy_job *j);
void copy_shape_params(const struct copy_job *j,
                       CUDA_MEMCPY3D *out);  // the other way round, of a checked one
CUresult copy_set_job(const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct copy_job *j);
void copy_set_params(const struct copy_job *j, CUDA_MEMSET_NODE_PARAMS_v2 *out);

// The rows of a job in an array. CUDA_ERROR_INVALID_HANDLE: it is none; CUDA_ERROR_INVALID_VALUE: they are outside.
CUresult copy_array_side(struct CUarray_st *a, size_t x, size_t y, size_t z, const struct copy_job *j,
                         struct copy_side *out);

// A call and its twin for per-thread default streams; `per_thread` says which in the expression.
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
