// SPDX-License-Identifier: MIT
#include "count/count.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "track/guard_report.h"
#include "context/kernels.h"
#include "context/names.h"
#include "core/lock.h"
#include "core/slab_pool.h"
#include "context/kernel_filter.h"

enum {
    BUCKETS = 4096,  // of rows, by name
    BATCH = 64,      // rows in one event, whose line must fit into the channel's buffer
};

struct count_state count_state;

static struct lock lock = LOCK_INIT(COUNT);  // held over names_keep and a pool's lock only
static struct slab_pool pool = SLAB_POOL(struct count_row);
static struct count_row *buckets[BUCKETS];
static unsigned nrows;
static struct count_row spilled;  // launches by handles that the table had no room for

int count_start(void)
{
    int number = kernels_take_number();
    if (number < 0)
        return -ENOMEM;
    count_state.number = (unsigned)number;
    count_state.on = true;
    return 0;
}

static void forget(struct count_row *row)
{
    atomic_store_explicit(&row->launches, 0, memory_order_relaxed);
    row->sums = (struct pass_count_sums){0};
    row->lost = false;
}

// A forked child has its parent's handles, but has launched nothing yet.
void count_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct count_row *row = buckets[i]; row; row = row->next)
            forget(row);
    forget(&spilled);
}

// --- rows --------------------------------------------------------------------------------------------------

static struct count_row **bucket_of(const char *kept)
{
    return &buckets[(uintptr_t)kept * 0x9e3779b97f4a7c15u >> 52];
}

// Names from names_keep are equal if their addresses are. Requires the lock.
static struct count_row *find_row(const char *kept, bool counted)
{
    struct count_row *row = *bucket_of(kept);
    while (row && (row->name != kept || row->counted != counted))
        row = row->next;
    return row;
}

// Requires the lock.
static struct count_row *make_row(const char *kept, bool counted)
{
    struct count_row **bucket = bucket_of(kept), *row = slab_pool_get(&pool);
    if (!row)
        return NULL;
    memset(row, 0, sizeof *row);
    row->name = kept;
    row->counted = counted;
    row->next = *bucket;
    *bucket = row;
    nrows++;
    return row;
}

struct count_row *count_row(const char *name, bool counted)
{
    const char *kept = names_keep(name);
    if (!kept)
        return NULL;
    lock_take(&lock);
    struct count_row *row = find_row(kept, counted);
    row = row ? row : make_row(kept, counted);
    lock_give(&lock);
    return row;
}

struct count_row *count_row_likely(const char *name)
{
    const char *kept = names_keep(name);
    lock_take(&lock);
    struct count_row *row = kept ? find_row(kept, true) : NULL;
    lock_give(&lock);
    return row ? row : count_row(name, false);
}

void count_is_rewritten(struct count_row *row, bool function, bool approximate)
{
    lock_take(&lock);
    row->function = function;
    row->approximate |= approximate;
    lock_give(&lock);
}

void count_is_lost(struct count_row *row)
{
    lock_take(&lock);
    row->lost = true;
    lock_give(&lock);
}

void count_add(struct count_row *row, const struct pass_count_sums *now, const struct pass_count_sums *before)
{
    lock_take(&lock);
    row->sums.launches += now->launches - before->launches;
    row->sums.threads += now->threads - before->threads;
    for (int s = 0; s < PASS_COUNT_SPACES; s++) {
        row->sums.space[s].loads += now->space[s].loads - before->space[s].loads;
        row->sums.space[s].stores += now->space[s].stores - before->space[s].stores;
        row->sums.space[s].loaded += now->space[s].loaded - before->space[s].loaded;
        row->sums.space[s].stored += now->space[s].stored - before->space[s].stored;
    }
    lock_give(&lock);
}

// --- handles -----------------------------------------------------------------------------------------------

// Returns false if the table has no room.
static bool set_row(const void *handle, struct count_row *row)
{
    struct kernel *k = kernels_get(handle);
    // Release pairs with the acquire in count_launch, which adds to the row.
    if (k)
        atomic_store_explicit(&k->data[count_state.number], row, memory_order_release);
    return k;
}

void count_handle(const void *handle, struct count_row *row)
{
    if (count_state.on && handle && row)
        set_row(handle, row);
}

struct count_row *count_row_of(const void *handle)
{
    struct kernel *k = count_state.on && handle ? kernels_find(handle) : NULL;
    return k ? atomic_load_explicit(&k->data[count_state.number], memory_order_acquire) : NULL;
}

void count_launch_unknown(const void *handle)
{
    const char *name = kernels_name(handle);
    struct count_row *row = handle ? count_row_likely(name ? name : "(kernels of unknown name)") : NULL;
    if (!row || !set_row(handle, row))
        row = &spilled;
    atomic_fetch_add_explicit(&row->launches, 1, memory_order_relaxed);
}

// --- the report --------------------------------------------------------------------------------------------

struct shown {
    struct report_kernel kernel;
    struct report_space spaces[PASS_COUNT_SPACES];
};

static uint64_t launches_of(const struct count_row *row)
{
    uint64_t calls = atomic_load_explicit(&row->launches, memory_order_relaxed), counted = row->sums.launches;
    return row->counted && !row->lost ? counted : calls > counted ? calls : counted;
}

static void show(struct shown *to, const struct count_row *row)
{
    struct report_kernel *k = &to->kernel;
    *k = (struct report_kernel){
        .name = row->name ? row->name : "(kernels beyond the size of the table)",
        .function = row->function,
        .uncounted = !row->counted,
        .approximate = row->approximate,
        .launches = launches_of(row),
        .threads = row->sums.threads,
    };
    for (int s = 0; s < PASS_COUNT_SPACES; s++) {
        struct report_space space = {pass_count_spaces[s], row->sums.space[s].loads,
                                     row->sums.space[s].stores, row->sums.space[s].loaded,
                                     row->sums.space[s].stored};
        k->loads += space.loads;
        k->stores += space.stores;
        k->read += space.read;
        k->written += space.written;
        if (space.loads || space.stores)
            to->spaces[k->nspaces++] = space;
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct report_kernel *x = &((const struct shown *)a)->kernel,
                               *y = &((const struct shown *)b)->kernel;
    uint64_t p = x->read + x->written, q = y->read + y->written;
    if (p != q)
        return p < q ? 1 : -1;
    if (x->launches != y->launches)
        return x->launches < y->launches ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void send_all(struct shown *all, size_t n)
{
    struct report_kernel batch[BATCH];
    for (size_t i = 0; i < n;) {
        uint32_t m = 0;
        for (; m < BATCH && i < n; m++, i++) {
            batch[m] = all[i].kernel;
            batch[m].spaces = all[i].spaces;
        }
        guard_report_counts(&(struct report_counts){getpid(), m, batch});
    }
}

void count_report(void)
{
    if (!count_state.on)
        return;
    lock_take(&lock);
    struct shown *all = mem_zalloc(nrows + 1, sizeof *all);
    size_t n = 0;
    for (unsigned i = 0; all && i < BUCKETS; i++)
        for (const struct count_row *row = buckets[i]; row; row = row->next) {
            if (!row->function && !kernel_filter_any(&row->name, 1))
                continue;
            show(&all[n], row);
            n += all[n].kernel.launches || all[n].kernel.threads;
        }
    if (all && atomic_load_explicit(&spilled.launches, memory_order_relaxed))
        show(&all[n++], &spilled);
    lock_give(&lock);
    if (!all) {
        guard_report_note("count: no memory for the table");
        return;
    }
    qsort(all, n, sizeof *all, by_bytes);
    send_all(all, n);
    mem_free(all);
}
