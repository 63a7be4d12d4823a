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
    SEVERAL = 8,        // ranges for which there is room in a region
    PART = 8,           // of all there is so far, a region is a part like this
    ELASTIC_PART = 32,  // where nothing is lost at its end
};

struct ground {
    struct index_item range;
    CUcontext context;
    bool mapped;
};
static struct slab_pool grounds = SLAB_POOL(struct ground);
static struct index owned = INDEX_INIT;

void canary_regions_after_fork(void)
{
    slab_pool_after_fork(&grounds);
    index_after_fork(&owned);
}

static void release(struct epoch_node *node)
{
    slab_pool_put(&grounds, (char *)node - offsetof(struct ground, range.retired));
}

int canary_regions_claim(const struct context *ctx, uint64_t base, uint64_t bytes, bool mapped)
{
    struct ground *g = slab_pool_get(&grounds);
    if (!g)
        return -ENOMEM;
    *g = (struct ground){.range = {.base = base, .size = bytes},
                         .context = atomic_load_explicit(&ctx->handle, memory_order_relaxed),
                         .mapped = mapped};
    int err = index_insert(&owned, &g->range);
    if (err)
        slab_pool_put(&grounds, g);
    return err;
}

static bool forget(uint64_t base)
{
    struct index_item *g = index_remove(&owned, base);
    if (g)
        epoch_retire(&g->retired, release);
    return g;
}

void canary_regions_forget(uint64_t base)
{
    forget(base);
}

// Of a region in which such a range can be taken.
static uint64_t most_for(uint64_t need)
{
    uint64_t most = need / 2 * CANARY_SUBALLOC_SHARE / least_region * least_region;
    return most < most_region ? most : most_region;
}

// How large the next region should be: with room for several such ranges, for the driver rounds each region up by half of
// least_region on average, but not for many more than there are, for what is not used yet is lost to others.
static uint64_t region_for(uint64_t need, uint64_t total)
{
    uint64_t few = SEVERAL * need < total / 2 ? SEVERAL * need : total / 2, part = total / PART;
    uint64_t bytes = few < part ? part : few;
    bytes = bytes > most_for(need) ? most_for(need) : bytes;
    return canary_suballoc_round(bytes > need ? bytes / need * need : need, least_region);
}

// The same where ranges are cut to what there is: nothing is rounded up.
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
    if (region % CANARY_SUBALLOC_UNIT || canary_regions_claim(ctx, region, *bytes, false)) {
        guard.real.cuMemFree_v2(region);
        return -ENOMEM;
    }
    *base = region;
    return 0;
}

void canary_regions_give(uint64_t base)
{
    CUstreamCaptureMode mode = context_capture_relax();
    forget(base);
    guard.real.cuMemFree_v2(base);
    context_capture_restore(mode);
}

bool canary_regions_is_mapped(uint64_t address, CUcontext *context)
{
    const struct ground *g = (const struct ground *)index_find(&owned, address);
    *context = g ? g->context : NULL;
    return g && g->mapped;
}

bool canary_regions_owns(uint64_t address)
{
    return index_find(&owned, address);
}

struct search {
    CUcontext context;
    uint64_t base;
};

static int of_context(struct index_item *item, void *context)
{
    struct search *search = context;
    search->base = item->base;
    return ((struct ground *)item)->context == search->context;
}

void canary_regions_context_gone(CUcontext context)
{
    bool any = true;
    while (any) {
        struct search search = {.context = context};
        unsigned section = epoch_enter();
        any = index_each(&owned, of_context, &search);
        epoch_leave(section);
        any = any && forget(search.base);
    }
}
