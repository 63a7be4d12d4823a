// SPDX-License-Identifier: MIT
// Compiled modules on disk, so that a program's second start need not compile them again.
//
// A folder with a file per entry. An entry is found by what it was made from: the content, what was done to it, the
// architecture and the driver; and has two parts, the image and what there is to know about it.
//
//   The folder is its user's alone (0700). A hash is no authentication: whoever can write there can make us run code.
//   So a folder that is a link, belongs to somebody else or is open to others is refused.
//   Files appear under their name when they are complete. Any number of processes may use the folder at once.
//   An entry that is damaged, or is not what its name says, is removed and counts as missing. Lengths and sums cover
//   every byte.
//   What was not used for longest goes when the folder grows beyond its size.
//
// Nothing here is needed: after any failure the caller goes on without. No descriptor stays open between calls, because
// programs close what they do not know. All functions may be called by several threads.
#ifndef MOAT_IMAGE_CACHE_H
#define MOAT_IMAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct cache;

enum { CACHE_MOST_PASS = 95 };  // characters
#define CACHE_SIZE ((uint64_t)1 << 30)

struct cache_key {
    struct str content;
    const char *pass;  // what was done to it, with versions; at most CACHE_MOST_PASS characters
    uint32_t arch;
    uint32_t driver;  // its version
};

// The parts lie in memory of the entry, the image aligned as malloc would.
struct cache_entry {
    struct str image, about;
    void *map;
    size_t map_len;
};

struct cache_counts {
    uint64_t hits, misses, broken, stored, evicted;
};

// folder: absolute, without "moat" being added to it; NULL: $XDG_CACHE_HOME/moat or ~/.cache/moat. Makes it, and the
// folder above it, where they are missing. size: bytes that all entries may take; 0: CACHE_SIZE.
// 0; -EDESTADDRREQ: no place is known; -EPERM: it is not ours alone; -ENOMEM; or what the system says.
int cache_open(const char *folder, uint64_t size, struct cache **out);
void cache_close(struct cache *c);
const char *cache_folder(const struct cache *c);

// Whether entries can be written: 0, or as cache_open.
int cache_writable(const struct cache *c);

// What an error of these says of the folder, in words.
const char *cache_why(int err);

// For people: what there is. Makes and changes nothing; a folder that is not there yet has no entries.
struct cache_size {
    char folder[4096];  // empty: none is known
    uint64_t entries, bytes;
    bool there;
};
int cache_measure(const char *folder, struct cache_size *out);  // as cache_open

// 0, -ENOENT if there is none, or what the system says. cache_entry_free must follow a 0.
int cache_get(struct cache *c, const struct cache_key *key, struct cache_entry *out);
void cache_entry_free(struct cache_entry *e);

// 0, -EFBIG if it is larger than the cache or than the process may write, -ENOSPC, -EINVAL for a key that is too
// long, or what the system says. Either the whole entry is there afterwards or nothing of it.
int cache_put(struct cache *c, const struct cache_key *key, struct str image, struct str about);

struct cache_counts cache_counts(const struct cache *c);

// --- the form of an entry, for cache.c and tests ------------------------------------------------------------

// The file is this header, the image, what is about it. All sums are XXH3, 128 bits.
struct cache_header {
    char magic[8];
    uint64_t sum[2];      // of the rest of the header
    uint64_t content[2];  // sum of what it was made from
    uint64_t content_len;
    uint64_t image_len, about_len;
    uint64_t image_sum[2], about_sum[2];
    uint32_t arch, driver;
    char pass[CACHE_MOST_PASS + 1];  // NULs to its end
    uint64_t spare[7];               // 0
};
_Static_assert(sizeof(struct cache_header) == 256, "it is part of a file");

enum { CACHE_NAME = 36 };  // 32 digits, ".mod"

int cache_format_header(const struct cache_key *key, struct str image, struct str about,
                        struct cache_header *out);
void cache_format_seal(struct cache_header *h);  // sets h->sum
void cache_format_name(const struct cache_header *h, char name[CACHE_NAME + 1]);
// Is the file an entry for the key that `wanted` was made from? Then the parts, inside of it.
bool cache_format_read(struct str file, const struct cache_header *wanted, struct str *image,
                       struct str *about);

#endif
