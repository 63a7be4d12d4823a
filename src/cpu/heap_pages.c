// SPDX-License-Identifier: MIT
#include "cpu/heap_pages.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "base/mutex.h"

// --- lists -------------------------------------------------------------------------------------------------

void heap_list_push(struct heap_pages *p, struct heap_list *list, uint32_t page)
{
    struct heap_page *at = &p->page[page];
    at->prev = 0;
    at->next = list->first;
    if (list->first)
        p->page[list->first - 1].prev = page + 1;
    list->first = page + 1;
}

void heap_list_remove(struct heap_pages *p, struct heap_list *list, uint32_t page)
{
    const struct heap_page *at = &p->page[page];
    if (at->prev)
        p->page[at->prev - 1].next = at->next;
    else
        list->first = at->next;
    if (at->next)
        p->page[at->next - 1].prev = at->prev;
}

// --- runs --------------------------------------------------------------------------------------------------

static unsigned bin_of(uint32_t n)
{
    return 31 - (unsigned)__builtin_clz(n);
}

static void add_run(struct heap_pages *p, uint32_t first, uint32_t n)
{
    unsigned b = bin_of(n);
    p->page[first].free = p->page[first + n - 1].free = n;
    heap_list_push(p, &p->bins[b], first);
    p->filled |= 1u << b;
}

static void remove_run(struct heap_pages *p, uint32_t first)
{
    uint32_t n = p->page[first].free;
    unsigned b = bin_of(n);
    p->page[first].free = p->page[first + n - 1].free = 0;
    heap_list_remove(p, &p->bins[b], first);
    if (!p->bins[b].first)
        p->filled &= ~(1u << b);
}

// Runs in the bin of n may be too short; those in larger bins are long enough.
static uint32_t find_run(const struct heap_pages *p, uint32_t n)
{
    unsigned b = bin_of(n);
    for (uint32_t i = p->bins[b].first; i; i = p->page[i - 1].next) {
        if (p->page[i - 1].free >= n)
            return i - 1;
    }
    uint32_t larger = p->filled & ~((2u << b) - 1);
    return larger ? p->bins[__builtin_ctz(larger)].first - 1 : HEAP_NO_PAGE;
}

uint32_t heap_pages_take(struct heap_pages *p, uint32_t n)
{
    assert(n);
    mutex_lock(&p->lock);
    uint32_t first = find_run(p, n);
    if (first != HEAP_NO_PAGE) {
        uint32_t all = p->page[first].free;
        remove_run(p, first);
        if (all > n)
            add_run(p, first + n, all - n);
        p->page[first].taken = n;
    }
    mutex_unlock(&p->lock);
    return first;
}

void heap_pages_give(struct heap_pages *p, uint32_t first)
{
    mutex_lock(&p->lock);
    uint32_t n = p->page[first].taken, after = first + n;
    assert(n && !p->page[first].free);
    p->page[first].taken = 0;
    if (after < p->count && p->page[after].free) {
        n += p->page[after].free;
        remove_run(p, after);
    }
    if (first && p->page[first - 1].free) {
        uint32_t before = p->page[first - 1].free;
        first -= before;
        n += before;
        remove_run(p, first);
    }
    add_run(p, first, n);
    mutex_unlock(&p->lock);
}

// --- the whole ---------------------------------------------------------------------------------------------

int heap_pages_init(struct heap_pages *p, uint32_t count)
{
    assert(count && count < HEAP_NO_PAGE);
    *p = (struct heap_pages){.count = count, .page = mem_zalloc(count, sizeof *p->page)};
    if (!p->page)
        return -ENOMEM;
    pthread_mutex_init(&p->lock, NULL);
    add_run(p, 0, count);
    return 0;
}

void heap_pages_free(struct heap_pages *p)
{
    if (p->page)
        pthread_mutex_destroy(&p->lock);
    mem_free(p->page);
    p->page = NULL;
}

static uint32_t listed(const struct heap_pages *p)
{
    uint32_t runs = 0;
    for (unsigned b = 0; b < HEAP_BINS; b++) {
        if (!p->bins[b].first != !(p->filled >> b & 1))
            return UINT32_MAX;
        for (uint32_t i = p->bins[b].first, before = 0; i; before = i, i = p->page[i - 1].next) {
            const struct heap_page *at = &p->page[i - 1];
            if (!at->free || bin_of(at->free) != b || at->prev != before)
                return UINT32_MAX;
            runs++;
        }
    }
    return runs;
}

bool heap_pages_valid(struct heap_pages *p)
{
    mutex_lock(&p->lock);
    uint32_t runs = 0, i = 0;
    bool valid = true, was_free = false;
    while (valid && i < p->count) {
        const struct heap_page *at = &p->page[i];
        uint32_t n = at->free ? at->free : at->taken;
        valid = n && n <= p->count - i && !(at->free && (was_free || at->taken)) &&
                (!at->free || p->page[i + n - 1].free == n);
        was_free = at->free;
        runs += was_free;
        i += n;
    }
    valid = valid && listed(p) == runs;
    mutex_unlock(&p->lock);
    return valid;
}
