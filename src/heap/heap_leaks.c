// SPDX-License-Identifier: MIT
// A conservative search, as in garbage collectors: a word in writable memory outside the heap that looks like
// the address of a block or of a byte in it keeps that block alive; so does one in a block that is kept.
// Stacks are writable memory; registers of other threads are not read.
//
// The program's other threads go on meanwhile: they free blocks, and move pointers from where was not looked
// yet to where was. So a block counts as leaked only if several searches in a row do not reach it, and if it
// is still the same block behind them.
#include "heap/heap_leaks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/block.h"
#include "heap/monitor.h"
#include "heap/deliver.h"
#include "heap/safe_read.h"
#include "heap/guarded.h"
#include "heap/heap_report.h"
#include "heap/producer.h"
#include "heap/span.h"
#include "heap/unmapped.h"

enum { PIECE = 1 << 16, MOST_REPORTS = 100, MOST_COPIES = 10 };
// How many searches in a row must find the same leaks, with and without other threads that allocate; and how
// many are made in all.
enum { SEARCHES = 8, SEARCHES_ALONE = 2, MOST_SEARCHES = 24 };
#define ARENA_BYTES ((uint64_t)64 << 20)  // glibc's heaps for threads start at multiples of this

struct found {
    uint64_t start, size, ticket;
    bool kept;
};

struct search {
    struct found *blocks;  // sorted by address
    size_t count, room;
    size_t *todo, ntodo;  // kept, and not scanned yet
    uint64_t *piece;      // a copy of what is scanned; where the search itself does not find it
    uint64_t stack;       // this thread's stack pointer: what lies below is dead
};

// Returns whether the block is live. A head that changed while it was copied may be invalid; it is copied
// again.
static bool is_live_copy(const char *block, struct block_head *h)
{
    for (int i = 0; i < MOST_COPIES; i++) {
        if (block_is_live(block, h) || block_is_resized(block, h))
            return true;
        if (block_is_freed(block, h) || !safe_read_one(block - BLOCK_HEAD, sizeof *h, h))
            return false;
    }
    return false;
}

// A block that is being resized at this moment is in use, perhaps from registers only, so the block is kept.
static void add(void *ctx, uint64_t word, const struct block_head *copy)
{
    struct search *s = ctx;
    const char *block = block_of_word(word);
    struct block_head h = *copy;
    if (s->count < s->room && is_live_copy(block, &h))
        s->blocks[s->count++] = (struct found){(uint64_t)(uintptr_t)block, block_info_of(block, &h).size,
                                               h.ticket, block_is_resized(block, &h)};
}

// Shell sort, because the C library's sorts allocate.
static void sort(struct found *a, size_t n)
{
    for (size_t gap = n / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (size_t i = gap; i < n; i++) {
            struct found f = a[i];
            size_t k = i;
            for (; k >= gap && a[k - gap].start > f.start; k -= gap)
                a[k] = a[k - gap];
            a[k] = f;
        }
}

static void keep(struct search *s, uint64_t address)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->blocks[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return;
    struct found *f = &s->blocks[low - 1];
    if (address - f->start > f->size || f->kept)
        return;
    f->kept = true;
    s->todo[s->ntodo++] = low - 1;
}

static void scan(struct search *s, uint64_t start, uint64_t size)
{
    for (uint64_t at = (start + 7) / 8 * 8; at + 8 <= start + size; at += PIECE) {
        uint64_t n = start + size - at < PIECE ? (start + size - at) / 8 * 8 : PIECE;
        if (!safe_read_one((const void *)(uintptr_t)at, n, s->piece))
            continue;
        for (uint64_t i = 0; i < n / 8; i++)
            keep(s, s->piece[i]);
    }
}

// Returns the first block at or behind an address; s->count if there is none.
static size_t first_block(const struct search *s, uint64_t address)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->blocks[middle].start < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Finds the range around a block that belongs to its allocator: a mapping for the block alone, a heap of
// glibc's for a thread, or all that is mapped from `start` to `end`.
static void find_owned(const struct found *f, uint64_t *start, uint64_t *end)
{
    uint64_t arena = f->start / ARENA_BYTES * ARENA_BYTES;
    if (f->size >= UNMAPPED_LEAST && unmapped_may_be((const void *)(uintptr_t)f->start)) {
        *start = f->start - UNMAPPED_OFFSET;
        *end = (f->start + f->size + BLOCK_TAIL + UNMAPPED_PAGE - 1) / UNMAPPED_PAGE * UNMAPPED_PAGE;
    } else if (arena >= *start) {
        *start = arena;
        *end = *end - arena < ARENA_BYTES ? *end : arena + ARENA_BYTES;
    }
}

// Scans a mapping, but for what belongs to allocators there: freed blocks hold old pointers. The kernel makes
// one mapping of neighbours, so that one with blocks may hold a stack or memory of the program too.
static void scan_around_blocks(struct search *s, uint64_t start, uint64_t end)
{
    for (size_t i; (i = first_block(s, start)) < s->count && s->blocks[i].start < end;) {
        uint64_t owned = start, owned_end = end;
        find_owned(&s->blocks[i], &owned, &owned_end);
        if (owned > start)
            scan(s, start, owned - start);
        start = owned_end;
    }
    if (start < end)
        scan(s, start, end - start);
}

// Queues the blocks that are kept already.
static void queue_kept(struct search *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->blocks[i].kept)
            s->todo[s->ntodo++] = i;
}

// A line of /proc/self/maps: "start-end rights offset device inode  name".
static void scan_line(struct search *s, const char *line)
{
    char *rest;
    uint64_t start = strtoull(line, &rest, 16), end = *rest == '-' ? strtoull(rest + 1, &rest, 16) : 0;
    bool writable = end > start && strncmp(rest, " rw", 3) == 0;
    if (start <= s->stack && s->stack < end)
        start = s->stack;
    // Our own tables know every block; they lie between guard pages and are skipped. Freed
    // memory in spans is skipped too.
    if (writable && !guarded_is(start) && !span_has((void *)(uintptr_t)start))
        scan_around_blocks(s, start, end);
}

static void scan_roots(struct search *s)
{
    static char text[8192];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t have = 0;
    for (ssize_t n; fd >= 0 && (n = read(fd, text + have, sizeof text - 1 - have)) > 0;) {
        have += (size_t)n;
        text[have] = 0;
        char *line = text, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            scan_line(s, line);
        }
        have = (size_t)(text + have - line);
        memmove(text, line, have);
    }
    if (fd >= 0)
        close(fd);
    while (s->ntodo) {
        struct found *f = &s->blocks[s->todo[--s->ntodo]];
        scan(s, f->start, f->size);
    }
}

// Returns whether a block is live and was neither freed nor resized since it was found.
static bool is_unchanged(const struct found *f)
{
    const char *block = (const char *)(uintptr_t)f->start;
    struct block_head h;
    return safe_read_one(block - BLOCK_HEAD, sizeof h, &h) && h.ticket == f->ticket &&
           block_is_live(block, &h);
}

// Returns how many blocks are leaked as far as is known; keeps those that have changed.
static size_t count_leaked(struct search *s)
{
    size_t leaked = 0;
    for (size_t i = 0; i < s->count; i++) {
        s->blocks[i].kept = s->blocks[i].kept || !is_unchanged(&s->blocks[i]);
        leaked += !s->blocks[i].kept;
    }
    return leaked;
}

static bool has_other_threads(void)
{
    int alive = 0;  // relaxed, all: a thread that has just ended only costs some searches
    for (struct producer *w = producer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed))
        alive += atomic_load_explicit(&w->state, memory_order_relaxed) == PRODUCER_ALIVE;
    return alive > 1;
}

// Searches until nothing is leaked, or the same blocks are in several searches in a row.
static void search(struct search *s)
{
    size_t leaked = s->count;
    int enough = has_other_threads() ? SEARCHES : SEARCHES_ALONE;
    for (int i = 0, same = 0; i < MOST_SEARCHES && leaked && same < enough; i++) {
        size_t before = leaked;
        queue_kept(s);
        scan_roots(s);
        leaked = count_leaked(s);
        same = leaked == before ? same + 1 : 1;
    }
}

static uint32_t site_of_found(const struct found *f)
{
    return block_made_at(f->ticket);
}

// Reports once per allocation site.
static void report(struct search *s)
{
    int reports = 0;
    for (size_t i = 0; i < s->count && reports < MOST_REPORTS; i++) {
        struct found *f = &s->blocks[i];
        uint64_t blocks = 0, bytes = 0;
        if (f->kept)
            continue;
        for (size_t k = i; k < s->count; k++)
            if (!s->blocks[k].kept && site_of_found(&s->blocks[k]) == site_of_found(f)) {
                s->blocks[k].kept = true;
                blocks++;
                bytes += s->blocks[k].size;
            }
        char *block = (char *)(uintptr_t)f->start;
        heap_report_leak(block, block_head_of(block), blocks, bytes);
        reports++;
    }
}

void heap_leaks_report(void)
{
    struct search s = {0};
    for (unsigned i = 0; i < deliver_lists(); i++)
        s.room += monitor_stats(i).known + 1024;
    s.blocks = guarded_map(s.room * sizeof *s.blocks);
    s.todo = guarded_map(s.room * sizeof *s.todo);
    s.piece = guarded_map(PIECE);
    s.stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    for (unsigned i = 0; s.blocks && s.todo && s.piece && i < deliver_lists(); i++)
        if (monitor_await_lock(i)) {
            monitor_visit(i, add, &s);
            monitor_unlock(i);
        }
    sort(s.blocks, s.count);
    search(&s);
    report(&s);
    guarded_unmap(s.blocks, s.room * sizeof *s.blocks);
    guarded_unmap(s.todo, s.room * sizeof *s.todo);
    guarded_unmap(s.piece, PIECE);
}
