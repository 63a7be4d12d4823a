// SPDX-License-Identifier: MIT
#include "heap/guarded.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POOL_BYTES = 1 << 18, KEPT_BYTES = 1 << 24 };

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t size)
{
    size_t page = page_size();
    return (size + page - 1) / page * page;
}

// Where mappings start, as far as there is room: the search for leaks must skip them.
enum { KNOWN = 4096 };
static _Atomic uint64_t known[KNOWN];

static void note(uint64_t old, uint64_t now)
{
    // Relaxed: it is read at the end of the process.
    for (int i = 0; i < KNOWN; i++) {
        uint64_t expected = old;
        if (atomic_compare_exchange_strong_explicit(&known[i], &expected, now, memory_order_relaxed,
                                                    memory_order_relaxed))
            return;
    }
}

bool guarded_is(uint64_t start)
{
    for (int i = 0; i < KNOWN; i++)
        if (atomic_load_explicit(&known[i], memory_order_relaxed) == start)
            return true;
    return false;
}

void *guarded_map(size_t size)
{
    size_t page = page_size(), inner = whole_pages(size);
    char *p = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (mprotect(p + page, inner, PROT_READ | PROT_WRITE)) {
        munmap(p, inner + 2 * page);
        return NULL;
    }
    note(0, (uint64_t)(uintptr_t)(p + page));
    return p + page;
}

void guarded_unmap(void *p, size_t size)
{
    size_t page = page_size();
    if (!p)
        return;
    note((uint64_t)(uintptr_t)p, 0);
    munmap((char *)p - page, whole_pages(size) + 2 * page);
}

static char *kept_start(void)
{
    static char *_Atomic kept;
    // Relaxed: the memory is fresh, nothing was written there.
    char *start = atomic_load_explicit(&kept, memory_order_relaxed), *fresh;
    if (!start && (fresh = guarded_map(KEPT_BYTES))) {
        if (atomic_compare_exchange_strong_explicit(&kept, &start, fresh, memory_order_relaxed,
                                                    memory_order_relaxed))
            return fresh;
        guarded_unmap(fresh, KEPT_BYTES);
    }
    return start;
}

void *guarded_keep(size_t size)
{
    static _Atomic size_t used;
    char *start = kept_start();
    size_t whole = whole_pages(size);
    size_t at =
        atomic_fetch_add_explicit(&used, whole, memory_order_relaxed);  // reserves a range for the caller
    return start && at + whole <= KEPT_BYTES ? start + at : guarded_map(size);
}

void *guarded_take(struct guarded_pool *pool)
{
    if (!pool->next || (size_t)(pool->end - pool->next) < pool->size) {
        char *p = guarded_map(POOL_BYTES);
        if (!p)
            return NULL;
        pool->next = p;
        pool->end = p + POOL_BYTES;
    }
    void *p = pool->next;
    pool->next += pool->size;
    return p;
}
