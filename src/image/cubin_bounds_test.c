// SPDX-License-Identifier: MIT
#include "image/cubin_bounds.h"

#include "image/image_make.h"

#define NOTHING "\x02\x4a\x01\x00"  // an attribute without further bytes
#define MAX(x) "\x04\x05\x0c\x00" x "\x01\x00\x00\x00\x01\x00\x00\x00"
#define REQUIRED(x) "\x04\x10\x0c\x00" x "\x02\x00\x00\x00\x01\x00\x00\x00"
#define N128 "\x80\x00\x00\x00"
#define N64 "\x40\x00\x00\x00"
#define BYTES(text)           \
    {                         \
        text, sizeof text - 1 \
    }

// Makes a cubin with two kernels: the bound of `one` is 128, that of `two` is given.
static void make_cubin(struct make *m, struct str two)
{
    const struct make_section sections[] = {
        {".text.one", SHT_PROGBITS, 0, 0, STR("code")},
        {".nv.info", SHT_PROGBITS, 0, 0, BYTES(MAX(N64))},
        {".nv.info.one", SHT_PROGBITS, 0, 0, BYTES(NOTHING MAX(N128))},
        {".nv.info.two", SHT_PROGBITS, 0, 0, two},
        {".nv.info.function", SHT_PROGBITS, 0, 0, BYTES(NOTHING)},
        {".nv.constant0.one", SHT_PROGBITS, 0, 0, STR("1234")},
        {".nv.constant0.two", SHT_PROGBITS, 0, 0, STR("1234")},
    };
    make_elf(m, (Elf64_Ehdr){.e_machine = 190}, sections, sizeof sections / sizeof *sections);
}

static void differs(struct str two, const char *ptx, const char *kernel)
{
    struct make m = {0};
    make_cubin(&m, two);
    struct str found = cubin_bounds_differ((struct str){m.bytes, m.len}, str_from(ptx));
    assert_true(str_eq(found, str_from(kernel)));
    make_free(&m);
}

#define ONE ".visible .entry one(.param .u64 a)\n.maxntid 128, 1, 1\n{ ret; }\n"

static void good_bounds(void **state)
{
    struct str none = BYTES(NOTHING), max = BYTES(MAX(N64)), required = BYTES(REQUIRED(N64));
    differs(none, ONE ".visible .entry two()\n{ ret; }\n", "");
    differs(max, ONE ".visible .entry two(\n\t.param .u32 x\n)\n.maxntid 64\n.minnctapersm 1\n{ ret; }\n",
            "");
    differs(required, ONE ".entry two()\n.reqntid 8, 4, 4\n{ ret; }\n", "");
    differs(max, ONE, "");  // only one of them has the kernel
    differs(max, "", "");
    differs(max, ".entry three() .maxntid 5 { }", "");
    differs(max, ONE ".func two() .maxntid 5 { } .entry twofold() .maxntid 6 { }", "");
}

static void bad_bounds(void **state)
{
    struct str none = BYTES(NOTHING), max = BYTES(MAX(N64));
    differs(none, ONE ".visible .entry two()\n.maxntid 64, 1, 1\n{ ret; }\n", "two");
    differs(max, ONE ".visible .entry two()\n{ ret; }\n", "two");
    differs(max, ONE ".visible .entry two()\n.maxntid 512, 1, 1\n{ ret; }\n", "two");
    differs(none, ".visible .entry one(.param .u64 a)\n.maxntid 256, 1, 1\n{ ret; }\n", "one");
    differs(max, ".entry two() .maxntid 99999999999999999999, 99999999999, 7 { }", "two");
}

// Files that are cut anywhere, and with any one byte wrong.
static void lacks(const char *ptx, const char *kernel)
{
    struct make m = {0};
    make_cubin(&m, (struct str)BYTES(NOTHING));
    assert_true(str_eq(cubin_bounds_missing((struct str){m.bytes, m.len}, str_from(ptx)), str_from(kernel)));
    make_free(&m);
}

static void missing(void **state)
{
    lacks(ONE ".entry two() { }", "");
    lacks(ONE ".entry two()\n{ ret; }\n.entry three() { }", "");
    lacks(ONE, "two");
    lacks(ONE ".entry twofold() { } .func two() { }", "two");
    lacks(".visible .entry two(\n.param .u32 x)\n{\nret;\n}\n", "one");
    lacks("", "one");
    assert_int_equal(cubin_bounds_missing(STR("no ELF file"), STR("")).len, 0);
}

static void bad_files(void **state)
{
    struct make m = {0};
    struct str ptx = STR(ONE ".visible .entry two()\n.maxntid 7\n{ ret; }\n");
    make_cubin(&m, (struct str)BYTES(MAX(N64)));
    for (size_t n = 0; n < m.len; n++) {
        struct make cut = {0};
        make_raw(&cut, m.bytes, n);
        cubin_bounds_differ((struct str){cut.bytes, cut.len}, ptx);
        make_free(&cut);
    }
    for (size_t i = 0; i < m.len; i++) {
        m.bytes[i] ^= (char)0xff;
        cubin_bounds_differ((struct str){m.bytes, m.len}, ptx);
        m.bytes[i] ^= (char)0xff;
    }
    for (size_t n = 0; n < ptx.len; n++)
        cubin_bounds_differ((struct str){m.bytes, m.len}, (struct str){ptx.ptr, n});
    make_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_bounds),
        cmocka_unit_test(bad_bounds),
        cmocka_unit_test(missing),
        cmocka_unit_test(bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
