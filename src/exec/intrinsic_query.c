// SPDX-License-Identifier: MIT
// The device runtime's queries: errors, the device, its limits and attributes, attributes of kernels.
#include <stddef.h>

#include "exec/control.h"
#include "exec/intrinsic.h"

// --- errors ------------------------------------------------------------------------------------------------

static const struct exec_insn *last_error(struct exec_warp *w, const struct exec_insn *i, bool clear)
{
    _Atomic int *error = &w->block->grid->child_error;
    if (!intrinsic_has_signature(w, 0, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    intrinsic_return(w, l,
                     (uint64_t)(clear ? atomic_exchange_explicit(error, 0, memory_order_relaxed)
                                      : atomic_load_explicit(error, memory_order_relaxed)));
    return control_ret(w, i);
}

static const struct exec_insn *get_last_error(struct exec_warp *w, const struct exec_insn *i)
{
    return last_error(w, i, true);
}

static const struct exec_insn *peek_at_last_error(struct exec_warp *w, const struct exec_insn *i)
{
    return last_error(w, i, false);
}

static const struct exec_insn *error_text(struct exec_warp *w, const struct exec_insn *i, bool name)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 1, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        int error = (int)intrinsic_argument(w, 0, l);
        intrinsic_return(w, l, q->children ? q->children->error_text(q->owner, error, name) : 0);
    }
    return control_ret(w, i);
}

static const struct exec_insn *get_error_name(struct exec_warp *w, const struct exec_insn *i)
{
    return error_text(w, i, true);
}

static const struct exec_insn *get_error_string(struct exec_warp *w, const struct exec_insn *i)
{
    return error_text(w, i, false);
}

// --- the device --------------------------------------------------------------------------------------------

// (to) or (to, which); writes `size` bytes to `to`.
static const struct exec_insn *query(struct exec_warp *w, const struct exec_insn *i,
                                     enum exec_question question, unsigned nparams, unsigned size)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, nparams, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        uint64_t value = 0;
        int which = nparams > 1 ? (int)intrinsic_argument(w, 1, l) : 0, error = INTRINSIC_INVALID_VALUE;
        if (q->children)
            error = q->children->ask(q->owner, question, which, &value);
        if (!error && !intrinsic_put(w, l, &value, size))
            return NULL;
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

#define ASK(name, question, nparams, size)                                              \
    static const struct exec_insn *name(struct exec_warp *w, const struct exec_insn *i) \
    {                                                                                   \
        return query(w, i, question, nparams, size);                                    \
    }
ASK(get_device, EXEC_ASK_DEVICE, 1, sizeof(int))
ASK(get_device_count, EXEC_ASK_DEVICES, 1, sizeof(int))
ASK(get_version, EXEC_ASK_VERSION, 1, sizeof(int))
ASK(get_limit, EXEC_ASK_LIMIT, 2, sizeof(uint64_t))
ASK(get_cache_config, EXEC_ASK_CACHE_CONFIG, 1, sizeof(int))
ASK(get_shared_config, EXEC_ASK_SHARED_CONFIG, 1, sizeof(int))

static const struct exec_insn *get_attribute(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 3, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        int value = 0, error = INTRINSIC_INVALID_VALUE;
        if (q->children)
            error = q->children->attribute(q->owner, (int)intrinsic_argument(w, 1, l),
                                           (int)intrinsic_argument(w, 2, l), &value);
        if (!error && !intrinsic_put(w, l, &value, sizeof value))
            return NULL;
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

// --- kernels -----------------------------------------------------------------------------------------------

// cudaFuncAttributes: three 64-bit numbers, then 32-bit numbers, each an attribute numbered as in the driver
// API; the rest is 0.
enum { WIDE_COUNT = 3, NARROW_COUNT = 13, RESERVED_COUNT = 16 };
struct attributes {
    uint64_t wide[WIDE_COUNT];
    int32_t narrow[NARROW_COUNT + RESERVED_COUNT];
};
static const uint8_t attribute_order[WIDE_COUNT + NARROW_COUNT] = {
    1,  2,  3,  // shared, constant, local bytes
    0,  4,  5,  6,  7,  8,
    9,  // threads, registers, versions of PTX and code, cache, dynamic shared bytes, carveout
    10, 11, 12, 13, 15, 14,  // clusters: size must be set, shape, policy, non-portable size allowed
};

static int describe(const struct exec_launch *q, const struct exec_kernel *k, struct attributes *to)
{
    for (unsigned n = 0; n < WIDE_COUNT + NARROW_COUNT; n++) {
        int value = 0, error = q->children->function(q->owner, k, attribute_order[n], &value);
        if (error)
            return error;
        if (n < WIDE_COUNT)
            to->wide[n] = (uint64_t)value;
        else
            to->narrow[n - WIDE_COUNT] = value;
    }
    return 0;
}

static const struct exec_insn *get_function(struct exec_warp *w, const struct exec_insn *i)
{
    enum { PIECE = 8 };
    _Static_assert(sizeof(struct attributes) % PIECE == 0, "whole pieces");
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 2, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        struct attributes a = {{0}, {0}};
        const struct exec_kernel *k = intrinsic_kernel(w, 1, l);
        int error = k && q->children ? describe(q, k, &a) : EXEC_INVALID_FUNCTION;
        uint64_t to = intrinsic_argument(w, 0, l);
        for (unsigned at = 0; !error && at < sizeof a; at += PIECE)
            if (!access_write(w, &intrinsic_generic, l, to + at, (const char *)&a + at, PIECE))
                return NULL;
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

// (to, kernel, threads, shared), and optional flags, which are ignored.
static const struct exec_insn *occupancy(struct exec_warp *w, const struct exec_insn *i)
{
    const struct exec_launch *q = intrinsic_launch(w);
    if (!intrinsic_has_signature(w, 4, 1) && !intrinsic_has_signature(w, 5, 1))
        return fault_raise(w, i, EXEC_INVALID_PC);
    FOR_LANES(w->mask)
    {
        const struct exec_kernel *k = intrinsic_kernel(w, 1, l);
        int blocks = 0, error = INTRINSIC_INVALID_VALUE;
        if (k && q->children)
            error = q->children->occupancy(q->owner, k, (int)intrinsic_argument(w, 2, l),
                                           intrinsic_argument(w, 3, l), &blocks);
        if (!error && !intrinsic_put(w, l, &blocks, sizeof blocks))
            return NULL;
        intrinsic_return_error(w, l, error);
    }
    return control_ret(w, i);
}

exec_fn *intrinsic_query_find(struct str name)
{
    static const struct intrinsic_row rows[] = {
        INTRINSIC_ROW("GetLastError", get_last_error),
        INTRINSIC_ROW("PeekAtLastError", peek_at_last_error),
        INTRINSIC_ROW("GetErrorName", get_error_name),
        INTRINSIC_ROW("GetErrorString", get_error_string),
        INTRINSIC_ROW("GetDevice", get_device),
        INTRINSIC_ROW("GetDeviceCount", get_device_count),
        INTRINSIC_ROW("RuntimeGetVersion", get_version),
        INTRINSIC_ROW("DeviceGetLimit", get_limit),
        INTRINSIC_ROW("DeviceGetCacheConfig", get_cache_config),
        INTRINSIC_ROW("DeviceGetSharedMemConfig", get_shared_config),
        INTRINSIC_ROW("DeviceGetAttribute", get_attribute),
        INTRINSIC_ROW("FuncGetAttributes", get_function),
        INTRINSIC_ROW("OccupancyMaxActiveBlocksPerMultiprocessor", occupancy),
        INTRINSIC_ROW("OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", occupancy),
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (str_eq(rows[k].name, name))
            return rows[k].fn;
    return NULL;
}
