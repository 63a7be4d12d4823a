// SPDX-License-Identifier: MIT
// Any bytes as an entry of the cache, and an entry's description of its module: reading it must fail, or give
// parts that lie inside the entry and print to what they were read from.
//
// The first byte of an input selects what is repaired before it is read, otherwise the checksums would reject
// almost everything: 1 the key, 2 the sums of the parts, if the lengths allow it, 4 the sum of the header.
// The seeds in corpus/cache are an entry that `moat ptx instrument` could have made, whole and truncated, and
// descriptions.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/cache.h"
#include "pass/pass.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct cache_header wanted(struct str image, struct str about)
{
    struct cache_key key = {.content = STR("content"), .pass = "count.1", .arch = 90, .driver = 13000};
    struct cache_header h;
    require(!cache_format_header(&key, image, about, &h));
    return h;
}

static void put_right(char *file, size_t len, unsigned what)
{
    struct cache_header h, right;
    if (len < sizeof h)
        return;
    memcpy(&h, file, sizeof h);
    size_t left = len - sizeof h;
    bool fits = h.image_len <= left && h.about_len <= left - h.image_len;
    struct str image = {file + sizeof h, fits ? h.image_len : 0};
    right = wanted(image, (struct str){image.ptr + image.len, fits ? h.about_len : 0});
    if (what & 2) {
        memcpy(h.image_sum, right.image_sum, sizeof h.image_sum);
        memcpy(h.about_sum, right.about_sum, sizeof h.about_sum);
    }
    right.image_len = h.image_len;
    right.about_len = h.about_len;
    memcpy(right.image_sum, h.image_sum, sizeof h.image_sum);
    memcpy(right.about_sum, h.about_sum, sizeof h.about_sum);
    if (what & 1)
        h = right;
    if (what & 4)
        cache_format_seal(&h);
    memcpy(file, &h, sizeof h);
}

// Returns whether its printed form reads as the same.
static bool is_normal(const struct pass_result *r)
{
    struct out o;
    if (out_to_memory(&o))
        return true;
    pass_describe(r, &o);
    struct pass_result *again;
    bool same = !pass_description((struct str){o.buf, o.len}, &again);
    if (same)
        same = again->nfuncs == r->nfuncs && again->nsymbols == r->nsymbols && again->lowered == r->lowered;
    pass_result_free(again);
    out_close(&o);
    return same;
}

static void describe(struct str text)
{
    struct pass_result *r;
    if (pass_description(text, &r)) {
        require(!r);
        return;
    }
    require(is_normal(r));
    pass_result_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (!len)
        return 0;
    char *file = malloc(len);
    require(file);
    memcpy(file, bytes + 1, len - 1);
    struct cache_header want = wanted(STR(""), STR(""));
    struct str whole = {file, len - 1}, image, about;
    put_right(file, whole.len, bytes[0] & 7);
    if (cache_format_read(whole, &want, &image, &about)) {
        require(image.ptr == file + sizeof want);
        require(about.ptr == image.ptr + image.len && about.len <= whole.len);
        require(sizeof want + image.len + about.len == whole.len);
        describe(about);
    } else {
        describe(whole);
    }
    free(file);
    return 0;
}
