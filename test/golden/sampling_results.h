// SPDX-License-Identifier: MIT
// Files of results: all of them as they were recorded, or packed.
//
// Packed, compressed by zstd: a line that names the device, and for each case
//   u64 key       of its name and its code; a case that has changed since is no longer found
//   u64 hash      of all results
//   u32 stage, u32 result, u32 words, u32 kept, and as many of the words
#ifndef MOAT_TEST_GOLDEN_SAMPLING_RESULTS_H
#define MOAT_TEST_GOLDEN_SAMPLING_RESULTS_H

#include <zstd.h>

#include "base/vec.h"
#include "sampling_run.h"

enum { KEPT_EXACT = 8 * SAMPLING_OUT, KEPT_NEAR = 96 * SAMPLING_OUT };

// Where it is unknown what a GPU does bit by bit: by what part of 1 results may differ, and how many of 1000
// rows may differ by more.
static const struct near {
    const char *has, *too;
    double by;
    unsigned more;
} nears[] = {
    {"s8x", " linear", 1.01 / 32767, 0},
    {"srgb", " linear", 0.03, 5},
    {"grad", "", 0.025, 25},
    {"cube", "", 0, 25},
};

static const struct near *near_of(const struct sampling *c)
{
    for (size_t k = 0; k < sizeof nears / sizeof *nears; k++)
        if (strstr(c->name, nears[k].has) && strstr(c->name, nears[k].too))
            return &nears[k];
    return NULL;
}

struct packed {
    uint64_t key, hash;
    uint32_t stage, result, n, kept;
};

static uint64_t mix_bytes(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (; n; n--)
        hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

static uint64_t case_key(const struct sampling *c)
{
    return mix_bytes(mix_bytes(c->rows, c->name, strlen(c->name)), c->code, strlen(c->code));
}

static struct packed pack(const struct sampling *c, const struct outcome *o)
{
    unsigned most = near_of(c) ? KEPT_NEAR : KEPT_EXACT;
    return (struct packed){case_key(c), mix_bytes(1, o->words, 4 * (size_t)o->n),
                           o->stage,    o->result,
                           o->n,        o->n < most ? o->n : most};
}

// --- all results ------------------------------------------------------------------------------------------

struct raw_head {
    char name[128];
    uint32_t stage, result, n;
};

static int raw_write(FILE *f, const struct sampling *c, const struct outcome *o)
{
    struct raw_head h = {.stage = o->stage, .result = o->result, .n = o->n};
    memcpy(h.name, c->name, sizeof h.name);
    return fwrite(&h, sizeof h, 1, f) == 1 && fwrite(o->words, 4, o->n, f) == o->n ? 0 : -1;
}

// Returns the next case that is in the list; NULL at the end.
static const struct sampling *raw_read(FILE *f, const struct samplings *all, struct outcome *o)
{
    struct raw_head h;
    while (fread(&h, sizeof h, 1, f) == 1) {
        if (h.n > SAMPLING_MOST / 4 || fread(o->words, 4, h.n, f) != h.n)
            return NULL;
        o->stage = h.stage;
        o->result = (CUresult)h.result;
        o->n = h.n;
        for (size_t i = 0; i < all->n; i++)
            if (!strcmp(all->items[i].name, h.name))
                return &all->items[i];
    }
    return NULL;
}

// --- packed -----------------------------------------------------------------------------------------------

typedef VEC(char) bytes;

static int put(bytes *to, const void *data, size_t n)
{
    if (vec_reserve(to, n))
        return -1;
    memcpy(to->items + to->len, data, n);
    to->len += n;
    return 0;
}

static int packed_add(bytes *to, const struct sampling *c, const struct outcome *o)
{
    struct packed p = pack(c, o);
    return put(to, &p, sizeof p) || put(to, o->words, 4 * (size_t)p.kept) ? -1 : 0;
}

static int packed_write(const char *path, const bytes *from)
{
    size_t room = ZSTD_compressBound(from->len);
    char *packed = malloc(room);
    size_t n = packed ? ZSTD_compress(packed, room, from->items, from->len, 19) : 0;
    FILE *f = n && !ZSTD_isError(n) ? fopen(path, "wb") : NULL;
    int bad = !f || fwrite(packed, 1, n, f) != n;
    if (f && fclose(f))
        bad = 1;
    free(packed);
    return bad;
}

// Returns the bytes behind the first line; NULL if there is no such file.
static char *packed_read(const char *path, size_t *size)
{
    enum { MOST = 64 << 20 };
    static char packed[MOST / 8];
    FILE *f = fopen(path, "rb");
    char *all = malloc(MOST);
    size_t n = f ? fread(packed, 1, sizeof packed, f) : 0;
    if (f)
        fclose(f);
    *size = n && all ? ZSTD_decompress(all, MOST, packed, n) : 0;
    if (!n || ZSTD_isError(*size)) {
        free(all);
        return NULL;
    }
    return all;
}

#endif
