// SPDX-License-Identifier: MIT
#include "image/image_make.h"

// Makes a fatbin with one cubin of these bytes; returns the offset of its entry.
static size_t make_packed(struct make *m, enum image_compression compression, struct str data)
{
    size_t at = make_fatbin(m);
    size_t entry = make_entry(m, (struct make_entry){.kind = 2, .compression = compression, .data = data});
    make_fatbin_end(m, at);
    return entry;
}

static int read_first(const struct make *m, struct make_sink *s, struct image_buffer *buf, struct str *data,
                      struct image **im)
{
    *s = make_sink();
    assert_int_equal(image_open_memory("made", m->bytes, m->len, &s->sink, im), 0);
    assert_int_equal(image_count(*im), 1);
    return image_read(*im, 0, &s->sink, buf, data);
}

static void expect_failure(const struct make *m, int expected)
{
    struct make_sink s;
    struct image_buffer buf = {0};
    struct str data;
    struct image *im;
    assert_int_equal(read_first(m, &s, &buf, &data, &im), expected);
    assert_true(s.sink.errors > 0);
    image_buffer_free(&buf);
    image_free(im);
}

static void good_sizes(void **state)
{
    static const size_t sizes[] = {1, 7, 8, 9, 1000, 200000};
    struct image_buffer buf = {0};  // reused
    for (int how = IMAGE_PLAIN; how <= IMAGE_ZSTD; how++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            char *bytes = malloc(sizes[i]);
            assert_non_null(bytes);
            for (size_t k = 0; k < sizes[i]; k++)
                bytes[k] = (char)(k * k >> 3);
            struct make m = {0};
            struct make_sink s;
            struct str data;
            struct image *im;
            make_packed(&m, how, (struct str){bytes, sizes[i]});
            assert_int_equal(read_first(&m, &s, &buf, &data, &im), 0);
            assert_int_equal(data.len, how == IMAGE_PLAIN ? (sizes[i] + 7) / 8 * 8 : sizes[i]);
            assert_memory_equal(data.ptr, bytes, sizes[i]);
            assert_true((data.ptr == image_entry(im, 0)->payload.ptr) == (how == IMAGE_PLAIN));
            image_free(im);
            make_free(&m);
            free(bytes);
        }
    image_buffer_free(&buf);
    image_buffer_free(&buf);
}

// 16 MiB of zeros compress far more than code does, and are valid.
static void good_zeros(void **state)
{
    const size_t size = 16 << 20;
    char *zeros = calloc(size, 1);
    assert_non_null(zeros);
    struct make m = {0};
    struct make_sink s;
    struct image_buffer buf = {0};
    struct str data;
    struct image *im;
    make_packed(&m, IMAGE_ZSTD, (struct str){zeros, size});
    assert_true(m.len < 4096);
    assert_int_equal(read_first(&m, &s, &buf, &data, &im), 0);
    assert_int_equal(data.len, size);
    assert_memory_equal(data.ptr, zeros, size);
    image_buffer_free(&buf);
    image_free(im);
    make_free(&m);
    free(zeros);
}

static void bad_declared_sizes(void **state)
{
    const struct str text = STR("some bytes, some bytes, some bytes, some bytes, some bytes");
    for (int how = IMAGE_LZ4; how <= IMAGE_ZSTD; how++)
        for (int off = -1; off <= 1; off += 2) {
            struct make m = {0};
            size_t entry = make_packed(&m, how, text);
            make_set(&m, entry + MAKE_FULL_SIZE, text.len + (size_t)off, 8);
            expect_failure(&m, -EINVAL);
            make_set(&m, entry + MAKE_FULL_SIZE, 0, 8);
            expect_failure(&m, -EINVAL);
            make_free(&m);
        }
}

// The compressed size is one byte too small, and one larger than the payload.
static void bad_compressed_size(void **state)
{
    const struct str text = STR("some bytes, some bytes, some bytes, some bytes, some bytes");
    for (int how = IMAGE_LZ4; how <= IMAGE_ZSTD; how++) {
        struct make m = {0};
        size_t entry = make_packed(&m, how, text);
        uint32_t size;
        memcpy(&size, m.bytes + entry + MAKE_COMPRESSED_SIZE, sizeof size);
        make_set(&m, entry + MAKE_COMPRESSED_SIZE, le32toh(size) - 1, 4);
        expect_failure(&m, -EINVAL);
        memcpy(&size, m.bytes + entry + MAKE_PAYLOAD_SIZE, sizeof size);
        make_set(&m, entry + MAKE_COMPRESSED_SIZE, le32toh(size) + 1, 4);
        expect_failure(&m, -EINVAL);
        image_free(make_open(&m, 1, 1));
        make_free(&m);
    }
}

static void bad_frame(void **state)
{
    struct make m = {0};
    size_t entry = make_packed(&m, IMAGE_ZSTD, STR("some bytes"));
    m.bytes[entry + 64] ^= 1;
    expect_failure(&m, -EINVAL);
    make_free(&m);
}

static void bad_kind(void **state)
{
    struct make m = {0};
    size_t entry = make_packed(&m, IMAGE_ZSTD, STR("some bytes"));
    make_set(&m, entry, 8, 2);
    expect_failure(&m, -ENOTSUP);
    make_free(&m);
}

// The first NUL ends PTX, wherever it is.
static void good_text_ends(void **state)
{
    struct make m = {0};
    size_t at = make_fatbin(&m);
    make_entry(&m, (struct make_entry){.kind = 1, .compression = IMAGE_ZSTD, .data = STR("text\0more\0")});
    make_entry(&m, (struct make_entry){.kind = 1, .data = STR("text\0")});
    make_entry(&m, (struct make_entry){.kind = 1, .data = STR("8 bytes.")});
    make_entry(&m, (struct make_entry){.kind = 1});
    make_fatbin_end(&m, at);
    struct image *im = make_open(&m, 4, 0);
    make_expect_text(im, 0, "text");
    make_expect_text(im, 1, "text");
    make_expect_text(im, 2, "8 bytes.");
    make_expect_text(im, 3, "");
    image_free(im);
    make_free(&m);
}

static void bad_memory(void **state)
{
    struct make m = {0};
    struct make_sink s;
    struct image_buffer buf = {0};
    struct str data;
    struct image *im;
    make_one(&m, IMAGE_LZ4);
    assert_int_equal(read_first(&m, &s, &buf, &data, &im), 0);
    image_buffer_free(&buf);
    mem_fail_after(0);
    int err = image_read(im, 0, &s.sink, &buf, &data);
    mem_fail_after(-1);
    assert_int_equal(err, -ENOMEM);
    assert_int_equal(s.sink.errors, 1);
    assert_int_equal(image_read(im, 0, &s.sink, &buf, &data), 0);
    image_buffer_free(&buf);
    image_free(im);
    make_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_sizes),         cmocka_unit_test(good_zeros),
        cmocka_unit_test(bad_declared_sizes), cmocka_unit_test(bad_compressed_size),
        cmocka_unit_test(bad_frame),          cmocka_unit_test(bad_kind),
        cmocka_unit_test(good_text_ends),     cmocka_unit_test(bad_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
