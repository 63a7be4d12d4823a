// SPDX-License-Identifier: MIT
// The results of a combination, and the file that holds those of a device.
//
// The file, compressed by zstd, holds a line that names the device, and for each combination a record:
//   u64 key      of the kernel and its inputs; a combination that has changed since is no longer found
//   u64 hash     of the results of tuples KEPT to INPUT_COUNT, NaNs made equal
//   u32 length   and as many bytes: the results of the first KEPT tuples, word by word
#ifndef MOAT_TEST_GOLDEN_RESULTS_H
#define MOAT_TEST_GOLDEN_RESULTS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zstd.h>

#include "kernel.h"

enum { KEPT = 256, ZSTD_LEVEL = 19, ZSTD_WINDOW = 26 };

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (; n; n--)
        hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

// A word of a row of results.
struct word {
    uint8_t bits;
    struct input is;
};

static unsigned result_words(const struct combo *c, struct word words[KERNEL_WORDS])
{
    unsigned n = 0;
    if (c->form->flags & PTX_CC_WRITE)
        words[n++] = (struct word){32, {INPUT_INT, 32, 1, false}};
    for (unsigned i = 0; i < c->nout; i++)
        for (unsigned w = 0; w < slot_words(&c->out[i]); w++)
            words[n++] = (struct word){c->out[i].bits == 128 ? 64 : c->out[i].bits, c->out[i].input};
    struct input in[KERNEL_WORDS];
    if (kernel_shows_cell(c) && kernel_inputs(c, in))
        for (unsigned w = 0; w < 2; w++)
            words[n++] = (struct word){64, in[0]};
    return n;
}

static uint64_t same_nan(struct word w, uint64_t v)
{
    if (w.is.kind != INPUT_FLOAT)
        return v;
    struct format f = format_of(&w.is);
    for (unsigned e = 0; e < w.is.parts; e++) {
        uint64_t part = input_cut(v >> (e * f.bits), f.bits - 1);
        if (part > format_make(f, 0, 2 * f.bias + 1, 0))
            v |= input_cut(UINT64_MAX, f.bits) << (e * f.bits);
    }
    return v;
}

static uint64_t hash_results(const struct combo *c, const uint64_t *rows, size_t first, size_t last)
{
    struct word words[KERNEL_WORDS];
    unsigned n = result_words(c, words);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = first; i < last; i++)
        for (unsigned k = 0; k < n; k++) {
            hash = (hash ^ same_nan(words[k], rows[i * n + k])) * UINT64_C(0x9e3779b97f4a7c15);
            hash ^= hash >> 32;
        }
    return hash;
}

// Packs the first KEPT rows, word by word, each in its own width; predicates eight a byte. Returns the number
// of bytes.
static size_t pack_results(const struct combo *c, const uint64_t *rows, unsigned char *to)
{
    struct word words[KERNEL_WORDS];
    unsigned n = result_words(c, words);
    size_t at = 0;
    for (unsigned k = 0; k < n; k++) {
        if (words[k].bits == 1) {
            memset(to + at, 0, KEPT / 8);
            for (unsigned i = 0; i < KEPT; i++)
                to[at + i / 8] |= (unsigned char)((rows[i * n + k] & 1) << i % 8);
            at += KEPT / 8;
            continue;
        }
        for (unsigned i = 0; i < KEPT; i++, at += words[k].bits / 8)
            memcpy(to + at, &rows[i * n + k], words[k].bits / 8);
    }
    return at;
}

// Unpacks them. Returns false if that many bytes are not the results of this combination.
static bool unpack_results(const struct combo *c, const unsigned char *from, size_t len, uint64_t *rows)
{
    struct word words[KERNEL_WORDS];
    unsigned n = result_words(c, words);
    size_t at = 0;
    memset(rows, 0, (size_t)KEPT * n * sizeof *rows);
    for (unsigned k = 0; k < n; k++) {
        size_t bytes = (size_t)KEPT * words[k].bits / 8;
        if (len - at < bytes)
            return false;
        for (unsigned i = 0; i < KEPT; i++)
            if (words[k].bits == 1)
                rows[i * n + k] = from[at + i / 8] >> i % 8 & 1;
            else
                memcpy(&rows[i * n + k], from + at + (size_t)i * words[k].bits / 8, words[k].bits / 8);
        at += bytes;
    }
    return at == len;
}

// --- inputs, once for each shape --------------------------------------------------------------------------

struct inputs {
    struct input in[KERNEL_WORDS];
    unsigned n;
    uint64_t *values, hash;
};

struct bank {
    VEC(struct inputs) list;
};

static const struct inputs *bank_find(struct bank *b, const struct combo *c)
{
    struct inputs new = {0};
    new.n = kernel_inputs(c, new.in);
    for (size_t i = 0; i < b->list.len; i++)
        if (b->list.items[i].n == new.n && !memcmp(b->list.items[i].in, new.in, sizeof new.in))
            return &b->list.items[i];
    new.values = mem_zalloc((size_t)INPUT_COUNT * (new.n + 1), 8);
    if (!new.values)
        return NULL;
    input_fill(new.in, new.n, new.values);
    new.hash = hash_bytes(new.n, new.values, (size_t)INPUT_COUNT * new.n * 8);
    return vec_push(&b->list, new) ? NULL : &b->list.items[b->list.len - 1];
}

static void bank_free(struct bank *b)
{
    for (size_t i = 0; i < b->list.len; i++)
        mem_free(b->list.items[i].values);
    vec_free(&b->list);
}

static uint64_t combo_key(const struct combo *c, const struct inputs *in)
{
    struct out text;
    if (out_to_memory(&text))
        return 0;
    kernel_print(c, &text);
    uint64_t key = hash_bytes(in->hash, text.buf, text.len);
    out_close(&text);
    return key;
}

// --- the file ---------------------------------------------------------------------------------------------

struct record {
    uint64_t key, hash;
    uint32_t len;
    const unsigned char *bytes;
};

struct results {
    char *device;  // the first line, without its end
    VEC(struct record) list;
    struct map keys;  // by the eight bytes of a key
    char *data;
};

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    char *text = NULL;
    if (f && !fstat(fileno(f), &st) && (text = calloc(1, (size_t)st.st_size + 1))) {
        *size = fread(text, 1, (size_t)st.st_size, f);
        if (*size != (size_t)st.st_size) {
            free(text);
            text = NULL;
        }
    }
    if (!text)
        fprintf(stderr, "golden: %s: %s\n", path, strerror(errno));
    if (f)
        fclose(f);
    return text;
}

static char *read_compressed(const char *path, size_t *size)
{
    size_t packed_size;
    char *packed = read_file(path, &packed_size), *data = NULL;
    if (!packed)
        return NULL;
    unsigned long long full = ZSTD_getFrameContentSize(packed, packed_size);
    if (full < UINT64_C(1) << 32 && (data = calloc(1, (size_t)full + 1))) {
        *size = ZSTD_decompress(data, (size_t)full, packed, packed_size);
        if (ZSTD_isError(*size) || *size != full) {
            free(data);
            data = NULL;
        }
    }
    if (!data)
        fprintf(stderr, "golden: %s: not a file of results\n", path);
    free(packed);
    return data;
}

static void results_free(struct results *r)
{
    vec_free(&r->list);
    map_free(&r->keys);
    free(r->data);
}

// Splits data into records; of equal keys the first one counts.
static int results_index(struct results *r, char *data, size_t size)
{
    char *line = memchr(data, '\n', size);
    r->data = r->device = data;
    if (!line || memcmp(data, "moat golden 1: ", 15))
        return -EINVAL;
    *line = '\0';
    enum { HEAD = 20 };
    for (size_t at = (size_t)(line + 1 - data); at < size;) {
        struct record rec;
        if (size - at < HEAD)
            return -EINVAL;
        memcpy(&rec.key, data + at, 8);
        memcpy(&rec.hash, data + at + 8, 8);
        memcpy(&rec.len, data + at + 16, 4);
        rec.bytes = (unsigned char *)data + at + HEAD;
        if (size - at - HEAD < rec.len)
            return -EINVAL;
        struct str key = {data + at, 8};
        if (map_get(&r->keys, key) == MAP_NONE &&
            (map_put(&r->keys, key, (uint32_t)r->list.len) || vec_push(&r->list, rec)))
            return -ENOMEM;
        at += HEAD + rec.len;
    }
    return 0;
}

static int results_read(struct results *r, const char *path)
{
    size_t size;
    *r = (struct results){0};
    char *data = read_compressed(path, &size);
    if (!data)
        return -EIO;
    int err = results_index(r, data, size);
    if (err)
        fprintf(stderr, "golden: %s: not a file of results\n", path);
    return err;
}

static const struct record *results_find(const struct results *r, uint64_t key)
{
    uint32_t i = map_get(&r->keys, (struct str){(const char *)&key, 8});
    return i == MAP_NONE ? NULL : &r->list.items[i];
}

static void results_put(struct out *to, const struct record *rec)
{
    out_bytes(to, (const char *)&rec->key, 8);
    out_bytes(to, (const char *)&rec->hash, 8);
    out_bytes(to, (const char *)&rec->len, 4);
    out_bytes(to, (const char *)rec->bytes, rec->len);
}

static int write_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) {
        fprintf(stderr, "golden: %s: %s\n", path, strerror(errno));
        return -EIO;
    }
    return 0;
}

static int write_compressed(const char *path, const struct out *data)
{
    size_t room = ZSTD_compressBound(data->len);
    void *packed = mem_alloc(room);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    int err = -ENOMEM;
    if (packed && z) {
        ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, ZSTD_LEVEL);
        ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, ZSTD_WINDOW);
        size_t size = ZSTD_compress2(z, packed, room, data->buf, data->len);
        err = ZSTD_isError(size) ? -EIO : write_file(path, packed, size);
        printf("%zu bytes, compressed to %zu\n", data->len, size);
    }
    ZSTD_freeCCtx(z);
    mem_free(packed);
    return err;
}

#endif
