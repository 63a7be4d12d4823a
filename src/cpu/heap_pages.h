// SPDX-License-Identifier: MIT
// The pages of a heap for in-kernel malloc: free runs of pages, and a tag for the use of each other page. All
// of it is kept outside the heap, where kernels cannot write: no store of a kernel can break its invariants.
#ifndef MOAT_CPU_HEAP_PAGES_H
#define MOAT_CPU_HEAP_PAGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HEAP_PAGE_BITS = 12, HEAP_PAGE = 1 << HEAP_PAGE_BITS, HEAP_BINS = 32 };

#define HEAP_NO_PAGE UINT32_MAX

struct heap_page {
    _Atomic uint32_t tag;   // meaning of a free in this page, for the user of the page; 0: none
    _Atomic uint32_t last;  // the tag before it became 0, for reports only
    uint32_t free;          // length of a free run, at its first and at its last page; otherwise 0
    uint32_t taken;         // length of a taken run, at its first page
    uint32_t next, prev;    // in a list: page number + 1; 0: none
    uint16_t used, hint;    // for the user of the page
};

// Pages that are linked by next and prev; each is in one list at most.
struct heap_list {
    uint32_t first;  // page number + 1; 0: empty
};

// Every page is in exactly one free or taken run, and no two free runs are neighbours.
//   a free run of n pages is in the list bins[floor(log2(n))]
//   bit b of filled is set <=> bins[b] is not empty
struct heap_pages {
    pthread_mutex_t lock;  // rank: innermost; guards free, taken, and the lists below
    struct heap_page *page;
    uint32_t count;
    uint32_t filled;
    struct heap_list bins[HEAP_BINS];
};

int heap_pages_init(struct heap_pages *p, uint32_t count);  // 0 or -ENOMEM; count > 0
void heap_pages_free(struct heap_pages *p);

// heap_pages_take returns the first of n consecutive pages, or HEAP_NO_PAGE. Both functions take the lock.
uint32_t heap_pages_take(struct heap_pages *p, uint32_t n);
void heap_pages_give(struct heap_pages *p, uint32_t first);

void heap_list_push(struct heap_pages *p, struct heap_list *list, uint32_t page);
void heap_list_remove(struct heap_pages *p, struct heap_list *list, uint32_t page);

bool heap_pages_valid(struct heap_pages *p);

#endif
