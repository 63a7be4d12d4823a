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
};

enum copy_source {
    COPY_AT_ONCE,   // what is pageable is read before the call returns
    COPY_IN_CALL,   // everything is
    COPY_IN_ORDER,  // read when the stream comes to it
};

struct copy_job {
    struct copy_side dst, src;
    size_t width, height, depth;  // bytes of a row, rows, slices; one 0: nothing to do
    unsigned element;             // memset: bytes of the value; 0: a copy
    uint32_t value;
    enum copy_source source;
    char *staged;  // the rows, packed; owned
};

// Looks at both sides: CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE.
CUresult copy_run_check(struct copy_job *j);
// Puts a job that was checked into a stream, or does it at once where nobody can tell. async: the caller does not
// wait, as far as the memory allows.
CUresult copy_run_submit(const struct copy_job *j, struct CUstream_st *s, bool async);
// stream_get, check and submit.
CUresult copy_run(struct copy_job *j, CUstream stream, bool per_thread, bool async);

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
