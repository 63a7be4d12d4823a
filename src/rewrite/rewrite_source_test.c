// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_source.h"

#include <sched.h>

#include "rewrite/rewrite_jit.h"
#include "image/image_make.h"

static struct rewrite_source s;

static void add(struct make *m, uint16_t kind, uint32_t arch, const char *text, enum image_compression how)
{
    make_entry(m,
               (struct make_entry){.kind = kind, .arch = arch, .data = str_from(text), .compression = how});
}

static void expect_text(unsigned i, const char *expected)
{
    struct make_sink sink = make_sink();
    struct image_buffer buffer = {0};
    struct str text;
    assert_int_equal(rewrite_source_read(&s, i, &sink.sink, &buffer, &text), 0);
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.ptr, expected, text.len);
    image_buffer_free(&buffer);
}

// Which of sm_70, sm_80, sm_100 a device gets.
static void good_the_best_text_is_taken(void **state)
{
    static const struct {
        unsigned arch;
        const char *text;
        bool newer;
    } rows[] = {{70, ".version 8.0 // 70", false},
                {75, ".version 8.0 // 70", false},
                {90, ".version 8.0 // 80", false},
                {120, ".version 8.0 // 100", false},
                {60, ".version 8.0 // 70", true}};
    struct make m = {0};
    struct make_sink sink = make_sink();
    size_t at = make_fatbin(&m);
    add(&m, 1, 100, ".version 8.0 // 100", IMAGE_ZSTD);
    add(&m, 2, 90, "machine code", IMAGE_PLAIN);
    add(&m, 1, 70, ".version 8.0 // 70", IMAGE_LZ4);
    add(&m, 1, 80, ".version 8.0 // 80", IMAGE_PLAIN);
    make_fatbin_end(&m, at);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rewrite_source_memory(&s, m.bytes, rows[i].arch, &sink.sink), 0);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.texts[0].newer, rows[i].newer);
        expect_text(0, rows[i].text);
        rewrite_source_free(&s);
    }
    make_free(&m);
}

// PTX for one GPU beside machine code for another, with the same or other block sizes.
static bool is_alike(unsigned ptx_arch, const char *ptx, unsigned cubin_arch, unsigned arch)
{
    static const char info[] = "\x04\x05\x0c\x00\x80\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00";
    struct make m = {0}, cubin = {0};
    struct make_sink sink = make_sink();
    char why[80] = "";
    const struct make_section sections[] = {
        {".nv.info.kernel", SHT_PROGBITS, 0, 0, {info, sizeof info - 1}},
        {".nv.constant0.kernel", SHT_PROGBITS, 0, 0, STR("parameters")},
    };
    make_elf(&cubin, (Elf64_Ehdr){.e_machine = 190}, sections, 2);
    size_t at = make_fatbin(&m);
    add(&m, 1, ptx_arch, ptx, IMAGE_ZSTD);
    make_entry(&m, (struct make_entry){.kind = 2, .arch = cubin_arch, .data = {cubin.bytes, cubin.len}});
    make_fatbin_end(&m, at);
    assert_int_equal(rewrite_source_memory(&s, m.bytes, arch, &sink.sink), 0);
    bool alike = rewrite_source_alike(&s, 0, &sink.sink, why, sizeof why);
    assert_string_equal(why, alike                   ? ""
                             : strstr(ptx, "kernel") ? "with blocks of another size: kernel"
                                                     : "without kernel kernel");
    rewrite_source_free(&s);
    make_free(&cubin);
    make_free(&m);
    return alike;
}

static void bad_blocks_of_another_gpu(void **state)
{
    static const char same[] = ".version 8.0\n.entry kernel()\n.maxntid 128, 1, 1\n{ }",
                      other[] = ".version 8.0\n.entry kernel()\n.maxntid 512, 1, 1\n{ }";
    assert_true(is_alike(120, same, 90, 90));
    assert_false(is_alike(120, other, 90, 90));
    assert_false(is_alike(75, other, 90, 90));
    assert_false(is_alike(120, other, 86, 89));
    assert_false(is_alike(120, ".version 8.0\n.entry another()\n{ }", 90, 90));
    assert_true(is_alike(120, other, 80, 90));  // which the device cannot run
    assert_true(is_alike(120, other, 100, 90));
    assert_true(is_alike(90, other, 90, 90));  // from one source
}

static void bad_machine_code_only(void **state)
{
    struct make m = {0};
    struct make_sink sink = make_sink();
    size_t at = make_fatbin(&m);
    add(&m, 2, 90, "machine code", IMAGE_PLAIN);
    make_fatbin_end(&m, at);
    assert_int_equal(rewrite_source_memory(&s, m.bytes, 90, &sink.sink), -ENODATA);
    rewrite_source_free(&s);
    make_free(&m);
}

// Wrappers of nvcc's host code: one fatbin, or a list of them.
static void good_wrappers_are_followed(void **state)
{
    struct make a = {0}, b = {0};
    struct make_sink sink = make_sink();
    size_t at = make_fatbin(&a);
    add(&a, 1, 70, ".version 8.0 // a", IMAGE_PLAIN);
    make_fatbin_end(&a, at);
    at = make_fatbin(&b);
    add(&b, 1, 70, ".version 8.0 // b", IMAGE_PLAIN);
    make_fatbin_end(&b, at);
    const void *list[] = {a.bytes, b.bytes, NULL};
    struct {
        uint32_t magic, version;
        const void *data;
        const void *const *list;
    } wrapper = {0x466243b1, 1, b.bytes, NULL};
    struct rewrite_source_sum one[1], two[2];
    assert_int_equal(rewrite_source_memory(&s, &wrapper, 90, &sink.sink), 0);
    assert_int_equal(s.count, 1);
    expect_text(0, ".version 8.0 // b");
    rewrite_source_sums(&s, one);
    rewrite_source_free(&s);
    wrapper.version = 2;
    wrapper.list = list;
    assert_int_equal(rewrite_source_memory(&s, &wrapper, 90, &sink.sink), 0);
    assert_int_equal(s.count, 2);
    expect_text(0, ".version 8.0 // a");
    expect_text(1, ".version 8.0 // b");
    rewrite_source_sums(&s, two);
    assert_memory_equal(&one[0], &two[1], sizeof one[0]);
    assert_memory_not_equal(&two[0], &two[1], sizeof two[0]);
    rewrite_source_free(&s);
    make_free(&a);
    make_free(&b);
}

// Behind the program's own objects: a library whose PTX is for newer devices, with machine code that fits or
// does not.
static void good_machine_code_of_libraries(void **state)
{
    struct make own = {0}, library = {0};
    struct make_sink sink = make_sink();
    struct image_buffer buffer = {0};
    struct rewrite_source_sum sums[2];
    struct str code;
    size_t at = make_fatbin(&own);
    add(&own, 1, 70, ".version 8.0 // own", IMAGE_PLAIN);
    make_fatbin_end(&own, at);
    at = make_fatbin(&library);
    add(&library, 2, 80, "code for 80", IMAGE_ZSTD);
    add(&library, 2, 90, "code for 90", IMAGE_ZSTD);
    add(&library, 1, 121, ".version 9.0 // 121", IMAGE_ZSTD);
    make_fatbin_end(&library, at);
    const void *list[] = {own.bytes, library.bytes, NULL};
    struct {
        uint32_t magic, version;
        const void *data;
        const void *const *list;
    } wrapper = {0x466243b1, 2, own.bytes, list};
    assert_int_equal(rewrite_source_memory(&s, &wrapper, 90, &sink.sink), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.ncodes, 1);
    assert_int_equal(rewrite_source_code(&s, 0, &sink.sink, &buffer, &code), 0);
    assert_true(str_eq(code, STR("code for 90")));
    rewrite_source_sums(&s, sums);
    assert_memory_not_equal(&sums[0], &sums[1], sizeof sums[0]);
    image_buffer_free(&buffer);
    rewrite_source_free(&s);
    assert_int_equal(rewrite_source_memory(&s, &wrapper, 75, &sink.sink), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.ncodes, 0);
    rewrite_source_free(&s);
    assert_int_equal(rewrite_source_memory(&s, &wrapper, 121, &sink.sink), 0);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.ncodes, 0);
    rewrite_source_free(&s);
    make_free(&own);
    make_free(&library);
}

static void bad_addresses_and_bytes(void **state)
{
    struct make_sink sink = make_sink();
    struct {
        uint32_t magic, version;
        const void *data;
        const void *const *list;
    } wrapper = {0x466243b1, 1, (void *)8, NULL};
    static const char elf[64] = "\177ELF";
    const void *const images[] = {NULL, (void *)4096, "", "neither this nor that", elf, &wrapper};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        assert_true(rewrite_source_memory(&s, images[i], 90, &sink.sink) < 0);
        rewrite_source_free(&s);
    }
    wrapper.version = 2;
    wrapper.list = (const void *const *)8;
    assert_int_equal(rewrite_source_memory(&s, &wrapper, 90, &sink.sink), -EFAULT);
    rewrite_source_free(&s);
    assert_int_equal(rewrite_source_file(&s, "/no/such/file", 90, false, &sink.sink), -ENOENT);
    rewrite_source_free(&s);
}

static void good_options_that_steer_are_kept(void **state)
{
    static struct rewrite_jit j, k;
    CUjit_option names[] = {CU_JIT_WALL_TIME, CU_JIT_MAX_REGISTERS, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_FMA};
    void *values[] = {NULL, (void *)32, &k, (void *)1};
    struct rewrite_options o = {.count = 4, .options = names, .values = values}, none = {.count = 0};
    assert_int_equal(rewrite_jit_take(&j, &o), 0);
    assert_int_equal(j.count, 4);  // two, and moat's own log
    assert_int_equal(j.options[0], CU_JIT_MAX_REGISTERS);
    assert_ptr_equal(j.values[0], (void *)32);
    assert_int_equal(j.options[1], CU_JIT_FMA);
    uint64_t sum = j.sum;
    values[0] = values;
    assert_int_equal(rewrite_jit_take(&j, &o), 0);
    assert_int_equal(j.sum, sum);
    values[1] = (void *)64;
    assert_int_equal(rewrite_jit_take(&j, &o), 0);
    assert_int_not_equal(j.sum, sum);
    assert_int_equal(rewrite_jit_take(&k, &none), 0);
    assert_int_equal(k.sum, 0);
    assert_false(rewrite_jit_threads(&k, 12090));
    cpu_set_t cpus;
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    assert_int_equal(rewrite_jit_threads(&k, 13000), CPU_COUNT(&cpus) > 1);
    assert_int_equal(k.sum, 0);
    assert_int_equal(k.count, 2 + (CPU_COUNT(&cpus) > 1));
    names[0] = CU_JIT_SPLIT_COMPILE;
    values[0] = (void *)1;
    assert_int_equal(rewrite_jit_take(&j, &o), 0);
    assert_false(rewrite_jit_threads(&j, 13000));
    names[0] = CU_JIT_GLOBAL_SYMBOL_ADDRESSES;
    assert_int_equal(rewrite_jit_take(&j, &o), -ENOTSUP);
    names[0] = (CUjit_option)1000;
    assert_int_equal(rewrite_jit_take(&j, &o), -ENOTSUP);
    assert_int_equal(rewrite_jit_take(&j, &(struct rewrite_options){.count = 1}), -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_blocks_of_another_gpu),
        cmocka_unit_test(good_the_best_text_is_taken),
        cmocka_unit_test(bad_machine_code_only),
        cmocka_unit_test(good_wrappers_are_followed),
        cmocka_unit_test(good_machine_code_of_libraries),
        cmocka_unit_test(bad_addresses_and_bytes),
        cmocka_unit_test(good_options_that_steer_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
