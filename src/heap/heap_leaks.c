// SPDX-License-Identifier: MIT
// A conservative search, as in garbage collectors: a word in writable memory outside the heap that looks like
// the address of a block or of a byte in it keeps that block alive; so does one in a block that is kept.
// Stacks are writable memory; registers of other threads are not read.
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
#include "heap/span.h"

enum { PIECE = 1 << 16, MOST_REPORTS = 100, MOST_COPIES = 10 };

struct found {
    uint64_t start, size, word;
    uint32_t made_at;
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
                                               word, block_made_at(h.ticket), block_is_resized(block, &h)};
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

static bool holds_blocks(const struct search *s, uint64_t start, uint64_t end)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->blocks[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->blocks[low].start < end;
}

// Queues the blocks that are kept without a pointer to them.
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
    // Our own tables know every block; they lie between guard pages and are skipped. So is freed memory in
    // spans.
    if (writable && !holds_blocks(s, start, end) && !guarded_is(start) && !span_has((void *)(uintptr_t)start))
        scan(s, start, end - start);
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
            if (!s->blocks[k].kept && s->blocks[k].made_at == f->made_at) {
                s->blocks[k].kept = true;
                blocks++;
                bytes += s->blocks[k].size;
            }
        const char *block = block_of_word(f->word);
        heap_report_leak(block, block_head_of((void *)(uintptr_t)block), blocks, bytes);
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
    queue_kept(&s);
    scan_roots(&s);
    report(&s);
    guarded_unmap(s.blocks, s.room * sizeof *s.blocks);
    guarded_unmap(s.todo, s.room * sizeof *s.todo);
    guarded_unmap(s.piece, PIECE);
}
