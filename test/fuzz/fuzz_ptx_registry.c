// SPDX-License-Identifier: MIT
// The input is a list of pairs, each the lengths of machine code and of PTX, 16 bits each, and both: they are
// added to the registry. What was accepted begins as an ELF file and as PTX, and is found again by the
// machine code, as texts between NULs, also when other bytes follow the code; what was refused
// changes nothing. All bytes are copied into memory of exactly their size, so that a sanitizer sees any
// access beyond.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"
#include "image/ptx_registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

struct input {
    const uint8_t *at;
    size_t left;
};

static size_t length(struct input *in)
{
    size_t n = 0;
    for (int i = 0; i < 2 && in->left; i++, in->left--)
        n = n << 8 | *in->at++;
    return n;
}

// Returns the next n bytes, or those that are left, in memory of their own.
static struct str take(struct input *in, size_t n)
{
    n = n < in->left ? n : in->left;
    char *copy = malloc(n ? n : 1);
    require(copy);
    memcpy(copy, in->at, n);
    in->at += n;
    in->left -= n;
    return (struct str){copy, n};
}

static void ignore(struct diag_sink *sink, const struct diag *d)
{
}

// An image of the code lists the text as its last entry.
static void open_image(struct str code)
{
    struct diag_sink sink = {.emit = ignore};
    struct image *im;
    if (image_open_memory("module", code.ptr, code.len, &sink, &im))
        return;
    for (unsigned i = 0; i < image_count(im); i++) {
        struct image_buffer buffer = {0};
        struct str text;
        image_read(im, i, &sink, &buffer, &text);
        image_buffer_free(&buffer);
    }
    image_free(im);
}

static void add(struct str code, struct str ptx)
{
    struct str before, after;
    uint32_t count = ptx_registry_count();
    bool known = ptx_registry_find(code, &before);
    int err = ptx_registry_add(code, ptx);
    require(ptx_registry_count() == count + (!err && !known));
    require(ptx_registry_find(code, &after) == (known || !err));
    if (err) {
        require(!known || after.ptr == before.ptr);
        return;
    }
    require(code.len >= 4 && !memcmp(code.ptr, "\177ELF", 4));
    size_t len = strnlen(ptx.ptr, ptx.len);
    require(known ? after.ptr == before.ptr
                  : after.len >= len && after.len <= ptx.len && !memcmp(after.ptr, ptx.ptr, after.len) &&
                        !after.ptr[after.len]);
    struct str rest = after, text;
    for (size_t seen = 0; ptx_registry_next(&rest, &text); seen += text.len + 1)
        require(text.ptr == after.ptr + seen && !memchr(text.ptr, '\0', text.len) && !text.ptr[text.len] &&
                (rest.len || seen + text.len == after.len));
    char *longer = malloc(code.len + 1);
    require(longer);
    memcpy(longer, code.ptr, code.len);
    longer[code.len] = 'x';
    require(ptx_registry_find((struct str){longer, code.len + 1}, &before) && before.ptr == after.ptr);
    free(longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    while (in.left) {
        size_t code_len = length(&in), ptx_len = length(&in);
        struct str code = take(&in, code_len), ptx = take(&in, ptx_len);
        add(code, ptx);
        open_image(code);
        free((void *)code.ptr);
        free((void *)ptx.ptr);
    }
    ptx_registry_forget();
    return 0;
}
