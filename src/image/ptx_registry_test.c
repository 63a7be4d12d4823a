// SPDX-License-Identifier: MIT
// The PTX behind machine code: added, found again by the machine code, and listed by image.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "image/image.h"
#include "image/ptx_registry.h"

static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";

// Machine code of no instructions: only a header, and a number that makes it differ from others.
struct code {
    Elf64_Ehdr header;
    char padding[64];
};

static struct code make(uint32_t number)
{
    struct code c = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                .e_type = ET_EXEC,
                                .e_machine = 190,
                                .e_version = EV_CURRENT,
                                .e_entry = number,
                                .e_ehsize = sizeof c.header}};
    return c;
}

static struct str bytes_of(const struct code *c, size_t len)
{
    return (struct str){(const char *)c, len};
}

static const struct str ptx = {text, sizeof text - 1};

static void good_found(void **state)
{
    struct code a = make(1), b = make(2);
    struct str found;
    uint32_t before = ptx_registry_count();
    assert_false(ptx_registry_find(bytes_of(&a, sizeof a), &found));
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), ptx), 0);
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), ptx), 0);
    assert_int_equal(ptx_registry_count(), before + 1);
    // What follows the code does not count: a driver that has only its address cannot see it.
    assert_true(ptx_registry_find(bytes_of(&a, sizeof a.header), &found));
    assert_int_equal(found.len, ptx.len);
    assert_string_equal(found.ptr, text);
    assert_false(ptx_registry_find(bytes_of(&b, sizeof b), &found));
}

static void bad_pairs(void **state)
{
    struct code a = make(3), cut = make(4);
    cut.header.e_shoff = 1 << 20;
    cut.header.e_shnum = 1;
    cut.header.e_shentsize = sizeof(Elf64_Shdr);
    uint32_t before = ptx_registry_count();
    assert_int_equal(ptx_registry_add(bytes_of(&a, 10), ptx), -EINVAL);
    assert_int_equal(ptx_registry_add(bytes_of(&cut, sizeof cut), ptx), -EINVAL);
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), (struct str){"hello", 5}), -EINVAL);
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), (struct str){"", 0}), -EINVAL);
    assert_int_equal(ptx_registry_count(), before);
}

static void good_without_memory(void **state)
{
    struct code a = make(5);
    struct str found;
    mem_fail_after(0);
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), ptx), -ENOMEM);
    mem_fail_after(-1);
    assert_false(ptx_registry_find(bytes_of(&a, sizeof a), &found));
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), ptx), 0);
}

static void ignore(struct diag_sink *sink, const struct diag *d)
{
}

static void good_listed(void **state)
{
    struct diag_sink sink = {.emit = ignore};
    struct code a = make(6);
    struct image *im;
    struct image_buffer buffer = {0};
    struct str data;
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), ptx), 0);
    assert_int_equal(image_open_memory("module", &a, sizeof a, &sink, &im), 0);
    unsigned last = image_count(im) - 1;
    assert_int_equal(image_entry(im, last)->kind, IMAGE_PTX);
    assert_int_equal(image_entry(im, last)->arch, 90);
    assert_int_equal(image_read(im, last, &sink, &buffer, &data), 0);
    assert_int_equal(data.len, ptx.len);
    assert_memory_equal(data.ptr, text, ptx.len);
    image_buffer_free(&buffer);
    image_free(im);
}

// Machine code that was linked from several texts: what does not begin as PTX ends them.
static void good_several(void **state)
{
    static const char two[] = ".version 8.0\n.target sm_80\n\0.version 8.1\n.target sm_90\n\0junk";
    struct diag_sink sink = {.emit = ignore};
    struct code a = make(7);
    struct str rest, part;
    struct image *im;
    assert_int_equal(ptx_registry_add(bytes_of(&a, sizeof a), (struct str){two, sizeof two}), 0);
    assert_true(ptx_registry_find(bytes_of(&a, sizeof a), &rest));
    assert_int_equal(rest.len, sizeof two - sizeof "junk" - 1);
    assert_true(ptx_registry_next(&rest, &part));
    assert_string_equal(part.ptr, two);
    assert_true(ptx_registry_next(&rest, &part));
    assert_string_equal(part.ptr, ".version 8.1\n.target sm_90\n");
    assert_false(ptx_registry_next(&rest, &part));

    assert_int_equal(image_open_memory("module", &a, sizeof a, &sink, &im), 0);
    unsigned n = image_count(im);
    assert_true(n >= 2);
    for (unsigned i = n - 2; i < n; i++) {
        assert_int_equal(image_entry(im, i)->kind, IMAGE_PTX);
        assert_true(image_entry(im, i)->part);
    }
    assert_int_equal(image_entry(im, n - 2)->arch, 80);
    assert_int_equal(image_entry(im, n - 1)->arch, 90);
    image_free(im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_found),  cmocka_unit_test(bad_pairs),    cmocka_unit_test(good_without_memory),
        cmocka_unit_test(good_listed), cmocka_unit_test(good_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
