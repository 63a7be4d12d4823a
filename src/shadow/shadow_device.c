// SPDX-License-Identifier: MIT
#include "shadow/shadow_device.h"

#include <sys/mman.h>

#include "context/context_copy.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "kcheck/kcheck_judge.h"
#include "kcheck/kcheck_shadow.h"
#include "launch/launch_ring.h"
#include "pages/pages_map.h"
#include "pages/pages_order.h"
#include "shadow/shadow_map.h"
#include "shadow/shadow_pool.h"
#include "track/track.h"

enum {
    SLOTS = SHADOW_EMPTY_MOST,  // most real pages
};
#define PAGE SHADOW_PAGE
#define SPAN_MOST ((uint64_t)4 << 30)

static uint64_t piece_bytes(unsigned shift)
{
    return (uint64_t)1 << (shift == 3 ? 30 : 28);
}

uint64_t shadow_device_piece(unsigned shift)
{
    return piece_bytes(shift) << shift;
}

static uint64_t bytes_of(const struct shadow_device *d)
{
    return (uint64_t)1 << (KCHECK_SHADOW_BITS - d->shift);
}

static uint64_t memory_bytes(const struct shadow_device *d)
{
    return (uint64_t)1 << (SHADOW_MEMORY_BITS - d->shift);
}

uint64_t shadow_device_shared(const struct shadow_device *d)
{
    return d->piece + (d->span == d->piece ? 0 : d->span) + 2 * SHADOW_BLOCK + 2 * PAGE;
}

uint64_t shadow_device_bytes(const struct shadow_device *d)
{
    return d->at ? shadow_device_shared(d) + d->used * PAGE : 0;
}

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuMemAddressReserve && d->cuMemAddressFree && d->cuMemRelease && d->cuMemCreate &&
           d->cuMemMap && d->cuMemUnmap && d->cuMemSetAccess && d->cuMemsetD8Async && d->cuDeviceTotalMem_v2;
}

// --- mappings ----------------------------------------------------------------------------------------------

static CUresult create(CUdevice device, uint64_t size, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return guard.real.cuMemCreate(handle, size, &prop, 0);
}

// Creates memory that is full of a byte. It is mapped for that at `at`, which is free, for as long as it
// takes.
static CUresult create_full(struct context *ctx, CUdeviceptr at, uint64_t size, uint8_t byte,
                            CUmemGenericAllocationHandle *handle)
{
    CUresult r = create(ctx->device, size, handle);
    if (r)
        return r;
    // Fresh memory of the CPU device, of which only the driver describes faults, is zero, and takes no memory
    // until it is written.
    if (!byte && guard.real_fault)
        return r;
    r = guard.real.cuMemMap(at, size, 0, *handle, 0);
    if (r)
        return r;
    r = shadow_map_access(ctx->device, at, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (!r)
        r = context_fill(ctx, at, byte, size);
    CUresult unmapped = guard.real.cuMemUnmap(at, size);
    return r ? r : unmapped;
}

static CUdeviceptr aligned(const struct shadow_device *d, CUdeviceptr base)
{
    return (base + bytes_of(d) - 1) & ~(bytes_of(d) - 1);
}

// Some drivers do not align as they are asked: then twice as much is reserved.
static CUresult reserve(const struct shadow_device *d, struct shadow_place *to)
{
    const struct driver *real = &guard.real;
    to->size = bytes_of(d) + PAGE;
    CUresult r = real->cuMemAddressReserve(&to->base, to->size, bytes_of(d), 0, 0);
    if (!r && aligned(d, to->base) == to->base)
        return r;
    if (!r)
        real->cuMemAddressFree(to->base, to->size);
    to->size = 2 * bytes_of(d) + PAGE;
    return real->cuMemAddressReserve(&to->base, to->size, PAGE, 0, 0);
}

// Unmaps a reservation, of which not everything needs to be mapped, and frees it.
static void unmap_all(const struct shadow_device *d, const struct shadow_place *place)
{
    CUdeviceptr at = aligned(d, place->base);
    uint64_t top = bytes_of(d) - d->piece, bytes = guard.real_fault ? memory_bytes(d) : top;
    guard.real.cuMemUnmap(at, bytes);
    guard.real.cuMemUnmap(at + top, d->piece + PAGE);
    guard.real.cuMemAddressFree(place->base, place->size);
}

// --- parts that get memory ---------------------------------------------------------------------------------

// Cuts a piece into blocks, and its span into pieces. While d->at == 0 nothing is mapped for kernels yet.
static CUresult make_fine(struct shadow_device *d, struct context *ctx, uint64_t piece)
{
    uint64_t span = piece * d->piece / d->span;
    bool whole = d->spans[span];
    uint64_t size = whole ? d->span : d->piece;
    CUdeviceptr at = d->at + (whole ? span * d->span : piece * d->piece);
    d->pieces[piece] = 1;
    if (!d->at)
        return CUDA_SUCCESS;
    d->spans[span] = 0;
    CUresult r = guard.real.cuMemUnmap(at, size);
    if (!r)
        r = whole ? shadow_map_pieces(d, d->at, span) : shadow_map_piece(d, d->at, piece);
    return r ? r : shadow_map_access(ctx->device, at, size, CU_MEM_ACCESS_FLAGS_PROT_READ);
}

// Maps a page that has become a real one, or is none any more, for kernels. cut: others of its block are.
static CUresult show(struct shadow_device *d, struct context *ctx, uint64_t page, bool cut)
{
    uint64_t block = page * PAGE / SHADOW_BLOCK;
    uint64_t first = cut ? page * PAGE : block * SHADOW_BLOCK, size = cut ? PAGE : SHADOW_BLOCK;
    CUresult r = guard.real.cuMemUnmap(d->at + first, size);
    if (!r)
        r = cut ? shadow_map_page(d, d->at, page) : shadow_map_block(d, d->at, block);
    return r ? r : shadow_map_access(ctx->device, d->at + first, size, CU_MEM_ACCESS_FLAGS_PROT_READ);
}

// Returns whether an empty page is free, and kernels have ended that may use its buffers: those that were
// freed in the order of a stream are unmapped then.
static bool is_free(const struct shadow_device *d, uint64_t page)
{
    uint64_t base = page * PAGE << d->shift;
    bool wanted = page >= d->first_wanted && page <= d->last_wanted;
    return !wanted && !d->nformer && shadow_owns_page(d, page) &&
           !pages_order_holds(base, base + (PAGE << d->shift));
}

// Takes the slot of a page in which no buffer is left. *slot: 0: there is none.
static CUresult take_slot(struct shadow_device *d, struct context *ctx, uint32_t kept, uint32_t *slot)
{
    uint64_t page;
    *slot = 0;
    if (!d->at || !shadow_empty_take(&d->empty, kept, &page))
        return CUDA_SUCCESS;
    if (!d->slots[page] || !is_free(d, page)) {
        if (d->slots[page])
            shadow_empty_put(&d->empty, page);
        return CUDA_SUCCESS;
    }
    *slot = d->slots[page];
    d->slots[page] = 0;
    return show(d, ctx, page, shadow_has_real(d, page * PAGE / SHADOW_BLOCK));
}

// Makes a slot with memory that is mapped for copies.
static CUresult make_slot(struct shadow_device *d, struct context *ctx, uint32_t *slot)
{
    CUdeviceptr write = d->write + d->used * PAGE;
    if (d->used == SLOTS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = create(ctx->device, PAGE, &d->handles[d->used]);
    if (r)
        return r;
    *slot = ++d->used;
    r = guard.real.cuMemMap(write, PAGE, 0, d->handles[*slot - 1], 0);
    return r ? r : shadow_map_access(ctx->device, write, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

// Gives a page memory of its own, full of a byte.
static CUresult make_real(struct shadow_device *d, struct context *ctx, uint64_t page, uint8_t byte)
{
    uint32_t slot;
    CUresult r = take_slot(d, ctx, SHADOW_EMPTY_KEPT, &slot);
    if (!r && !slot)
        r = make_slot(d, ctx, &slot);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && !slot) {
        CUresult taken = take_slot(d, ctx, 0, &slot);
        r = taken ? taken : slot ? CUDA_SUCCESS : r;
    }
    if (r)
        return r;
    bool cut = shadow_has_real(d, page * PAGE / SHADOW_BLOCK);
    d->slots[page] = slot;
    r = context_fill(ctx, d->write + (uint64_t)(slot - 1) * PAGE, byte, PAGE);
    return r || !d->at ? r : show(d, ctx, page, cut);
}

// --- mapping all -------------------------------------------------------------------------------------------

// Reserves addresses and maps all that is known. Kernels on a GPU may use generic addresses of shared and
// local memory, whose windows may be anywhere; the CPU device's are below 2^47.
static CUresult map_all(struct shadow_device *d, struct context *ctx)
{
    uint64_t top = bytes_of(d) - d->piece, bytes = guard.real_fault ? memory_bytes(d) : top;
    struct shadow_place place;
    CUresult r = reserve(d, &place);
    if (r)
        return r;
    CUdeviceptr at = aligned(d, place.base);
    d->mappings = 0;
    for (uint64_t span = 0; span < bytes / d->span && !r; span++)
        r = shadow_map_span(d, at, span);
    for (uint64_t piece = bytes / d->span * d->span / d->piece; piece < bytes / d->piece && !r; piece++)
        r = shadow_map_piece(d, at, piece);
    if (!r)
        r = shadow_map_access(ctx->device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);
    // What is just below 0: a null pointer with a negative index. Kernels may load one byte more.
    if (!r)
        r = shadow_map_over(d, at + top, d->piece, SHADOW_BLOCK, d->blocks[1]);
    if (!r)
        r = shadow_map(d, at + top + d->piece, PAGE, d->page[1]);
    if (!r)
        r = shadow_map_access(ctx->device, at + top, d->piece + PAGE, CU_MEM_ACCESS_FLAGS_PROT_READ);
    if (!r) {
        uint8_t *former = d->spans;
        d->spans = d->next_spans;
        d->next_spans = former;
        d->at = at;
        d->place = place;
        return r;
    }
    unmap_all(d, &place);
    return r;
}

// Unmaps the former places that only kernels may have used that have ended.
static void drop_former(struct shadow_device *d)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < d->nformer; i++)
        if (d->former[i].launches <= shadow_pool_launches_ended())
            unmap_all(d, &d->former[i]);
        else
            d->former[kept++] = d->former[i];
    d->nformer = kept;
}

// Gives memory to a page, and makes its piece fine.
static CUresult give_memory(struct shadow_device *d, struct context *ctx, uint64_t page)
{
    uint64_t piece = page * PAGE / d->piece;
    CUresult r = d->pieces[piece] ? CUDA_SUCCESS : make_fine(d, ctx, piece);
    return r ? r : make_real(d, ctx, page, shadow_device_owns(d, piece) ? KCHECK_SHADOW_POISON : 0);
}

// Maps everything once more, at other addresses, with pages that get memory. Kernels that are running keep
// the former ones. Returns false if that cannot be done: then the pages are never written.
static bool remake(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t last)
{
    CUdeviceptr former = d->at;
    struct shadow_place place = d->place;
    CUresult r = CUDA_SUCCESS;
    drop_former(d);
    if (d->nformer == SHADOW_FORMER)
        return false;
    // Launches are counted before their kernels learn of the shadow.
    place.launches = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    d->at = 0;
    for (uint64_t page = first; page <= last && !r; page++)
        if (!d->slots[page])
            r = give_memory(d, ctx, page);
    if (!r)
        r = map_all(d, ctx);
    if (r)
        d->at = former;
    else
        d->former[d->nformer++] = place;
    if (!r)
        guard_count(GUARD_SHADOW_REMADE);
    return !r;
}

CUresult shadow_device_prepare(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t last,
                               bool *can)
{
    CUresult r = CUDA_SUCCESS;
    *can = true;
    d->first_wanted = first / PAGE;
    d->last_wanted = last / PAGE;
    for (uint64_t page = first / PAGE; page <= last / PAGE && *can && !r; page++) {
        uint64_t piece = page * PAGE / d->piece;
        uint64_t span = page * PAGE / d->span;
        bool owned = shadow_device_owns(d, piece), alone = !d->spans[span] || shadow_owns_span(d, span);
        if (d->slots[page])
            continue;
        if (d->at && !(owned && alone)) {
            *can = remake(d, ctx, page, last / PAGE);
            continue;
        }
        r = give_memory(d, ctx, page);
    }
    return r;
}

// --- making it ---------------------------------------------------------------------------------------------

static void *reserve_table(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void release_table(void *table, uint64_t size)
{
    if (table)
        munmap(table, size);
}

// Chooses spans that take a 32nd of the device's memory at most, if there is so much.
static CUresult make_span(struct shadow_device *d, struct context *ctx)
{
    size_t total = 0;
    d->span = d->piece;
    d->span_zeros = d->zeros;
    guard.real.cuDeviceTotalMem_v2(&total, ctx->device);
    while (d->span < SPAN_MOST && d->span * 2 <= total / 32)
        d->span *= 2;
    if (d->span == d->piece)
        return CUDA_SUCCESS;
    d->span_zeros = 0;
    CUresult r = create_full(ctx, d->write, d->span, 0, &d->span_zeros);
    if (r != CUDA_ERROR_OUT_OF_MEMORY || d->span_zeros)
        return r;
    d->span = d->piece;
    d->span_zeros = d->zeros;
    return CUDA_SUCCESS;
}

static CUresult make_memory(struct shadow_device *d, struct context *ctx)
{
    CUresult r = guard.real.cuMemAddressReserve(&d->write, SLOTS * PAGE, PAGE, 0, 0);
    if (!r)
        r = create_full(ctx, d->write, d->piece, 0, &d->zeros);
    for (unsigned poison = 0; poison < 2 && !r; poison++) {
        uint8_t byte = poison ? KCHECK_SHADOW_POISON : 0;
        r = create_full(ctx, d->write, SHADOW_BLOCK, byte, &d->blocks[poison]);
        if (!r)
            r = create_full(ctx, d->write, PAGE, byte, &d->page[poison]);
    }
    return r ? r : make_span(d, ctx);
}

// The first bytes of the address space.
static CUresult forbid_null(struct shadow_device *d, struct context *ctx)
{
    const struct check_shadow_change c = {.base = 0, .size = KCHECK_NULL_PAGE, .what = CHECK_SHADOW_RANGE};
    return shadow_device_change(d, ctx, &c);
}

// Where buffers have been, nothing else may be accessed, though none is there now.
static CUresult forbid_used(struct shadow_device *d, struct context *ctx)
{
    uint64_t base, used;
    CUresult r = CUDA_SUCCESS;
    for (unsigned n = 0; n < PAGES_MAP_PIECES && !r; n++) {
        used = pages_map_used(n, &base);
        uint64_t first = base >> d->shift, end = ((base + used) >> d->shift) + 1;
        for (uint64_t piece = first / d->piece; used && piece * d->piece < end && !r; piece++)
            if (shadow_device_owns(d, piece) && !d->pieces[piece])
                r = make_fine(d, ctx, piece);
    }
    return r;
}

struct adding {
    struct shadow_device *d;
    struct context *ctx;
    CUresult r;
};

static int add_block(struct index_item *item, void *argument)
{
    struct adding *a = argument;
    const struct track_block *b = (const struct track_block *)item;
    const struct check_shadow_change c = {.base = b->range.base, .size = b->range.size, .live = true};
    if (b->range.size)
        a->r = shadow_device_change(a->d, a->ctx, &c);
    return a->r != CUDA_SUCCESS;
}

static bool add_pool(const struct shadow_pool_range *pool, void *argument)
{
    struct adding *a = argument;
    const struct check_shadow_change c = {
        .base = pool->base, .size = pool->end - pool->base, .what = CHECK_SHADOW_PIECES};
    a->r = shadow_device_change(a->d, a->ctx, &c);
    return !a->r;
}

CUresult shadow_device_make(struct shadow_device *d, struct context *ctx, unsigned shift, uint64_t heap,
                            uint64_t heap_bytes)
{
    *d = (struct shadow_device){.shift = shift, .piece = piece_bytes(shift)};
    uint64_t npages = bytes_of(d) / PAGE;
    d->pieces = reserve_table(bytes_of(d) / d->piece);
    d->spans = reserve_table(bytes_of(d) / d->piece);
    d->next_spans = reserve_table(bytes_of(d) / d->piece);
    d->slots = reserve_table(npages * sizeof *d->slots);
    d->handles = reserve_table(SLOTS * sizeof *d->handles);
    d->empty.live = reserve_table(npages * sizeof *d->empty.live);
    d->empty.queued = reserve_table(npages);
    d->empty.pages = reserve_table(SHADOW_EMPTY_MOST * sizeof *d->empty.pages);
    if (!d->pieces || !d->spans || !d->next_spans || !d->slots || !d->handles || !d->empty.live ||
        !d->empty.queued || !d->empty.pages)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!has_calls())
        return CUDA_ERROR_NOT_SUPPORTED;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = make_memory(d, ctx);
    if (!r)
        r = forbid_null(d, ctx);
    if (!r)
        r = forbid_used(d, ctx);
    struct adding all = {d, ctx, r};
    unsigned section = epoch_enter();
    if (!r)
        track_each(add_block, &all);
    epoch_leave(section);
    if (!all.r)
        shadow_pool_each(add_pool, &all);
    const struct check_shadow_change kernels = {.base = heap, .size = heap_bytes, .what = CHECK_SHADOW_RANGE};
    if (!all.r && heap_bytes)
        all.r = shadow_device_change(d, ctx, &kernels);
    if (!all.r)
        all.r = map_all(d, ctx);
    context_capture_restore(mode);
    return all.r;
}

static void release(CUmemGenericAllocationHandle handle)
{
    if (handle)
        guard.real.cuMemRelease(handle);
}

// Mapped memory belongs to the process, and outlives a context.
static void release_memory(struct shadow_device *d)
{
    if (d->at)
        unmap_all(d, &d->place);
    for (unsigned i = 0; i < d->nformer; i++)
        unmap_all(d, &d->former[i]);
    if (d->used)
        guard.real.cuMemUnmap(d->write, d->used * PAGE);
    if (d->write)
        guard.real.cuMemAddressFree(d->write, SLOTS * PAGE);
    for (uint32_t i = 0; i < d->used; i++)
        release(d->handles[i]);
    release(d->zeros);
    if (d->span_zeros != d->zeros)
        release(d->span_zeros);
    for (unsigned i = 0; i < 2; i++) {
        release(d->blocks[i]);
        release(d->page[i]);
    }
}

void shadow_device_drop(struct shadow_device *d)
{
    if (!d->shift)
        return;
    uint64_t npages = bytes_of(d) / PAGE;
    if (d->handles)
        release_memory(d);
    release_table(d->pieces, bytes_of(d) / d->piece);
    release_table(d->spans, bytes_of(d) / d->piece);
    release_table(d->next_spans, bytes_of(d) / d->piece);
    release_table(d->slots, npages * sizeof *d->slots);
    release_table(d->handles, SLOTS * sizeof *d->handles);
    release_table(d->empty.live, npages * sizeof *d->empty.live);
    release_table(d->empty.queued, npages);
    release_table(d->empty.pages, SHADOW_EMPTY_MOST * sizeof *d->empty.pages);
    *d = (struct shadow_device){.shift = 0};
}
