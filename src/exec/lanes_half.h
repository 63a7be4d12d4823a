// SPDX-License-Identifier: MIT
// Converts n values, as in whole slots, between f32 and f16 or bf16. Narrowing rounds to nearest and makes
// every NaN the same.
#ifndef MOAT_EXEC_LANES_HALF_H
#define MOAT_EXEC_LANES_HALF_H

#include "exec/lanes_row.h"
#include "exec/scalar_half.h"

static inline void f16_widen(float *to, const uint16_t *from, int n)
{
#if defined __AVX512F__
    for (int k = 0; k < n; k += 16)
        _mm512_store_ps(to + k, _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(from + k))));
#elif defined __F16C__
    for (int k = 0; k < n; k += 8)
        _mm256_store_ps(to + k, _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(from + k))));
#else
    LANES_EACH(n) to[l] = half_to_f32(from[l]);
#endif
}

static inline void f16_narrow(uint16_t *to, const float *from, int n)
{
#if defined __AVX512F__
    for (int k = 0; k < n; k += 16) {
        __m512 x = _mm512_load_ps(from + k);
        __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        x = _mm512_mask_blend_ps(nan, x, _mm512_castsi512_ps(_mm512_set1_epi32((int)F32_NAN_BITS)));
        _mm256_store_si256((__m256i *)(to + k), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined __F16C__
    for (int k = 0; k < n; k += 8) {
        __m256 x = _mm256_load_ps(from + k);
        __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32((int)F32_NAN_BITS));
        x = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        _mm_store_si128((__m128i *)(to + k), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    }
#else
    LANES_EACH(n) to[l] = half_from_f32(from[l]);
#endif
}

static inline void bf16_widen(float *to, const uint16_t *from, int n)
{
    LANES_EACH(n) to[l] = bf16_to_f32(from[l]);
}

static inline void bf16_narrow(uint16_t *to, const float *from, int n)
{
    LANES_EACH(n) to[l] = bf16_from_f32(from[l]);
}

#endif
