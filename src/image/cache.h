// SPDX-License-Identifier: MIT
// Compiled modules on disk, so that a program's second start need not compile them again.
//
// The cache is a folder with a file per entry. The key of an entry is what it was made from: the content, the
// passes that rewrote it, the architecture and the driver. An entry has two parts: the image, and a
// description of it.
//
//   The folder is its user's alone (0700). A hash is no authentication: whoever can write there can make us
//   run code. So a folder that is a link, belongs to somebody else or is open to others is refused.
//   Files appear under their name when they are complete. Any number of processes may use the folder at once.
//   An entry that is damaged, or does not match its name, is removed and counts as missing. Lengths and sums
//   cover every byte.
//   The least recently used entries are removed when the folder grows beyond its size.
//
// The cache is optional: after any failure the caller continues without it. No descriptor stays open between
// calls, because programs close descriptors that they do not know. All functions may be called by several
// threads.
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
    const char *pass;  // the passes that rewrote it, with versions; at most CACHE_MOST_PASS characters
    uint32_t arch;
    uint32_t driver;  // version
};

// A cached entry. Its parts lie in its own memory, the image aligned as by malloc.
struct cache_entry {
    struct str image, about;
    void *map;
    size_t map_len;
};

struct cache_counts {
    uint64_t hits, misses, broken, stored, evicted;
};

// Opens the cache in folder, an absolute path to which "moat" is not added; NULL: $XDG_CACHE_HOME/moat or
// ~/.cache/moat. Creates the folder and its parent if they are missing. size: bytes that all entries may
// take; 0: CACHE_SIZE. Returns 0; -EDESTADDRREQ: no folder is known; -EINVAL: not a full path; -EPERM: the
// folder is not ours alone; -ENOMEM; or the system's negative code.
int cache_open(const char *folder, uint64_t size, struct cache **out);
void cache_close(struct cache *c);
const char *cache_folder(const struct cache *c);

// Returns 0 if entries can be written, else the system's negative code.
int cache_writable(const struct cache *c);

// Returns the meaning of an error code of these functions, in words.
const char *cache_why(int err);

// The size of a cache, for people. cache_measure creates and changes no entry; a folder that does not exist
// has no entries.
struct cache_size {
    char folder[4096];  // empty: no folder is known
    uint64_t entries, bytes;
    bool there;
};
int cache_measure(const char *folder, struct cache_size *out);  // returns as cache_open

// Reads an entry. Returns 0, -ENOENT if there is none, or the system's negative code. After 0 the caller must
// call cache_entry_free.
int cache_get(struct cache *c, const struct cache_key *key, struct cache_entry *out);
void cache_entry_free(struct cache_entry *e);

// Writes an entry, all of it or nothing. Returns 0, -EFBIG if it is larger than the cache or than the process
// may write, -ENOSPC, -EINVAL for a key that is too long, or the system's negative code.
int cache_put(struct cache *c, const struct cache_key *key, struct str image, struct str about);

struct cache_counts cache_counts(const struct cache *c);

// Of several processes or threads that find no entry, one should make it while the others wait. The claim is
// the lock of a file in the folder, so it ends with its process.
struct cache_claim {
    int fd;                           // negative: none
    uint64_t device, inode;           // of the lock's file, since the program may close or reuse fd
    char name[sizeof ".lock-" + 32];  // of the file
};
// Claims the making of an entry, and waits while others have the claim, at most `most` milliseconds; then, or
// if the folder cannot be used, there is no claim, and the caller goes on without. The entry may be there
// afterwards. The caller must call cache_unclaim.
void cache_claim(struct cache *c, const struct cache_key *key, unsigned most, struct cache_claim *claim);
void cache_unclaim(struct cache *c, struct cache_claim *claim);

// --- the form of an entry, for cache.c and tests -----------------------------------------------------------

// The file is this header, the image, the description. All sums are XXH3, 128 bits.
struct cache_header {
    char magic[8];
    uint64_t sum[2];      // of the rest of the header
    uint64_t content[2];  // sum of the key's content
    uint64_t content_len;
    uint64_t image_len, about_len;
    uint64_t image_sum[2], about_sum[2];
    uint32_t arch, driver;
    char pass[CACHE_MOST_PASS + 1];  // padded with NULs
    uint64_t spare[7];               // 0
};
_Static_assert(sizeof(struct cache_header) == 256, "it is part of a file");

enum { CACHE_NAME = 36 };  // 32 digits, ".mod"

int cache_format_header(const struct cache_key *key, struct str image, struct str about,
                        struct cache_header *out);
void cache_format_seal(struct cache_header *h);  // sets h->sum
void cache_format_name(const struct cache_header *h, char name[CACHE_NAME + 1]);
// Returns whether the file is an entry for the key that `wanted` was made from; sets the parts, which lie
// inside of it.
bool cache_format_read(struct str file, const struct cache_header *wanted, struct str *image,
                       struct str *about);

#endif
