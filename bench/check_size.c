// SPDX-License-Identifier: MIT
// check_size: how much memory the table of --mode=check takes on a device, and how long the host needs to
// change it, by number and size of buffers, which lie as those of --pages-small=packed or in pages of their
// own. Prints rows of a table.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check/check_table.h"
#include "pages/pages_packed.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t directory_bytes(const struct check_table *t)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < CHECK_TABLE_PAGES; i++)
        bytes += check_table_page(t, i) ? CHECK_TABLE_PAGE_WORDS * sizeof(uint64_t) : 0;
    return bytes;
}

#define FIRST 0x700000000000u
enum { UNIT = 256, CHUNK = 1 << KCHECK_CHUNK_BITS };

// Where buffers lie: `slots` of them in each slab, which a chunk without memory follows.
struct layout {
    uint64_t slab, stride, slots;
};

static struct layout layout_of(uint64_t size)
{
    struct layout l = {.slab = (size + CHUNK - 1) / CHUNK * CHUNK, .stride = size, .slots = 1};
    if (size < CHUNK) {
        l.slab = pages_packed_shape(size, UNIT, &l.stride);
        l.slots = l.slab / l.stride;
    }
    return l;
}

static uint64_t address_of(const struct layout *l, unsigned long i)
{
    return FIRST + CHUNK + i / l->slots * (l->slab + CHUNK) + i % l->slots * l->stride;
}

static int measure(unsigned long count, uint64_t size)
{
    const struct layout l = layout_of(size);
    struct check_table *t = check_table_new();
    // The first block makes a page of the directory and a piece of the records.
    if (!t || check_table_add(t, &(struct check_table_block){FIRST, 1, count + 1, 0}))
        return 1;
    double start = now();
    for (unsigned long i = 0; i < count; i++) {
        struct check_table_block b = {address_of(&l, i), size, i + 1, 0};
        if (l.slots > 1 && i % l.slots == 0 && check_table_divide(t, b.base, l.slab, l.stride))
            return 1;
        if (check_table_add(t, &b))
            return 1;
        check_table_clean(t);
    }
    double made = now();
    for (unsigned long i = 0; i < count; i++) {
        check_table_mark(t, address_of(&l, i), i + 1);
        check_table_clean(t);
    }
    double freed = now();
    uint64_t records = (uint64_t)check_table_records(t) * sizeof(struct kcheck_record);
    printf("| %lu | %llu | %.1f | %.1f | %.2f | %.2f |\n", count, (unsigned long long)size,
           (double)records / 1048576, (double)directory_bytes(t) / 1048576,
           (made - start) / (double)count * 1e6, (freed - made) / (double)count * 1e6);
    check_table_free(t);
    return 0;
}

int main(void)
{
    printf("| buffers | bytes each | records, MiB | directory, MiB | us to add one | us to mark it freed |\n"
           "| --- | --- | --- | --- | --- | --- |\n");
    for (unsigned long count = 100; count <= 1000000; count *= count < 100000 ? 1000 : 10)
        for (uint64_t size = 1024; size <= 1024 * 1024; size *= 32)
            if (count * size <= (uint64_t)1 << 35 && measure(count, size))
                return 1;
    return measure(100, (uint64_t)1 << 30);
}
