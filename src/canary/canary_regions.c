// SPDX-License-Identifier: MIT
#include "canary/canary_regions.h"

#include <errno.h>
#include <stddef.h>

#include "canary/canary_suballoc.h"
#include "core/guard.h"
#include "core/index.h"
#include "core/slab_pool.h"

static const uint64_t least_region = CANARY_SUBALLOC_LEAST, most_region = 128 << 20;
enum {
    SEVERAL = 8,        // a region has room for this many ranges
    PART = 8,           // or 1/PART of all regions so far, if that is more
    ELASTIC_PART = 32,  // PART of regions that lose nothing at their end
};

struct region {
    struct index_item range;
    CUcontext context;
    bool mapped;
};
static struct slab_pool regions = SLAB_POOL(struct region);
static struct lock lock = LOCK_INIT(CANARY_REGIONS);
static struct index owned = INDEX_INIT;  // changes under the lock

void canary_regions_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&regions);
    index_after_fork(&owned);
}

static void release(struct epoch_node *node)
{
    slab_pool_put(&regions, (char *)node - offsetof(struct region, range.retired));
}

// Requires the lock. Returns false if there is no such region, or if out of memory.
static bool take_out(struct index_item *region)
{
    bool taken = region && index_take(&owned, region);
    if (taken)
        epoch_retire(&region->retired, release);
    return taken;
}

// Inserts a region in place of all that overlap it. Requires the lock.
static int replace(struct region *region)
{
    const struct index_item *range = &region->range;
    struct index_item *former;
    int err;
    while ((err = index_put(&owned, &region->range, &former)) == -EEXIST)
        if (!take_out(index_at_or_below(&owned, range->base + range->size - 1)))
            return -ENOMEM;
    if (former)
        epoch_retire(&former->retired, release);
    return err;
}

int canary_regions_add(const struct context *ctx, uint64_t base, uint64_t bytes, bool mapped)
{
    struct region *region = slab_pool_get(&regions);
    if (!region)
        return -ENOMEM;
    *region = (struct region){.range = {.base = base, .size = bytes},
                              .context = atomic_load_explicit(&ctx->handle, memory_order_relaxed),
                              .mapped = mapped};
    lock_take(&lock);
    int err = replace(region);
    lock_give(&lock);
    if (err)
        slab_pool_put(&regions, region);
    return err;
}

static void remove_region(uint64_t base)
{
    lock_take(&lock);
    struct index_item *region = index_find(&owned, base);
    if (region && region->base == base)
        take_out(region);
    lock_give(&lock);
}

void canary_regions_remove(uint64_t base)
{
    remove_region(base);
}

// Returns the size of the largest region from which a range of `need` bytes can be taken.
static uint64_t most_for(uint64_t need)
{
    uint64_t most = need / 2 * CANARY_SUBALLOC_SHARE / least_region * least_region;
    return most < most_region ? most : most_region;
}

// Returns the size of the next region. It has room for several ranges, since the driver rounds each region up
// by half of least_region on average; but not for many more than exist, since unused memory is lost to
// others.
static uint64_t region_for(uint64_t need, uint64_t total)
{
    uint64_t few = SEVERAL * need < total / 2 ? SEVERAL * need : total / 2, part = total / PART;
    uint64_t bytes = few < part ? part : few;
    bytes = bytes > most_for(need) ? most_for(need) : bytes;
    return canary_suballoc_round(bytes > need ? bytes / need * need : need, least_region);
}

// Returns the size of the next region for ranges that are cut to what there is, so that nothing is rounded
// up.
static uint64_t elastic_region_for(uint64_t need, uint64_t total)
{
    uint64_t part = total / ELASTIC_PART, bytes = (need < part ? part : need) / least_region * least_region;
    bytes = bytes > most_for(need) ? most_for(need) : bytes;
    return bytes < least_region ? least_region : bytes;
}

int canary_regions_get(const struct context *ctx, uint64_t need, bool elastic, uint64_t total, uint64_t *base,
                       uint64_t *bytes)
{
    CUdeviceptr region = 0;
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
    *bytes = elastic ? elastic_region_for(need, total) : region_for(need, total);
    need = elastic ? least_region : canary_suballoc_round(need, least_region);
    if (*bytes > need)
        r = guard.real.cuMemAlloc_v2(&region, *bytes);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        *bytes = need;
        r = guard.real.cuMemAlloc_v2(&region, *bytes);
    }
    if (r)
        return -ENOMEM;
    if (region % CANARY_SUBALLOC_UNIT || canary_regions_add(ctx, region, *bytes, false)) {
        guard.real.cuMemFree_v2(region);
        return -ENOMEM;
    }
    *base = region;
    return 0;
}

void canary_regions_give(uint64_t base)
{
    CUstreamCaptureMode mode = context_capture_relax();
    remove_region(base);
    guard.real.cuMemFree_v2(base);
    context_capture_restore(mode);
}

bool canary_regions_is_mapped(uint64_t address, CUcontext *context)
{
    const struct region *region = (const struct region *)index_find(&owned, address);
    *context = region ? region->context : NULL;
    return region && region->mapped;
}

CUcontext canary_regions_context(uint64_t address)
{
    const struct region *region = (const struct region *)index_find(&owned, address);
    return region ? region->context : NULL;
}

bool canary_regions_owns(uint64_t address)
{
    return index_find(&owned, address);
}

struct search {
    CUcontext context;
    struct index_item *found;
};

static int of_context(struct index_item *item, void *context)
{
    struct search *search = context;
    search->found = item;
    return ((struct region *)item)->context == search->context;
}

void canary_regions_context_gone(CUcontext context)
{
    struct search search = {.context = context};
    lock_take(&lock);
    while (index_each(&owned, of_context, &search) && take_out(search.found))
        continue;
    lock_give(&lock);
}
