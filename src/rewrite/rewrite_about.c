// SPDX-License-Identifier: MIT
#include "rewrite/rewrite_about.h"

#include <errno.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/mem.h"
#include "base/readable.h"
#include "base/vec.h"
#include "rewrite/rewrite_source.h"
#include "core/lock.h"

// --- text -------------------------------------------------------------------------------------------------

enum { MOST_PARTS = REWRITE_SOURCE_MOST };

// Writes the length, a newline, and that many bytes.
static void write_part(const struct pass_result *part, struct out *to)
{
    struct out text;
    if (out_to_memory(&text)) {
        to->error = to->error ? to->error : -ENOMEM;
        return;
    }
    pass_describe(part, &text);
    to->error = to->error ? to->error : text.error;
    out_fmt(to, "%zu\n", text.len);
    out_bytes(to, text.buf, text.len);
    out_close(&text);
}

void rewrite_about_parts(struct pass_result *const *parts, unsigned nparts, struct out *to)
{
    out_lit(to, "parts\n");
    for (unsigned i = 0; i < nparts; i++)
        write_part(parts[i], to);
}

void rewrite_about_left(enum rewrite_why why, const char *detail, struct out *to)
{
    out_fmt(to, "left %u %s\n", (unsigned)why, detail);
}

static bool take_number(struct str *s, char end, size_t most, size_t *n)
{
    size_t i = 0;
    *n = 0;
    for (; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9' && *n <= most; i++)
        *n = *n * 10 + (size_t)(s->ptr[i] - '0');
    if (!i || i == s->len || s->ptr[i] != end || *n > most)
        return false;
    *s = str_skip(*s, i + 1);
    return true;
}

static void free_parts(struct rewrite *r)
{
    for (unsigned i = 0; i < r->nparts; i++)
        pass_result_free(r->parts[i]);
    mem_free(r->parts);
    r->parts = NULL;
    r->nparts = 0;
}

static int read_parts(struct str rest, struct rewrite *r)
{
    int err = 0;
    r->nparts = 0;
    r->parts = mem_zalloc(MOST_PARTS, sizeof(struct pass_result *));
    if (!r->parts)
        return -ENOMEM;
    while (!err && rest.len) {
        size_t n;
        if (r->nparts == MOST_PARTS || !take_number(&rest, '\n', SIZE_MAX / 20, &n) || n > rest.len)
            err = -EINVAL;
        else
            err = pass_description((struct str){rest.ptr, n}, &r->parts[r->nparts]);
        if (!err) {
            r->nparts++;
            rest = str_skip(rest, n);
        }
    }
    if (!err && !r->nparts)
        err = -EINVAL;
    if (err)
        free_parts(r);
    return err;
}

static int read_left(struct str rest, struct rewrite *r)
{
    size_t why;
    if (!take_number(&rest, ' ', REWRITE_WHYS - 1, &why) || !why || !rest.len ||
        rest.ptr[rest.len - 1] != '\n')
        return -EINVAL;
    r->why = (enum rewrite_why)why;
    snprintf(r->detail, sizeof r->detail, "%.*s", (int)(rest.len - 1), rest.ptr);
    return 0;
}

int rewrite_about_read(struct str about, struct rewrite *r)
{
    struct str parts = STR("parts\n"), left = STR("left ");
    if (str_starts(about, parts))
        return read_parts(str_skip(about, parts.len), r);
    return str_starts(about, left) ? read_left(str_skip(about, left.len), r) : -EINVAL;
}

// --- images of links --------------------------------------------------------------------------------------

struct known {
    XXH128_hash_t sum;
    size_t size;
    uint64_t start;  // first bytes: most other images differ there
    struct str about;
};

static struct lock lock = LOCK_INIT(REWRITE_ABOUT);  // a leaf
static VEC(struct known) known;

void rewrite_about_remember(const void *image, size_t size, struct str about)
{
    struct known k = {.size = size, .about = about};
    char *copy = size < sizeof k.start ? NULL : mem_alloc(about.len + 1);
    if (!copy)
        return;
    k.sum = XXH3_128bits(image, size);
    memcpy(&k.start, image, sizeof k.start);
    k.about.ptr = memcpy(copy, about.ptr, about.len);
    lock_take(&lock);
    for (size_t i = 0; copy && i < known.len; i++)
        if (known.items[i].size == size && XXH128_isEqual(known.items[i].sum, k.sum)) {
            mem_free(copy);
            copy = NULL;
        }
    if (copy && vec_push(&known, k))
        mem_free(copy);
    lock_give(&lock);
}

bool rewrite_about_recall(const void *image, struct rewrite *r)
{
    bool found = false;
    uint64_t start;
    if (!readable_bytes(image, sizeof start))
        return false;
    memcpy(&start, image, sizeof start);
    lock_take(&lock);
    for (size_t i = 0; i < known.len && !found; i++) {
        const struct known *k = &known.items[i];
        found = k->start == start && readable_bytes(image, k->size) &&
                XXH128_isEqual(XXH3_128bits(image, k->size), k->sum) && !rewrite_about_read(k->about, r);
    }
    lock_give(&lock);
    return found;
}

void rewrite_about_after_fork(void)
{
    lock_after_fork(&lock);
}
