// SPDX-License-Identifier: MIT
#include "check/check_unchecked.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "track/guard_report.h"

enum {
    SLOTS = 1 << 13,  // a power of two; later kernels share one row
    BATCH = 64,       // rows in one event, whose line must fit into the channel's buffer
};

// Relaxed, all: a name, once set, stays and is the same text for all threads, and the numbers are read when
// the process ends.
static struct slot {
    _Atomic(const char *) name;
    _Atomic uint64_t launches;
} slots[SLOTS], others;

static struct slot *slot_of(const char *name)
{
    uint32_t first = (uint32_t)((uintptr_t)name * 0x9e3779b97f4a7c15u >> 51);
    for (uint32_t i = 0; name && i < SLOTS; i++) {
        struct slot *s = &slots[(first + i) & (SLOTS - 1)];
        const char *known = atomic_load_explicit(&s->name, memory_order_relaxed);
        if (known == name ||
            (!known && atomic_compare_exchange_strong_explicit(&s->name, &known, name, memory_order_relaxed,
                                                               memory_order_relaxed)) ||
            known == name)
            return s;
    }
    return &others;
}

void check_unchecked_count(const char *name)
{
    atomic_fetch_add_explicit(&slot_of(name)->launches, 1, memory_order_relaxed);
}

static int by_launches(const void *a, const void *b)
{
    const struct report_unchecked_kernel *x = a, *y = b;
    return x->launches != y->launches ? (x->launches < y->launches ? 1 : -1) : strcmp(x->name, y->name);
}

static uint32_t collect(struct report_unchecked_kernel *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i <= SLOTS; i++) {
        const struct slot *s = i < SLOTS ? &slots[i] : &others;
        const char *name = atomic_load_explicit(&s->name, memory_order_relaxed);
        uint64_t launches = atomic_load_explicit(&s->launches, memory_order_relaxed);
        if (launches)
            rows[n++] = (struct report_unchecked_kernel){name ? name : "(other kernels)", launches};
    }
    return n;
}

void check_unchecked_report(void)
{
    struct report_unchecked_kernel *rows = mem_zalloc(SLOTS + 1, sizeof *rows);
    uint32_t n = rows ? collect(rows) : 0;
    if (n)
        qsort(rows, n, sizeof *rows, by_launches);
    for (uint32_t i = 0; i < n; i += BATCH)
        guard_report_unchecked(
            &(struct report_unchecked){getpid(), i, n, n - i < BATCH ? n - i : BATCH, rows + i});
    mem_free(rows);
}

void check_unchecked_after_fork(void)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        atomic_store_explicit(&slots[i].launches, 0, memory_order_relaxed);
    atomic_store_explicit(&others.launches, 0, memory_order_relaxed);
}
