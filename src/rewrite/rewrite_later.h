// SPDX-License-Identifier: MIT
// Checked variants of a module's kernels that are compiled when they are wanted, each as a module of its own,
// while the program's own image is loaded unchanged (pass/pass_variants.h). Compiled variants are kept in the
// cache, by the text of the module and the variant's name.
#ifndef MOAT_REWRITE_REWRITE_LATER_H
#define MOAT_REWRITE_REWRITE_LATER_H

#include "image/cache.h"
#include "rewrite/rewrite_jit.h"
#include "rewrite/rewrite_source.h"

struct rewrite_later;

void rewrite_later_start(struct cache *cache);  // NULL: none

// Returns NULL if out of memory. key: of rewrite.c, with passes and options; sum: of the program's text.
struct rewrite_later *rewrite_later_new(const struct rewrite_jit *jit, const char *key, unsigned arch,
                                        const struct rewrite_source_sum *sum);
// Give it the text of the pass `variants`, which either holds and which is freed with it.
void rewrite_later_entry(struct rewrite_later *l, const struct cache_entry *entry);
void rewrite_later_result(struct rewrite_later *l, struct pass_result *result);
void rewrite_later_free(struct rewrite_later *l);  // NULL is fine

// Returns whether the driver has the addresses of all variables that the variants need.
bool rewrite_later_fits(const struct pass_check *checks, const void *handle, bool library);

// A compiled variant.
struct rewrite_variant {
    const void *image;
    CUlinkState link;
    struct cache_entry entry;
    bool cached;
};
// How many registers a variant may use at most; 0: no limit.
struct rewrite_limits {
    unsigned registers;  // in any case
    unsigned beside;     // if its cold code is marked (pass_cold.h)
};
// Compiles the variant of that name, or finds it in the cache.
// One thread may call this for a module at a time. Returns false after a failure, and writes the reason.
// rewrite_variant_free must follow.
bool rewrite_later_make(struct rewrite_later *l, const char *name, const struct rewrite_limits *limits,
                        struct rewrite_variant *out, char *why, size_t size);
void rewrite_variant_free(struct rewrite_variant *v);

#endif
