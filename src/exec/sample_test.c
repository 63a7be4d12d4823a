// SPDX-License-Identifier: MIT
// test/golden/sampling.sh compares with a GPU; these are cases with known results, and the fast path.
#include <math.h>

#include "exec/exec_testing.h"
#include "exec/sample_fast.h"
#include "exec/sample_filter.h"

static float texels[8 * 4 * 2];

static struct texture image(enum texture_shape shape, uint32_t width, uint32_t height, uint32_t slices)
{
    struct texture t = {.shape = (uint8_t)shape,
                        .type = TEXTURE_F32,
                        .channels = 1,
                        .element = 4,
                        .array = true,
                        .nlevels = 1};
    t.level[0] = (struct texture_level){(uintptr_t)texels,           width, height, slices, width * 4,
                                        (uint64_t)width * height * 4};
    for (unsigned k = 0; k < sizeof texels / sizeof *texels; k++)
        texels[k] = (float)k;
    memset(t.mode, TEXTURE_CLAMP, sizeof t.mode);
    return t;
}

static float bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static float look(const struct texture *t, enum texture_shape shape, float x, float y, float z)
{
    struct sample s = {.shape = (uint8_t)shape, .place = {{.f = x}, {.f = y}, {.f = z}}};
    uint32_t out[4];
    uint64_t bad;
    assert_true(sample_read(t, &s, out, &bad));
    return bits(out[0]);
}

static void is(double is, double should)
{
    assert_true(is == should);
}

static void nearest(void **state)
{
    struct texture t = image(TEXTURE_2D, 8, 4, 1);
    is(look(&t, TEXTURE_2D, 2.9f, 1, 0), 10);
    is(look(&t, TEXTURE_2D, -5, 100, 0), 24);
    is(look(&t, TEXTURE_2D, NAN, INFINITY, 0), 24);
    t.normalized = true;
    t.mode[0] = TEXTURE_WRAP;
    t.mode[1] = TEXTURE_MIRROR;
    is(look(&t, TEXTURE_2D, 1.25f, 0, 0), 2);
    is(look(&t, TEXTURE_2D, -0.25f, 0, 0), 6);
    is(look(&t, TEXTURE_2D, 0, 1.1f, 0), 24);
    is(look(&t, TEXTURE_2D, 0, -0.3f, 0), 8);
    t.mode[0] = TEXTURE_BORDER;
    t.border[0] = 77;
    is(look(&t, TEXTURE_2D, 1.25f, 0, 0), 77);
}

static void mixed(void **state)
{
    struct texture t = image(TEXTURE_2D, 8, 4, 1);
    t.linear = true;
    is(look(&t, TEXTURE_2D, 2.5f, 1.5f, 0), 10);
    is(look(&t, TEXTURE_2D, 3, 1.5f, 0), 10.5);
    is(look(&t, TEXTURE_2D, 3, 2, 0), 14.5);
    is(look(&t, TEXTURE_2D, 2.5f + 1.0f / 256, 1.5f, 0), 10 + 1.0 / 256);
    is(look(&t, TEXTURE_2D, 2.5f + 0.99f / 512, 1.5f, 0), 10);
    struct texture v = image(TEXTURE_3D, 8, 4, 2);
    v.linear = true;
    is(look(&v, TEXTURE_3D, 3, 2, 1), 30.5);
}

static void layers_and_faces(void **state)
{
    struct texture t = image(TEXTURE_A2D, 4, 2, 8);
    struct sample s = {.shape = TEXTURE_A2D, .layer = 3, .place = {{.f = 1.5f}, {.f = 1.5f}}};
    uint32_t out[4];
    uint64_t bad;
    assert_true(sample_read(&t, &s, out, &bad));
    is(bits(out[0]), 3 * 8 + 5);
    s.layer = UINT32_MAX;
    assert_true(sample_read(&t, &s, out, &bad));
    is(bits(out[0]), 7 * 8 + 5);
    struct texture c = image(TEXTURE_CUBE, 1, 1, 6);
    c.normalized = true;
    static const float directions[6][3] = {{2, 1, 0},  {-2, 1, 0}, {0, 3, 1},
                                           {0, -3, 1}, {1, 0, 5},  {1, 0, -5}};
    for (unsigned k = 0; k < 6; k++)
        is(look(&c, TEXTURE_CUBE, directions[k][0], directions[k][1], directions[k][2]), k);
    // An instruction for another shape reads nothing.
    is(look(&t, TEXTURE_3D, 1, 1, 1), 0);
}

static void by_index(void **state)
{
    struct texture t = image(TEXTURE_2D, 8, 4, 1);
    struct sample s = {.shape = TEXTURE_2D, .integers = true, .place = {{.i = 7}, {.i = 3}}};
    uint32_t out[4];
    uint64_t bad;
    assert_true(sample_read(&t, &s, out, &bad));
    is(bits(out[0]), 31);
    s.place[0].i = 8;
    assert_true(sample_read(&t, &s, out, &bad));
    is(bits(out[0]), 0);
    s.place[0].i = -1;
    assert_true(sample_read(&t, &s, out, &bad));
    is(bits(out[0]), 0);
}

static void memory_without_rights(void **state)
{
    struct texture t = image(TEXTURE_LINEAR, 4, 1, 1);
    struct sample s = {.shape = TEXTURE_1D, .integers = true, .place = {{.i = 1}}};
    uint32_t out[4];
    uint64_t bad = 0;
    t.array = false;
    t.level[0].at = space.device_base + EXEC_TESTING_MEMORY;
    assert_false(sample_read(&t, &s, out, &bad));
    assert_int_equal(bad, space.device_base + EXEC_TESTING_MEMORY + 4);
    assert_false(sample_fast_suits(&t, &s));
    t.level[0].at = space.device_base;
    assert_true(sample_read(&t, &s, out, &bad));
    assert_true(sample_fast_suits(&t, &s));
}

// The fast path returns what the other returns, for any input.
static void fast(void **state)
{
    uint64_t seed = 1;
    unsigned tried = 0;
    for (unsigned n = 0; n < 200000; n++) {
        uint32_t r[4];
        for (unsigned k = 0; k < 4; k++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            r[k] = (uint32_t)(seed >> 32);
        }
        struct texture t = image(r[0] & 1 ? TEXTURE_2D : TEXTURE_1D, 1 + r[0] / 2 % 8, 1, 1);
        t.level[0].height = r[0] & 1 ? 1 + r[0] / 16 % 4 : 1;
        static const uint8_t types[] = {TEXTURE_F32, TEXTURE_F16, TEXTURE_U8, TEXTURE_S16};
        t.type = types[r[0] >> 12 & 3];
        t.channels = t.type == TEXTURE_F32 ? 1 : t.type == TEXTURE_U8 ? 4 : 2;
        t.linear = r[0] >> 20 & 1;
        t.normalized = r[0] >> 21 & 1;
        t.as_integers = !t.linear && t.type == TEXTURE_U8 && r[0] >> 22 & 1;
        for (unsigned k = 0; k < 2; k++)
            t.mode[k] = (uint8_t)(t.normalized ? r[0] >> (23 + 2 * k) & 3 : TEXTURE_CLAMP);
        struct sample s = {.shape = t.shape};
        for (unsigned k = 0; k < 2; k++)
            s.place[k].f =
                r[1] & 15 ? (float)(int32_t)r[2 + k] / (t.normalized ? 0x1p30f : 0x1p27f) : bits(r[2 + k]);
        if (!sample_fast_suits(&t, &s))
            continue;
        uint32_t slow[4], quick[4];
        uint64_t bad;
        assert_true(sample_read(&t, &s, slow, &bad));
        sample_fast_read(&t, &s, quick);
        assert_memory_equal(slow, quick, sizeof slow);
        tried++;
    }
    assert_true(tried > 50000);
}

static void halves_towards_zero(void **state)
{
    assert_int_equal(sample_filter_half(1), 0x3c00);
    assert_int_equal(sample_filter_half(-0.3f), 0xb4cc);
    assert_int_equal(sample_filter_half(1e9f), 0x7bff);
    assert_int_equal(sample_filter_half(-1e9f), 0xfbff);
    assert_int_equal(sample_filter_half(INFINITY), 0x7c00);
    assert_int_equal(sample_filter_half(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest),
        cmocka_unit_test(mixed),
        cmocka_unit_test(layers_and_faces),
        cmocka_unit_test(by_index),
        cmocka_unit_test(memory_without_rights),
        cmocka_unit_test(fast),
        cmocka_unit_test(halves_towards_zero),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
