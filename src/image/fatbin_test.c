// SPDX-License-Identifier: MIT
#include "image/image_make.h"

static void good_plain(void **state)
{
    struct make m = {0};
    make_one(&m, IMAGE_PLAIN);
    struct image *im = make_open(&m, 1, 0);
    const struct image_entry *e = image_entry(im, 0);
    assert_int_equal(e->kind, IMAGE_PTX);
    assert_int_equal(e->compression, IMAGE_PLAIN);
    assert_int_equal(e->arch, 90);
    assert_int_equal(e->version_major, 8);
    assert_int_equal(e->version_minor, 3);
    assert_int_equal(e->offset, 16);
    assert_int_equal(e->fatbin, 0);
    assert_false(e->damaged);
    assert_ptr_equal(e->payload.ptr, m.bytes + 16 + 64);
    assert_int_equal(e->full_size % 8, 0);
    make_expect_text(im, 0, MAKE_PTX);
    image_free(im);
    make_free(&m);
}

static void good_compressed(void **state)
{
    for (int how = IMAGE_LZ4; how <= IMAGE_ZSTD; how++) {
        struct make m = {0};
        make_one(&m, how);
        struct image *im = make_open(&m, 1, 0);
        assert_int_equal(image_entry(im, 0)->compression, how);
        assert_int_equal(image_entry(im, 0)->full_size, strlen(MAKE_PTX));
        make_expect_text(im, 0, MAKE_PTX);
        image_free(im);
        make_free(&m);
    }
}

static void good_header_sizes(void **state)
{
    for (size_t size = 64; size <= 136; size += 8) {
        struct make m = {0};
        struct make_entry e = {.kind = 1, .arch = 75, .header_size = size, .data = STR(MAKE_PTX)};
        e.name = size >= 72 ? "a.cu" : NULL;
        e.options = size >= 96 ? " -g -O3 " : NULL;
        size_t at = make_fatbin(&m);
        make_entry(&m, e);
        make_entry(&m, e);
        make_fatbin_end(&m, at);
        struct image *im = make_open(&m, 2, 0);
        assert_int_equal(image_entry(im, 1)->payload.ptr - (m.bytes + image_entry(im, 1)->offset), size);
        assert_true(str_eq(image_entry(im, 1)->name, size >= 72 ? STR("a.cu") : STR("")));
        assert_true(str_eq(image_entry(im, 1)->options, size >= 96 ? STR("-g -O3") : STR("")));
        make_expect_text(im, 1, MAKE_PTX);
        image_free(im);
        make_free(&m);
    }
}

static void good_several(void **state)
{
    struct make m = {0};
    size_t at = make_fatbin(&m);
    make_entry(&m, (struct make_entry){.kind = 2, .arch = 90, .flags = 0x100000, .data = STR("\177ELF")});
    make_entry(&m, (struct make_entry){.kind = 8, .arch = 90, .data = STR("link time code")});
    make_entry(&m, (struct make_entry){.kind = 1, .arch = 100, .flags = 0x200000, .data = STR(MAKE_PTX)});
    make_fatbin_end(&m, at);
    make_raw(&m, NULL, 24);
    make_one(&m, IMAGE_ZSTD);
    make_fatbin_end(&m, make_fatbin(&m));  // an empty one
    struct image *im = make_open(&m, 4, 0);
    assert_int_equal(image_entry(im, 0)->kind, IMAGE_CUBIN);
    assert_int_equal(image_entry(im, 0)->suffix, 'a');
    assert_int_equal(image_entry(im, 1)->kind, IMAGE_OTHER);
    assert_int_equal(image_entry(im, 1)->number, 8);
    assert_int_equal(image_entry(im, 2)->suffix, 'f');
    assert_int_equal(image_entry(im, 2)->fatbin, 0);
    assert_int_equal(image_entry(im, 3)->fatbin, 1);
    make_expect_text(im, 2, MAKE_PTX);
    make_expect_text(im, 3, MAKE_PTX);
    image_free(im);
    make_free(&m);
}

// Options of a cubin are a binary record: not text, and not damage.
static void good_binary_options(void **state)
{
    struct make m = {0};
    size_t at = make_fatbin(&m);
    make_entry(&m, (struct make_entry){.kind = 2, .options = "\1\2\3", .data = STR("\177ELF")});
    make_entry(&m, (struct make_entry){.kind = 1, .options = "\1\2\3", .data = STR(MAKE_PTX)});
    make_fatbin_end(&m, at);
    struct image *im = make_open(&m, 2, 0);
    assert_int_equal(image_entry(im, 0)->options.len, 0);
    assert_int_equal(image_entry(im, 1)->options.len, 0);
    image_free(im);
    make_free(&m);
}

// Makes three modules in two fatbins; `field` of the first module is set to value.
static struct image *open_with(struct make *m, enum image_compression compression, size_t field,
                               uint64_t value, size_t size, unsigned entries, unsigned damage)
{
    struct make_entry e = {
        .kind = 1, .compression = compression, .name = "x", .options = "-O1", .data = STR(MAKE_PTX)};
    size_t at = make_fatbin(m), entry = make_entry(m, e);
    make_entry(m, e);
    make_fatbin_end(m, at);
    make_one(m, IMAGE_PLAIN);
    make_set(m, entry + field, value, size);
    return make_open(m, entries, damage);
}

struct row {
    enum image_compression compression;
    size_t field;
    uint64_t value;
    size_t size;
    unsigned entries, damage;
    bool readable;  // the first one, although it is reported as damaged
};

static void check_rows(const struct row *rows, size_t n)
{
    for (const struct row *r = rows; r < rows + n; r++) {
        struct make m = {0};
        struct image *im = open_with(&m, r->compression, r->field, r->value, r->size, r->entries, r->damage);
        struct make_sink s = make_sink();
        struct image_buffer buf = {0};
        struct str data;
        bool first = image_entry(im, 0)->offset == 16;
        assert_int_equal(image_entry(im, 0)->damaged, first && !r->readable);
        if (first)
            assert_int_equal(image_read(im, 0, &s.sink, &buf, &data), r->readable ? 0 : -EINVAL);
        make_expect_text(im, r->entries - 1, MAKE_PTX);
        image_buffer_free(&buf);
        image_free(im);
        make_free(&m);
    }
}

static void good_fields(void **state)
{
    const uint64_t text = strlen(MAKE_PTX);
    const struct row rows[] = {
        {IMAGE_PLAIN, MAKE_COMPRESSED_SIZE, UINT32_MAX, 4, 3, 0, true},  // says nothing about plain data
        {IMAGE_ZSTD, MAKE_FULL_SIZE, text, 8, 3, 0, true},
        {IMAGE_PLAIN, MAKE_NAME_LEN, 0, 4, 3, 0, true},
        {IMAGE_PLAIN, MAKE_NAME_LEN, 24, 4, 3, 0, true},  // up to the header's end
        {IMAGE_PLAIN, MAKE_OPTIONS, 0, 4, 3, 0, true},
    };
    check_rows(rows, sizeof rows / sizeof rows[0]);
}

static void bad_fields(void **state)
{
    const struct row rows[] = {
        {IMAGE_PLAIN, MAKE_HEADER_SIZE, 63, 4, 1, 1, true},
        {IMAGE_PLAIN, MAKE_HEADER_SIZE, UINT32_MAX, 4, 1, 1, true},
        {IMAGE_PLAIN, MAKE_PAYLOAD_SIZE, 1 << 20, 8, 2, 1, false},
        {IMAGE_PLAIN, MAKE_PAYLOAD_SIZE, UINT64_MAX, 8, 2, 1, false},
        {IMAGE_PLAIN, MAKE_PAYLOAD_SIZE, UINT64_MAX - 87, 8, 2, 1, false},  // header and payload sum up to 0
        {IMAGE_ZSTD, MAKE_COMPRESSED_SIZE, 1000, 4, 3, 1, false},
        {IMAGE_LZ4, MAKE_COMPRESSED_SIZE, UINT32_MAX, 4, 3, 1, false},
        {IMAGE_ZSTD, MAKE_COMPRESSED_SIZE, 0, 4, 3, 1, false},
        {IMAGE_ZSTD, MAKE_FULL_SIZE, (uint64_t)1 << 30, 8, 3, 1, false},
        {IMAGE_LZ4, MAKE_FULL_SIZE, 1 << 20, 8, 3, 1, false},
        {IMAGE_ZSTD, MAKE_FULL_SIZE, UINT64_MAX, 8, 3, 1, false},
        {IMAGE_PLAIN, MAKE_NAME, UINT32_MAX, 4, 3, 1, true},
        {IMAGE_PLAIN, MAKE_NAME_LEN, 25, 4, 3, 1, true},
        {IMAGE_PLAIN, MAKE_NAME_LEN, UINT32_MAX, 4, 3, 1, true},
        {IMAGE_PLAIN, MAKE_OPTIONS, 84, 4, 3, 1, true},  // the record crosses the header's end
        {IMAGE_PLAIN, MAKE_OPTIONS, 4, 4, 3, 1, true},   // the record is some other pair of numbers
    };
    check_rows(rows, sizeof rows / sizeof rows[0]);
}

static void bad_fatbin_size(void **state)
{
    const uint64_t sizes[] = {1 << 20, UINT64_MAX, UINT64_MAX - 15};
    for (int i = 0; i < 3; i++) {
        struct make m = {0};
        make_one(&m, IMAGE_PLAIN);
        size_t second = m.len;
        make_one(&m, IMAGE_ZSTD);
        make_set(&m, 8, sizes[i], 8);
        struct image *im = make_open(&m, 2, 1);
        make_expect_text(im, 0, MAKE_PTX);
        make_expect_text(im, 1, MAKE_PTX);
        image_free(im);
        make_set(&m, second + 8, sizes[i], 8);
        image_free(make_open(&m, 2, 2));
        make_free(&m);
    }
}

// Neither the fatbin nor its module has a plausible end: the next fatbin is still found.
static void bad_fatbin_and_module_size(void **state)
{
    struct make m = {0};
    make_one(&m, IMAGE_PLAIN);
    size_t second = m.len;
    make_one(&m, IMAGE_ZSTD);
    make_set(&m, 8, 1 << 20, 8);
    make_set(&m, 16 + MAKE_PAYLOAD_SIZE, 1 << 20, 8);
    struct image *im = make_open(&m, 2, 2);
    assert_true(image_entry(im, 0)->damaged);
    assert_int_equal(image_entry(im, 1)->offset, second + 16);
    make_expect_text(im, 1, MAKE_PTX);
    image_free(im);
    make_set(&m, 16 + MAKE_HEADER_SIZE, 0, 4);
    image_free(make_open(&m, 1, 2));
    make_free(&m);
}

static void bad_version(void **state)
{
    struct make m = {0};
    make_one(&m, IMAGE_PLAIN);
    make_one(&m, IMAGE_PLAIN);
    make_set(&m, 4, 2, 2);
    image_free(make_open(&m, 1, 1));
    make_set(&m, 4, 1, 2);
    make_set(&m, 6, 15, 2);
    image_free(make_open(&m, 1, 1));
    make_set(&m, 4, 2, 2);
    make_set(&m, 6, 16, 2);
    make_set(&m, 8, UINT64_MAX, 8);
    image_free(make_open(&m, 1, 1));
    make_free(&m);
}

static void bad_bytes_between(void **state)
{
    struct make m = {0};
    make_one(&m, IMAGE_PLAIN);
    make_raw(&m, "nonsense", 8);
    make_one(&m, IMAGE_PLAIN);
    make_raw(&m, "end", 3);
    image_free(make_open(&m, 2, 2));
    make_free(&m);
}

static void bad_cut_at_every_byte(void **state)
{
    struct make m = {0};
    make_one(&m, IMAGE_ZSTD);
    size_t first = m.len;
    make_one(&m, IMAGE_PLAIN);
    image_free(make_open(&m, 2, 0));
    for (size_t len = 0; len < m.len; len++) {
        struct make cut = {0};
        make_raw(&cut, m.bytes, len);
        make_exercise(cut.bytes, cut.len);
        if (len >= 4 && len != first) {
            struct make_sink s = make_sink();
            struct image *im;
            assert_int_equal(image_open_memory("cut", cut.bytes, cut.len, &s.sink, &im), 0);
            assert_true(image_damage(im) > 0);
            assert_true(image_count(im) <= 1 + (len > first));
            image_free(im);
        }
        make_free(&cut);
    }
    make_free(&m);
}

static void bad_bytes_changed(void **state)
{
    struct make m = {0};
    make_one(&m, IMAGE_ZSTD);
    make_one(&m, IMAGE_LZ4);
    for (size_t i = 0; i < m.len; i++) {
        const char old = m.bytes[i];
        for (int change = 1; change < 256; change *= 2) {
            m.bytes[i] = (char)(old ^ change);
            make_exercise(m.bytes, m.len);
        }
        m.bytes[i] = old;
    }
    make_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_plain),
        cmocka_unit_test(good_compressed),
        cmocka_unit_test(good_header_sizes),
        cmocka_unit_test(good_several),
        cmocka_unit_test(good_binary_options),
        cmocka_unit_test(good_fields),
        cmocka_unit_test(bad_fields),
        cmocka_unit_test(bad_fatbin_size),
        cmocka_unit_test(bad_fatbin_and_module_size),
        cmocka_unit_test(bad_version),
        cmocka_unit_test(bad_bytes_between),
        cmocka_unit_test(bad_cut_at_every_byte),
        cmocka_unit_test(bad_bytes_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
