// SPDX-License-Identifier: MIT
#include "image/ptx_registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <xxhash.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "image/image_internal.h"
#include "image/ptx_store.h"

struct key {
    uint64_t sum[2], len;
};

// Keys are pointers into items of their own, since the map does not copy them.
struct pair {
    struct key key;
    struct str ptx;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank: leaf; guards what follows
static VEC(struct pair *) pairs;
static struct map by_key;
static uint64_t bytes;

// Relaxed: a thread that reads 0 skips the search. A pair that it must find was added by itself, or by a
// thread with which the program has synchronized since.
static _Atomic uint32_t count;

static struct key key_of(struct str code)
{
    XXH128_hash_t h = XXH3_128bits(code.ptr, code.len);
    return (struct key){{h.low64, h.high64}, code.len};
}

static struct str key_str(const struct key *k)
{
    return (struct str){(const char *)k, sizeof *k};
}

static struct pair *new_pair(const struct key *key, struct str ptx)
{
    struct pair *p = mem_alloc(sizeof *p + ptx.len + 1);
    if (!p)
        return NULL;
    char *text = (char *)(p + 1);
    memcpy(text, ptx.ptr, ptx.len);
    text[ptx.len] = '\0';
    *p = (struct pair){*key, {text, ptx.len}};
    return p;
}

// The lock must be held.
static int add(const struct key *key, struct str ptx)
{
    if (map_get(&by_key, key_str(key)) != MAP_NONE)
        return 0;
    if (ptx.len > PTX_REGISTRY_BYTES - bytes)
        return -ENOSPC;
    struct pair *p = new_pair(key, ptx);
    if (!p || vec_reserve(&pairs, 1) || map_put(&by_key, key_str(&p->key), (uint32_t)pairs.len)) {
        mem_free(p);
        return -ENOMEM;
    }
    pairs.items[pairs.len++] = p;
    bytes += ptx.len;
    atomic_store_explicit(&count, (uint32_t)pairs.len, memory_order_relaxed);
    return 0;
}

// The machine code that the calling thread is measuring.
static _Thread_local struct str measured;

static bool is_within(const void *p, size_t n)
{
    uintptr_t at = (uintptr_t)p - (uintptr_t)measured.ptr;
    return at <= measured.len && n <= measured.len - at;
}

// Cuts machine code where its headers end it: a driver that gets only its address sees no more. Returns false
// if it is no whole ELF file.
static bool measure(struct str *code)
{
    size_t len;
    measured = *code;
    if (!str_starts(*code, STR("\177ELF")) || image_measure(code->ptr, is_within, &len) || len > code->len)
        return false;
    code->len = len;
    return true;
}

bool ptx_registry_next(struct str *rest, struct str *text)
{
    const char *end = rest->len ? memchr(rest->ptr, '\0', rest->len) : NULL;
    *text = (struct str){rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    *rest = end ? str_skip(*rest, text->len + 1) : (struct str){0};
    return text->len;
}

// Returns the texts at the beginning of ptx: up to its end, or to the first NUL behind which no text begins.
static struct str texts_of(struct str ptx)
{
    struct str rest = ptx, text, all = {ptx.ptr, 0};
    while (ptx_registry_next(&rest, &text) && ptx_text_is(text))
        all.len = (size_t)(text.ptr - all.ptr) + text.len;
    return all;
}

int ptx_registry_add(struct str code, struct str ptx)
{
    ptx = texts_of(ptx);
    if (!measure(&code) || !ptx.len)
        return -EINVAL;
    struct key key = key_of(code);
    pthread_mutex_lock(&lock);
    int err = add(&key, ptx);
    pthread_mutex_unlock(&lock);
    return err;
}

static bool find(const struct key *key, struct str *ptx)
{
    pthread_mutex_lock(&lock);
    uint32_t i = map_get(&by_key, key_str(key));
    if (i != MAP_NONE)
        *ptx = pairs.items[i]->ptx;
    pthread_mutex_unlock(&lock);
    return i != MAP_NONE;
}

bool ptx_registry_find(struct str code, struct str *ptx)
{
    struct cache_entry stored;
    if ((!ptx_registry_count() && !ptx_store_is_used()) || !measure(&code))
        return false;
    struct key key = key_of(code);
    if (find(&key, ptx))
        return true;
    if (!ptx_store_get(code, &stored))
        return false;
    int err = ptx_registry_add(code, stored.image);
    cache_entry_free(&stored);
    return !err && find(&key, ptx);
}

uint32_t ptx_registry_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

void ptx_registry_forget(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < pairs.len; i++)
        mem_free(pairs.items[i]);
    vec_free(&pairs);
    map_free(&by_key);
    bytes = 0;
    atomic_store_explicit(&count, 0, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}
