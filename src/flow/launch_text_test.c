// SPDX-License-Identifier: MIT
// Launches as people write them: what is read, how it is laid out, and where errors point to.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "flow/launch_bind.h"

static struct launch_text text;
static struct launch_bind bound;
static struct diag last;

static void keep(struct diag_sink *sink, const struct diag *d)
{
    last = *d;
}
static struct diag_sink sink = {.emit = keep};

static void read_good(const char *s)
{
    last.message[0] = 0;
    if (launch_text_read(str_from(s), &sink, &text))
        fail_msg("%s: %s", s, last.message);
}

// `place`: the text from the error on starts with it.
static void read_bad(const char *s, const char *place, const char *message)
{
    assert_int_equal(launch_text_read(str_from(s), &sink, &text), -EINVAL);
    assert_non_null(strstr(last.message, message));
    assert_true(last.offset <= strlen(s));
    assert_true(str_starts(str_from(s + last.offset), str_from(place)));
    assert_true(*place || last.offset == strlen(s));
}

static void reads_shapes(void **state)
{
    read_good("scale<<<4096,256>>>()");
    assert_true(str_eq(text.kernel, STR("scale")));
    assert_int_equal(text.grid[0], 4096);
    assert_int_equal(text.grid[1] * text.grid[2], 1);
    assert_int_equal(text.block[0], 256);
    assert_int_equal(text.shared, 0);
    assert_int_equal(text.nvalues, 0);
    read_good("  void f<float>(float*) <<< dim3(1, 2, 3) , (4,5), 2k >>> ( ) ; ");
    assert_true(str_eq(text.kernel, STR("void f<float>(float*)")));
    assert_int_equal(text.grid[2], 3);
    assert_int_equal(text.block[1], 5);
    assert_int_equal(text.block[2], 1);
    assert_int_equal(text.shared, 2048);
}

static void reads_values(void **state)
{
    read_good("k<<<1,1>>>(7, -1, 0xFFu, true, 2.0, -1e-3f, .5, inf, *4000, *1k+16, *, null, 9ll, 3:2)");
    assert_int_equal(text.nvalues, 14);
    const struct launch_text_value *v = text.values;
    assert_int_equal(v[0].bits, 7);
    assert_int_equal(v[0].bytes, 4);
    assert_true(v[1].negative && v[1].bits == UINT64_MAX);
    assert_int_equal(v[2].bits, 255);
    assert_int_equal(v[3].bits, 1);
    assert_int_equal(v[3].bytes, 1);
    assert_true(v[4].kind == LAUNCH_TEXT_FLOAT && v[4].number == 2.0 && v[4].bytes == 8);
    assert_true(v[5].number == -1e-3 && v[5].bytes == 4);
    assert_true(v[6].number == .5);
    assert_true(isinf(v[7].number));
    assert_true(v[8].kind == LAUNCH_TEXT_POINTER && v[8].sized && v[8].size == 4000 && !v[8].into);
    assert_true(v[9].size == 1024 && v[9].into == 16);
    assert_true(v[10].kind == LAUNCH_TEXT_POINTER && !v[10].sized);
    assert_int_equal(v[11].kind, LAUNCH_TEXT_NULL);
    assert_int_equal(v[12].bytes, 8);
    assert_int_equal(v[13].bytes, 2);
}

static void reads_structures(void **state)
{
    read_good("k<<<1,1>>>({1, {2.0f, *8}, 3}, 4)");
    assert_int_equal(text.nvalues, 7);
    assert_int_equal(text.values[0].members, 5);
    assert_int_equal(text.values[2].members, 2);
    assert_int_equal(text.values[6].bits, 4);
}

static void points_to_errors(void **state)
{
    read_bad("", "", "\"<<<\" is missing");
    read_bad("scale", "", "\"<<<\" is missing");
    read_bad("<<<1,1>>>()", "<<<", "name of a kernel");
    read_bad("k<<<,1>>>()", ",1", "number of blocks");
    read_bad("k<<<0,1>>>()", "0,1", "can be 0");
    read_bad("k<<<1>>>()", ">>>", "shape of a block");
    read_bad("k<<<(1,2,3,4),1>>>()", ",4", "at most three");
    read_bad("k<<<4294967296,1>>>()", "4294967296", "number of blocks");
    read_bad("k<<<1,1,x>>>()", "x>>>", "number of bytes");
    read_bad("k<<<1,1,5G>>>()", "5G", "shared memory");
    read_bad("k<<<1,1>>", ">>", "\">>>\"");
    read_bad("k<<<1,1>>>", "", "arguments");
    read_bad("k<<<1,1>>>(1,)", ")", "a value is expected");
    read_bad("k<<<1,1>>>(1 2)", "2)", "\",\" or \")\"");
    read_bad("k<<<1,1>>>(1) x", "x", "nothing is expected");
    read_bad("k<<<1,1>>>(abc)", "abc", "a value is expected");
    read_bad("k<<<1,1>>>(1.2.3)", "1.2.3", "a value is expected");
    read_bad("k<<<1,1>>>(12q)", "12q", "a value is expected");
    read_bad("k<<<1,1>>>(99999999999999999999)", "9", "64 bits");
    read_bad("k<<<1,1>>>(-9223372036854775809)", "9223372036854775809", "64 bits");
    read_bad("k<<<1,1>>>(*4z)", "4z", "number of bytes");
    read_bad("k<<<1,1>>>(*4+)", ")", "number of bytes");
    read_bad("k<<<1,1>>>({1, 2)", ")", "\"}\"");
    read_bad("k<<<1,1>>>(3:5)", "5)", "width");
    read_bad("k<<<1,1>>>({{{{{{{{{{{{{{{{{1}}}}}}}}}}}}}}}}})", "1}", "nested");
}

// --- laying out --------------------------------------------------------------------------------------------

static struct ptx_module *module;

static const struct ptx_func *kernel(const char *name)
{
    struct ptx_sym *sym = ptx_find(module, str_from(name));
    assert_non_null(sym);
    return sym->func;
}

static int parse_module(void **state)
{
    static const char code[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry plain(.param .u64 a, .param .f32 b, .param .u32 n, .param .u8 c, .param .u64 d)\n"
        "{ ret; }\n"
        ".visible .entry tuple(.param .u32 n, .param .align 8 .b8 s[24]) { ret; }\n"
        ".visible .entry none() { ret; }\n";
    return ptx_parse("test", STR(code), &sink, NULL, &module);
}

static int free_module(void **state)
{
    ptx_free(module);
    return 0;
}

static void bind_bad(const char *name, const char *s, const char *place, const char *message)
{
    read_good(s);
    assert_int_equal(launch_bind(&text, module, kernel(name), &sink, &bound), -EINVAL);
    assert_non_null(strstr(last.message, message));
    assert_true(str_starts(str_from(s + last.offset), str_from(place)));
}

#define AT(type, offset) (*(type *)(bound.params + (offset)))

static void lays_parameters_out(void **state)
{
    read_good("plain<<<(2,3),64,16>>>(*4000+8, 2, -5, 255, *)");
    assert_int_equal(launch_bind(&text, module, kernel("plain"), &sink, &bound), 0);
    assert_int_equal(bound.launch.params_size, 32);
    assert_int_equal(bound.launch.grid[1], 3);
    assert_int_equal(bound.launch.block[0], 64);
    assert_int_equal(bound.launch.dynamic_shared, 16);
    assert_true(AT(float, 8) == 2.0f);
    assert_int_equal(AT(int32_t, 12), -5);
    assert_int_equal(AT(uint8_t, 16), 255);
    const struct launch_bind_buffer *a = launch_bind_buffer_at(&bound, 0),
                                    *d = launch_bind_buffer_at(&bound, 24);
    assert_true(a && a->sized && a->size == 4000 && a->into == 8);
    assert_true(d && !d->sized);
    assert_null(launch_bind_buffer_at(&bound, 8));
    assert_int_equal(AT(uint64_t, 0) % 256, 8);
    assert_true(AT(uint64_t, 24) && AT(uint64_t, 24) != AT(uint64_t, 0) - 8);
}

static void lays_structures_out(void **state)
{
    read_good("tuple<<<1,1>>>(1, {2:1, 3:2, {*16}, 4.0f})");
    assert_int_equal(launch_bind(&text, module, kernel("tuple"), &sink, &bound), 0);
    assert_int_equal(bound.launch.params_size, 32);
    assert_int_equal(AT(uint32_t, 0), 1);
    assert_int_equal(AT(uint8_t, 8), 2);
    assert_int_equal(AT(uint16_t, 10), 3);
    assert_non_null(launch_bind_buffer_at(&bound, 16));
    assert_true(AT(float, 24) == 4.0f);
    read_good("none<<<1,1>>>()");
    assert_int_equal(launch_bind(&text, module, kernel("none"), &sink, &bound), 0);
    assert_int_equal(bound.launch.params_size, 0);
}

static void refuses_values(void **state)
{
    bind_bad("plain", "plain<<<1,1>>>(1, 2)", "(1", "takes 5 arguments, but 2 are given");
    bind_bad("none", "none<<<1,1>>>(1)", "(1", "takes 0 arguments, but 1 is given");
    bind_bad("plain", "plain<<<1,1>>>(*8, *8, 1, 1, 1)", "*8, 1", "argument 2 is no pointer");
    bind_bad("plain", "plain<<<1,1>>>(*8, 1, 2.5, 1, 1)", "2.5", "argument 3 is no floating-point");
    bind_bad("plain", "plain<<<1,1>>>(*8, 1, 4294967296, 1, 1)", "4294967296", "into 4 bytes");
    bind_bad("plain", "plain<<<1,1>>>(*8, 1, -2147483649, 1, 1)", "-2147483649", "into 4 bytes");
    bind_bad("plain", "plain<<<1,1>>>(*8, 1, 1, 256, 1)", "256", "into 1 byte");
    bind_bad("tuple", "tuple<<<1,1>>>(1, 2)", "2)", "structure of 24 bytes");
    bind_bad("tuple", "tuple<<<1,1>>>(1, {1, 2})", "{1", "has 24 bytes, but this structure has 8");
    bind_bad("tuple", "tuple<<<1,1>>>(1, {*1, *2, *3, *4})", "*4", "no room");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_shapes),
        cmocka_unit_test(reads_values),
        cmocka_unit_test(reads_structures),
        cmocka_unit_test(points_to_errors),
        cmocka_unit_test_setup_teardown(lays_parameters_out, parse_module, free_module),
        cmocka_unit_test_setup_teardown(lays_structures_out, parse_module, free_module),
        cmocka_unit_test_setup_teardown(refuses_values, parse_module, free_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
