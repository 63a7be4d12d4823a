// SPDX-License-Identifier: MIT
// The file format of a cache entry.
#include <errno.h>
#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "image/cache.h"

// The last digit is the version of the format.
#define MAGIC "moatmod1"

static void sum_of(const void *data, size_t len, uint64_t sum[2])
{
    XXH128_hash_t h = XXH3_128bits(data, len);
    sum[0] = h.low64;
    sum[1] = h.high64;
}

static bool sum_is(struct str data, const uint64_t expected[2])
{
    uint64_t sum[2];
    sum_of(data.ptr, data.len, sum);
    return sum[0] == expected[0] && sum[1] == expected[1];
}

enum { SUMMED_FROM = offsetof(struct cache_header, content) };

static struct str summed(const struct cache_header *h)
{
    return (struct str){(const char *)h + SUMMED_FROM, sizeof *h - SUMMED_FROM};
}

void cache_format_seal(struct cache_header *h)
{
    struct str rest = summed(h);
    sum_of(rest.ptr, rest.len, h->sum);
}

int cache_format_header(const struct cache_key *key, struct str image, struct str about,
                        struct cache_header *out)
{
    size_t len = strlen(key->pass);
    if (len > CACHE_MOST_PASS)
        return -EINVAL;
    *out = (struct cache_header){.content_len = key->content.len,
                                 .image_len = image.len,
                                 .about_len = about.len,
                                 .arch = key->arch,
                                 .driver = key->driver};
    memcpy(out->magic, MAGIC, sizeof out->magic);
    memcpy(out->pass, key->pass, len);
    sum_of(key->content.ptr, key->content.len, out->content);
    sum_of(image.ptr, image.len, out->image_sum);
    sum_of(about.ptr, about.len, out->about_sum);
    cache_format_seal(out);
    return 0;
}

// The parts of a key that are hashed to the file's name, and nothing of the entry itself.
struct key_bytes {
    char magic[8];
    uint64_t content[2], content_len;
    uint32_t arch, driver;
    char pass[CACHE_MOST_PASS + 1];
};

static struct key_bytes key_bytes(const struct cache_header *h)
{
    struct key_bytes k;
    memset(&k, 0, sizeof k);
    memcpy(k.magic, h->magic, sizeof k.magic);
    memcpy(k.content, h->content, sizeof k.content);
    k.content_len = h->content_len;
    k.arch = h->arch;
    k.driver = h->driver;
    memcpy(k.pass, h->pass, sizeof k.pass);
    return k;
}

void cache_format_name(const struct cache_header *h, char name[CACHE_NAME + 1])
{
    struct key_bytes k = key_bytes(h);
    uint64_t sum[2];
    sum_of(&k, sizeof k, sum);
    snprintf(name, CACHE_NAME + 1, "%016llx%016llx.mod", (unsigned long long)sum[1],
             (unsigned long long)sum[0]);
}

bool cache_format_read(struct str file, const struct cache_header *wanted, struct str *image,
                       struct str *about)
{
    struct cache_header h;
    if (file.len < sizeof h)
        return false;
    memcpy(&h, file.ptr, sizeof h);
    struct key_bytes got = key_bytes(&h), want = key_bytes(wanted);
    if (memcmp(&got, &want, sizeof got) || !sum_is(summed(&h), h.sum))
        return false;
    uint64_t left = file.len - sizeof h;
    if (h.image_len > left || h.about_len != left - h.image_len)
        return false;
    *image = (struct str){file.ptr + sizeof h, h.image_len};
    *about = (struct str){image->ptr + image->len, h.about_len};
    return sum_is(*image, h.image_sum) && sum_is(*about, h.about_sum);
}
