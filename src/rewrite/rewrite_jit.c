// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_jit.h"

#include <errno.h>
#include <sched.h>
#include <xxhash.h>

enum { SPLITS = 13000, MOST_THREADS = 16 };  // the oldest driver that knows CU_JIT_SPLIT_COMPILE

enum kind { STEERS, STAYS, CANNOT };

static enum kind kind_of(CUjit_option option)
{
    switch ((int)option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_FAST_COMPILE:
    case CU_JIT_FTZ:
    case CU_JIT_PREC_DIV:
    case CU_JIT_PREC_SQRT:
    case CU_JIT_FMA:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
    case CU_JIT_SPLIT_COMPILE: return STEERS;
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_NEW_SM3X_OPT:
    case CU_JIT_REFERENCED_KERNEL_NAMES:
    case CU_JIT_REFERENCED_KERNEL_COUNT:
    case CU_JIT_REFERENCED_VARIABLE_NAMES:
    case CU_JIT_REFERENCED_VARIABLE_COUNT:
    case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES: return STAYS;
    default: return CANNOT;
    }
}

static void add(struct rewrite_jit *j, CUjit_option option, void *value)
{
    j->options[j->count] = option;
    j->values[j->count++] = value;
}

int rewrite_jit_take(struct rewrite_jit *j, const struct rewrite_options *from)
{
    j->count = 0;
    j->sum = 0;
    j->log[0] = 0;
    if (from->count && (!from->options || !from->values))
        return -ENOTSUP;
    for (unsigned i = 0; i < from->count; i++) {
        enum kind kind = kind_of(from->options[i]);
        if (kind == CANNOT || (kind == STEERS && j->count == REWRITE_JIT_MOST - 3))
            return -ENOTSUP;
        if (kind == STEERS)
            add(j, from->options[i], from->values[i]);
    }
    if (j->count) {
        uint64_t sum = XXH3_64bits(j->options, j->count * sizeof *j->options);
        sum = XXH3_64bits_withSeed(j->values, j->count * sizeof *j->values, sum);
        j->sum = sum ? sum : 1;
    }
    add(j, CU_JIT_ERROR_LOG_BUFFER, j->log);
    add(j, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)sizeof j->log);
    return 0;
}

void rewrite_jit_copy(struct rewrite_jit *to, const struct rewrite_jit *from)
{
    *to = *from;
    for (unsigned i = 0; i < to->count; i++)
        if (to->options[i] == CU_JIT_ERROR_LOG_BUFFER)
            to->values[i] = to->log;
        else if (to->options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            to->values[i] = (void *)(uintptr_t)sizeof to->log;
}

bool rewrite_jit_threads(struct rewrite_jit *j, int driver)
{
    cpu_set_t cpus;
    unsigned n = sched_getaffinity(0, sizeof cpus, &cpus) ? MOST_THREADS : (unsigned)CPU_COUNT(&cpus);
    n = n < MOST_THREADS ? n : MOST_THREADS;
    if (driver < SPLITS || n < 2 || j->count == REWRITE_JIT_MOST)
        return false;
    for (unsigned i = 0; i < j->count; i++)
        if (j->options[i] == CU_JIT_SPLIT_COMPILE)
            return false;
    add(j, CU_JIT_SPLIT_COMPILE, (void *)(uintptr_t)n);
    return true;
}

// CU_JIT_THREADS_PER_BLOCK limits the registers too: the driver accepts only one of the two options.
bool rewrite_jit_limit(CUjit_option *options, void **values, unsigned *count, unsigned most,
                       unsigned registers)
{
    for (unsigned i = 0; i < *count; i++) {
        if (options[i] == CU_JIT_THREADS_PER_BLOCK)
            return true;
        if (options[i] != CU_JIT_MAX_REGISTERS)
            continue;
        if ((uintptr_t)values[i] > registers)
            values[i] = (void *)(uintptr_t)registers;
        return true;
    }
    if (*count == most)
        return false;
    options[*count] = CU_JIT_MAX_REGISTERS;
    values[(*count)++] = (void *)(uintptr_t)registers;
    return true;
}
