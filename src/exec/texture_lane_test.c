// SPDX-License-Identifier: MIT
// Texture and surface instructions in kernels: decoding, and faults.
#include <errno.h>

#include "exec/exec_testing.h"
#include "exec/texture.h"

enum { WIDTH = 8, HEIGHT = 4 };

static uint64_t memory, out;

static uint64_t add(bool surface)
{
    memory = exec_testing_take(WIDTH * HEIGHT * 4, 512);
    out = exec_testing_take(4096, 16);
    struct texture t = {.shape = TEXTURE_2D,
                        .type = TEXTURE_U32,
                        .channels = 1,
                        .element = 4,
                        .array = true,
                        .surface = surface,
                        .as_integers = true,
                        .nlevels = 1};
    t.level[0] = (struct texture_level){memory, WIDTH, HEIGHT, 1, WIDTH * 4, WIDTH * HEIGHT * 4};
    memset(t.mode, TEXTURE_CLAMP, sizeof t.mode);
    for (uint32_t k = 0; k < WIDTH * HEIGHT; k++)
        memcpy(space_host(memory + 4 * k), &k, sizeof k);
    return texture_add(&t);
}

#define ENTRY                                                                                                \
    ".entry k(.param .u64 object, .param .u64 out) {\n"                                                      \
    ".reg .b64 o, p, q, w<2>; .reg .b32 x, y, i, a, b, c, d; .reg .f32 f, g; .reg .b16 h<4>; .reg .pred "    \
    "t;\n"                                                                                                   \
    "ld.param.u64 o, [object]; ld.param.u64 p, [out]; mov.u32 i, %tid.x; mul.wide.u32 q, i, 16; add.s64 p, " \
    "p, q;\n"                                                                                                \
    "mov.u32 a, 0; mov.u32 b, 0; mov.u32 c, 0; mov.u32 d, 0; and.b32 x, i, 7; shr.u32 y, i, 3;\n"            \
    "cvt.rn.f32.u32 f, x; cvt.rn.f32.u32 g, y; setp.lt.u32 t, i, 5;\n"
#define END "\nst.global.v4.b32 [p], {a, b, c, d};\nret; }\n"

static struct exec_fault run(const char *text, bool surface, uint64_t *handle)
{
    struct exec_program *p = exec_testing_text(text);
    uint64_t own = add(surface);
    const struct exec_variable *r = exec_find_reference(p, STR("image"));
    if (r)
        memcpy(space_host(r->address), &own, sizeof own);
    uint64_t params[2] = {handle ? *handle : own, out};
    struct exec_launch launch = exec_testing_launch(p, "k", 1, 32, params);
    struct exec_fault f = exec_testing_run(&launch, 1000);
    exec_program_free(p);
    texture_remove(own);
    return f;
}

static uint32_t word(unsigned thread, unsigned k)
{
    return exec_testing_word(out + thread * 16 + k * 4);
}

static void good(const char *text, bool surface)
{
    assert_int_equal(run(text, surface, NULL).kind, EXEC_NO_FAULT);
}

static void reads(void **state)
{
    good(ENTRY "tex.2d.v4.u32.f32 {a, b, c, d}, [o, {f, g}];" END, false);
    for (unsigned k = 0; k < 32; k++) {
        assert_int_equal(word(k, 0), k);
        assert_int_equal(word(k, 3), 0);
    }
    good(ENTRY "tex.2d.v4.u32.s32 {a, _, c, d}|t, [o, {x, y}]; selp.u32 b, 1, 0, t;" END, false);
    for (unsigned k = 0; k < 32; k++) {
        assert_int_equal(word(k, 0), k);
        assert_int_equal(word(k, 1), 1);
    }
    // Inactive lanes keep their values; an offset counts texels.
    good(ENTRY "@t tex.2d.v4.u32.f32 {a, b, c, d}, [o, {f, g}], {2, 1};" END, false);
    for (unsigned k = 0; k < 32; k++)
        assert_int_equal(word(k, 0), k < 5 ? k + 10 : 0);
    // Results overwrite coordinates.
    good(ENTRY "tex.2d.v4.u32.s32 {x, y, c, d}, [o, {x, y}]; mov.u32 a, x;" END, false);
    assert_int_equal(word(31, 0), 31);
    good(ENTRY "tld4.r.2d.v4.u32.f32 {a, b, c, d}, [o, {f, g}];" END, false);
    assert_int_equal(word(9, 0), 8);
    assert_int_equal(word(9, 1), 9);
    assert_int_equal(word(9, 2), 1);
    assert_int_equal(word(9, 3), 0);
    good(ENTRY "txq.width.b32 a, [o]; txq.height.b32 b, [o]; txq.depth.b32 c, [o]; txq.level.width.b32 d, "
               "[o], x;" END,
         false);
    assert_int_equal(word(3, 0), WIDTH);
    assert_int_equal(word(3, 1), HEIGHT);
    assert_int_equal(word(3, 2), 0);
    assert_int_equal(word(3, 3), WIDTH);
}

// Results as halves: four registers, or two with two each; filtered results are rounded.
static void halves(void **state)
{
    static const float texels[WIDTH * HEIGHT] = {1, 2, 65504, 70000, -0.5f, 1e-8f, 1.0009765f, 3};
    struct exec_program *p = exec_testing_text(
        ENTRY "tex.2d.v4.f16.f32 {h0, h1, h2, h3}, [o, {f, g}]; cvt.u32.u16 a, h0; cvt.u32.u16 b, h3;\n"
              "tex.2d.v2.f16x2.s32 {c, d}, [o, {x, y}];" END);
    add(false);
    struct texture t = {.shape = TEXTURE_2D, .type = TEXTURE_F32, .channels = 1, .element = 4, .nlevels = 1};
    t.level[0] = (struct texture_level){memory, WIDTH, HEIGHT, 1, WIDTH * 4, WIDTH * HEIGHT * 4};
    memset(t.mode, TEXTURE_CLAMP, sizeof t.mode);
    memcpy(space_host(memory), texels, sizeof texels);
    uint64_t params[2] = {texture_add(&t), out};
    struct exec_launch launch = exec_testing_launch(p, "k", 1, 32, params);
    assert_int_equal(exec_testing_run(&launch, 1000).kind, EXEC_NO_FAULT);
    static const uint16_t want[8] = {0x3c00, 0x4000, 0x7bff, 0x7c00, 0xb800, 0, 0x3c01, 0x4200};
    for (unsigned k = 0; k < 8; k++) {
        assert_int_equal(word(k, 0), want[k]);
        assert_int_equal(word(k, 2), want[k]);  // the second channel is missing: 0
        assert_int_equal(word(k, 1), word(k, 3) >> 16);
    }
    texture_remove(params[0]);
    exec_program_free(p);
}

// Every texel has one sample.
static void samples(void **state)
{
    good(ENTRY "tex.2dms.v4.u32.s32 {a, b, c, d}, [o, {i, x, y, y}];" END, false);
    for (unsigned k = 0; k < 32; k++)
        assert_int_equal(word(k, 0), k);
}

static void reductions(void **state)
{
    // Threads reduce in pairs at one texel; both count.
    good(ENTRY
         "and.b32 x, x, 6; shl.b32 x, x, 2; mov.u32 c, 100; sured.b.add.2d.u32.trap [o, {x, y}], c;" END,
         true);
    for (unsigned k = 0; k < 32; k++)
        assert_int_equal(exec_testing_word(memory + 4 * k), k % 2 ? k : k + 200);
    // sured.p addresses texels; those outside are skipped.
    good(ENTRY "add.u32 x, x, 4; mov.u32 c, 0xff00; sured.p.or.2d.b32.zero [o, {x, y}], c;" END, true);
    for (unsigned k = 0; k < 32; k++)
        assert_int_equal(exec_testing_word(memory + 4 * k), k % 8 >= 4 ? k | 0xff00 : k);
    good(ENTRY "shl.b32 x, x, 2; mov.u32 c, -1; sured.b.min.2d.s32.trap [o, {x, y}], c;" END, true);
    assert_int_equal(exec_testing_word(memory + 4 * 9), 0xffffffff);
    good(ENTRY "shl.b32 x, x, 2; mov.u32 c, 9; sured.b.max.2d.u32.trap [o, {x, y}], c;" END, true);
    assert_int_equal(exec_testing_word(memory + 4 * 3), 9);
    assert_int_equal(exec_testing_word(memory + 4 * 13), 13);
    // Unsigned operations are signed if the texels are; add is the same for both.
    good(ENTRY "mov.u32 c, -5; sured.p.min.2d.b32.zero [o, {x, y}], c;" END, true);
    assert_int_equal(exec_testing_word(memory + 4 * 9), 9);
    struct exec_fault f = run(ENTRY "mov.u32 x, 32; sured.b.add.2d.u32.trap [o, {x, y}], a;" END, true, NULL);
    assert_int_equal(f.kind, EXEC_LAUNCH_FAILED);
    assert_true(f.write);
}

static void by_reference(void **state)
{
    good(".global .texref image;\n" ENTRY "tex.2d.v4.u32.f32 {a, b, c, d}, [image, {f, g}];" END, false);
    assert_int_equal(word(13, 0), 13);
    good(".global .texref image;\n" ENTRY
         "mov.u64 o, image; tex.2d.v4.u32.f32 {a, b, c, d}, [o, {f, g}];" END,
         false);
    assert_int_equal(word(13, 0), 13);
    good(".global .surfref image;\n" ENTRY "shl.b32 x, x, 2; suld.b.2d.b32.trap a, [image, {x, y}];" END,
         true);
    assert_int_equal(word(13, 0), 13);
}

static void surfaces(void **state)
{
    good(ENTRY "shl.b32 x, x, 2; add.u32 c, i, 100; sust.b.2d.b32.trap [o, {x, y}], c; suld.b.2d.b32.clamp "
               "a, [o, {x, y}];" END,
         true);
    for (unsigned k = 0; k < 32; k++) {
        assert_int_equal(word(k, 0), k + 100);
        assert_int_equal(exec_testing_word(memory + 4 * k), k + 100);
    }
    good(ENTRY "add.u32 x, x, 7; shl.b32 x, x, 2; suld.b.2d.b32.zero a, [o, {x, y}]; suld.b.2d.b32.clamp b, "
               "[o, {x, y}];" END,
         true);
    assert_int_equal(word(0, 0), 7);
    assert_int_equal(word(1, 0), 0);
    assert_int_equal(word(1, 1), 7);
    good(ENTRY "and.b32 x, x, 6; shl.b32 x, x, 2; suld.b.2d.v2.b32.trap {a, b}, [o, {x, y}]; "
               "suld.b.2d.b64.trap w0, [o, {x, y}]; mov.b64 {c, d}, w0;" END,
         true);
    for (unsigned k = 0; k < 4; k++)
        assert_int_equal(word(3, k), 2 + (k & 1));
    good(ENTRY "mov.u32 b, 7; sust.p.2d.b32.zero [o, {x, y}], b; suq.width.b32 a, [o];" END, true);
    assert_int_equal(word(0, 0), WIDTH);
    assert_int_equal(exec_testing_word(memory + 124), 7);
}

static void faults(void **state)
{
    uint64_t wild = 0x123456789;
    struct exec_fault f = run(ENTRY "tex.2d.v4.u32.f32 {a, b, c, d}, [o, {f, g}];" END, false, &wild);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(f.address, wild);
    assert_string_equal(f.space, "texture");
    f = run(ENTRY "suld.b.2d.b32.clamp a, [o, {x, y}];" END, false, NULL);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_string_equal(f.space, "surface");
    f = run(ENTRY "tex.2d.v4.u32.f32 {a, b, c, d}, [o, {f, g}];" END, true, NULL);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    f = run(ENTRY "mov.u32 x, 32; sust.b.2d.b32.trap [o, {x, y}], a;" END, true, NULL);
    assert_int_equal(f.kind, EXEC_LAUNCH_FAILED);
    assert_true(f.write);
    // A handle of 0 is a texture without texels.
    uint64_t none = 0;
    f = run(ENTRY "tex.2d.v4.u32.f32 {a, b, c, d}, [o, {f, g}];" END, false, &none);
    assert_int_equal(f.kind, EXEC_NO_FAULT);
    assert_int_equal(word(3, 0), 0);
}

static void refused(void **state)
{
    static const char *const bodies[] = {
        "tex.2d.v4.u32.f32 {a, b, c, d}, [o, o, {f, g}];",
        "tex.2d.v2.f16.f32 {h0, h1}, [o, {f, g}];",
        "tex.2dms.v4.u32.f32 {a, b, c, d}, [o, {x, f, g, g}];",
        "txq.num_samples.b32 a, [o];",
        "sured.b.xor.2d.f32.clamp [o, {x, y}], a;",
    };
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        char text[2048];
        struct exec_program *p;
        snprintf(text, sizeof text, "%s%s%s", EXEC_TESTING_HEAD ENTRY, bodies[k], END);
        assert_int_equal(exec_testing_load((const char *const[]){text, NULL}, &p), -ENOTSUP);
        assert_non_null(strstr(exec_testing.reported, "the CPU device does not execute"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),   cmocka_unit_test(by_reference), cmocka_unit_test(surfaces),
        cmocka_unit_test(faults),  cmocka_unit_test(refused),      cmocka_unit_test(halves),
        cmocka_unit_test(samples), cmocka_unit_test(reductions),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
