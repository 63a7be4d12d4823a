// SPDX-License-Identifier: MIT
#include "heap/foreign.h"

#include <errno.h>
#include <unistd.h>

#include "heap/monitor.h"
#include "heap/deliver.h"
#include "heap/safe_read.h"
#include "heap/heap_report.h"
#include "heap/span.h"
#include "heap/next_malloc.h"

foreign_words foreign_map, foreign_mapped_map;

// --- glibc's own blocks: two words before each, sizes and flags ---

enum { IN_USE_BEFORE = 1, MAPPED = 2, FLAGS = 7 };
#define LARGEST_CHUNK (1ull << 46)

static bool is_chunk_size(uint64_t size)
{
    return (size & ~(uint64_t)FLAGS) >= 32 && (size & 8) == 0 && size < LARGEST_CHUNK;
}

static bool is_mapped_chunk(uint64_t at, uint64_t before, uint64_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return before < page && (at - before) % page == 0 && (before + (size & ~(uint64_t)FLAGS)) % page == 0;
}

static bool is_glibc_block(const char *p)
{
    uint64_t words[2], next;
    if ((uintptr_t)p % BLOCK_ALIGN || !safe_read_one(p - 16, sizeof words, words) || !is_chunk_size(words[1]))
        return false;
    if (words[1] & MAPPED)
        return is_mapped_chunk((uint64_t)(uintptr_t)p - 16, words[0], words[1]);
    // The following chunk has a flag that this one is in use.
    return safe_read_one(p - 8 + (words[1] & ~(uint64_t)FLAGS), sizeof next, &next) && next & IN_USE_BEFORE &&
           next < LARGEST_CHUNK;
}

// --- errors ---

struct finder {
    const char *p;
    char *owner;
    uint64_t word;  // that of the owner
    struct block_head head;
    bool damaged;  // p is one of our blocks, with an overwritten head
};

// Returns whether the block was ever allocated; false for one that was only cut from a span.
static bool was_allocated(const char *block, const struct block_head *h)
{
    return block_is_live(block, h) || block_info_of(block, h).size || block_made_at(h->ticket) ||
           block_freed_at(block, h);
}

static void visit_block(void *ctx, uint64_t word, const struct block_head *h)
{
    struct finder *f = ctx;
    char *block = block_of_word(word);
    bool valid = block_is_live(block, h) || block_is_freed(block, h);
    if (valid && !was_allocated(block, h))
        return;
    if (!valid && block == f->p) {
        f->damaged = true;
    } else if (valid) {
        uint64_t size = block_info_of(block, h).size;
        const char *start = block - BLOCK_HEAD;
        if (f->p < start || f->p > block + size || (f->owner && f->p != block))
            return;
    } else {
        return;
    }
    f->owner = block;
    f->word = word;
    f->head = *h;
}

static void find_owner(struct finder *f)
{
    monitor_all_now();
    for (unsigned i = 0; i < deliver_lists(); i++)
        if (monitor_await_lock(i)) {
            monitor_visit(i, visit_block, f);
            monitor_unlock(i);
        }
}

static void report(struct finder *f, const char *call, uint32_t site)
{
    find_owner(f);
    if (f->damaged) {
        if (heap_report_make_known(f->word))
            heap_report_head(f->owner, &f->head);
    } else if (f->owner && f->owner == f->p) {
        heap_report_double_free(f->owner, &f->head, call, site);
    } else {
        heap_report_bad_free(f->p, call, site, f->owner, &f->head);
    }
}

bool foreign_judge(void *p, const char *call, uint32_t site)
{
    int saved = errno;
    struct block_head own, behind;
    struct finder f = {.p = p};
    bool readable =
        (uintptr_t)p % BLOCK_ALIGN == 0 && safe_read_one((char *)p - BLOCK_HEAD, sizeof own, &own);
    bool pass = false;
    if (readable && block_is_freed(p, &own) && was_allocated(p, &own)) {
        heap_report_double_free(p, &own, call, site);
    } else {
        // A pointer to the start of what the next allocator gave us is as wrong as any other into our block.
        bool ours =
            safe_read_one(p, sizeof behind, &behind) && block_is_live((char *)p + BLOCK_HEAD, &behind);
        pass = !ours && !span_has(p) && next_malloc.is_glibc && is_glibc_block(p);
        if (!pass)
            report(&f, call, site);
    }
    errno = saved;
    return pass;
}
