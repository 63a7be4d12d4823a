// SPDX-License-Identifier: MIT
#include "exec/lanes_row.h"
#include "exec/scalar_approx.h"
#include "exec/scalar_half.h"

// .ftz flushes subnormal operands and results to 0.
static inline float flush_if(float x, uint32_t flags)
{
    return flags & LANES_FTZ ? f32_flush(x) : x;
}

#define APPROX(f)              \
    uint32_t flags = i->flags; \
    LOOP1(float, float, flush_if(f32_canonical(f(flush_if(a, flags))), flags))

// bf16 has the subnormals of f32, so flushing in f32 is right.
#define APPROX_HALF(format, n, f)                                                          \
    LANES_OUT(uint16_t, n);                                                                \
    const uint16_t *as = LANES_SLOT(const uint16_t, w, i->a);                              \
    uint32_t flags = i->flags;                                                             \
    LANES_EACH(32 * n)                                                                     \
    o[l] = format##_from_f32(flush_if(f(flush_if(format##_to_f32(as[l]), flags)), flags)); \
    LANES_STORE(uint16_t, n)

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_approx.def"
