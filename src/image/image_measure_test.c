// SPDX-License-Identifier: MIT
#include "image/image_make.h"

// Only these bytes can be read.
static const char *first;
static size_t room;

static bool readable(const void *p, size_t n)
{
    size_t at = (size_t)((uintptr_t)p - (uintptr_t)first);
    return at <= room && n <= room - at;
}

static int measure(const struct make *m, size_t *len)
{
    first = m->bytes;
    room = m->len;
    return image_measure(m->bytes, readable, len);
}

// Expects this length, and a failure when the last byte cannot be read.
static void expect(struct make *m, size_t want)
{
    size_t len = 0;
    assert_int_equal(measure(m, &len), 0);
    assert_int_equal(len, want);
    first = m->bytes;
    for (room = 0; room < want; room++)
        assert_true(image_measure(m->bytes, readable, &len) != 0);
}

static void test_fatbin(void **state)
{
    struct make m = {0};
    make_one(&m, IMAGE_ZSTD);
    size_t whole = m.len;
    expect(&m, whole);
    make_set(&m, 6, 8, 2);
    assert_int_equal(measure(&m, &whole), -ENOEXEC);
    make_set(&m, 6, 16, 2);
    make_set(&m, 8, UINT64_MAX, 8);
    assert_int_equal(measure(&m, &whole), -ENOEXEC);
    make_set(&m, 8, m.len, 8);
    assert_int_equal(measure(&m, &whole), -EFAULT);
    make_free(&m);
}

static void test_elf(void **state)
{
    struct make m = {0};
    const struct make_section sections[] = {{".nv_fatbin", SHT_PROGBITS, 0, 0, STR("something")},
                                            {".bss", SHT_NOBITS, 0, 0, STR("")}};
    Elf64_Ehdr h = {.e_type = ET_EXEC, .e_machine = EM_X86_64};
    size_t table = make_elf(&m, h, sections, 2), len;
    expect(&m, m.len);
    // A section that reaches beyond everything, one whose end overflows, one that takes no room in the file.
    size_t size = table + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
    make_set(&m, size, 1 << 20, 8);
    assert_int_equal(measure(&m, &len), -EFAULT);
    make_set(&m, size, UINT64_MAX, 8);
    assert_int_equal(measure(&m, &len), -ENOEXEC);
    make_set(&m, size, 4, 8);
    make_set(&m, size + sizeof(Elf64_Shdr), 1 << 20, 8);
    expect(&m, m.len);
    make_set(&m, offsetof(Elf64_Ehdr, e_shentsize), 1, 2);
    assert_int_equal(measure(&m, &len), -ENOEXEC);
    make_free(&m);
}

static void test_text(void **state)
{
    struct make m = {0};
    make_raw(&m, MAKE_PTX, sizeof MAKE_PTX);
    make_raw(&m, "behind", 6);
    size_t len;
    assert_int_equal(image_measure(MAKE_PTX, readable, &len), -EFAULT);
    first = (const char *)((uintptr_t)m.bytes & ~(uintptr_t)4095);
    room = 1 << 20;
    assert_int_equal(image_measure(m.bytes, readable, &len), 0);
    assert_int_equal(len, sizeof MAKE_PTX - 1);
    memcpy(m.bytes, "hello", 6);
    assert_int_equal(image_measure(m.bytes, readable, &len), -ENOEXEC);
    make_free(&m);
}

static void test_unreadable(void **state)
{
    size_t len;
    first = NULL;
    room = 0;
    assert_int_equal(image_measure((const void *)16, readable, &len), -EFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fatbin),
        cmocka_unit_test(test_elf),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
