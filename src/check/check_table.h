// SPDX-License-Identifier: MIT
// The table of kcheck.h as the host keeps it: which blocks touch which chunks, and from that the directory
// and the records, which check_device.h copies to the devices.
//
//   block    [base, base + size), live or freed. Outer blocks are disjoint; so are inner ones, which
//            allocators announce inside outer ones.
//   chunk    2 MiB of addresses. It has one record, that of the only block that ever touched it, or a record
//            for each slot: then it is divided for good.
//   slot     its record says what touches it; several blocks become a list of records (MIXED)
//
//   directory word of a chunk = 0                            no block ever touched it
//                             = record of its block << 32    one block, not divided
//                             = first record << 32 | kcheck_reciprocal(stride)
//   record 0 = {0, 0}, to which a word of 0 leads
//
// Records that are no longer needed are used again only when every kernel that may have found them has ended.
// Not thread-safe; the caller has a lock.
#ifndef MOAT_CHECK_CHECK_TABLE_H
#define MOAT_CHECK_CHECK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kcheck/kcheck.h"

enum {
    CHECK_TABLE_PAGE_WORDS = 1 << 18,  // words of the directory that share 2 MiB of memory
    CHECK_TABLE_PAGES = KCHECK_DIRECTORY_WORDS / CHECK_TABLE_PAGE_WORDS,
    CHECK_TABLE_PIECE = 1 << 17,  // records that share 2 MiB of memory
    CHECK_TABLE_PIECES = 1 << 11,
};

enum check_table_flags {
    CHECK_TABLE_INNER = 1,   // announced inside other memory
    CHECK_TABLE_LOOSE = 2,   // see KCHECK_LOOSE
    CHECK_TABLE_SHARES = 4,  // inner blocks in it stay known: registered memory
    // It may be freed in the order of a stream: its chunks are divided at once, because a record that a
    // stream will change must not move.
    CHECK_TABLE_ORDERED = 8,
    // It is forgotten when it ends: memory that the driver does not report may get a variable's addresses.
    CHECK_TABLE_FORGOTTEN = 16,
};

struct check_table_block {
    uint64_t base, size;
    uint64_t serial;  // tells blocks at one address apart
    unsigned flags;
};

// Words or records that have changed, in the order in which they must be written: first all records, then all
// words.
struct check_table_run {
    uint32_t first, count;
};

struct check_table;
struct check_table *check_table_new(void);  // NULL: out of memory
void check_table_free(struct check_table *t);

// Adds a live block. What is known of others at its addresses is forgotten. Return 0, -EINVAL for a block
// that the table cannot describe, or -ENOMEM: then the table is no longer right, and check_table_failed says
// so.
int check_table_add(struct check_table *t, const struct check_table_block *b);
// Marks a block as freed, or forgets it (CHECK_TABLE_FORGOTTEN). Returns false if it is not the live block
// with that base and serial.
bool check_table_mark(struct check_table *t, uint64_t base, uint64_t serial);
// Marks the outer block at an address as one that is handed out in inner blocks: KCHECK_POOL.
void check_table_pool(struct check_table *t, uint64_t address);
// Forgets the inner blocks that overlap the range.
int check_table_withdraw(struct check_table *t, uint64_t base, uint64_t end);
// Divides chunks for blocks of which each lies in its own `stride` bytes, a multiple of 256, from base on.
// base and bytes are multiples of a chunk. Chunks that a block has touched before stay as they are.
int check_table_divide(struct check_table *t, uint64_t base, uint64_t bytes, uint64_t stride);
bool check_table_failed(const struct check_table *t);

// The number of launches so far, and of those that have ended: records are used again by it.
void check_table_launches(struct check_table *t, uint64_t count, uint64_t ended);

// What has changed since check_table_clean.
const struct check_table_run *check_table_records_changed(const struct check_table *t, size_t *n);
const struct check_table_run *check_table_words_changed(const struct check_table *t, size_t *n);
void check_table_clean(struct check_table *t);

// The contents. check_table_piece returns the CHECK_TABLE_PIECE records from n * CHECK_TABLE_PIECE on, and
// check_table_page the words of a page; NULL: all of it is 0.
struct kcheck_record *check_table_piece(const struct check_table *t, uint32_t n);
uint64_t *check_table_page(const struct check_table *t, uint32_t n);
uint32_t check_table_records(const struct check_table *t);  // numbers below this one are in use
// Returns which words of a page may be other than 0.
struct check_table_run check_table_page_used(const struct check_table *t, uint32_t n);

// Returns whether the equations above hold; for tests.
bool check_table_valid(const struct check_table *t);

#endif
