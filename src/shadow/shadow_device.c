// SPDX-License-Identifier: MIT
#include "shadow/shadow_device.h"

#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "context/context_copy.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "kcheck/kcheck_judge.h"
#include "kcheck/kcheck_shadow.h"
#include "pages/pages_map.h"
#include "shadow/shadow_room.h"
#include "shadow/shadow_pool.h"
#include "track/track.h"

enum {
    MEMORY_BITS = 47,  // addresses of memory are below 2^47
    SLOTS = 1 << 13,   // most real pages
    SMALL = 4096,      // bytes of the shadow that are copied rather than filled
};
#define PAGE ((uint64_t)2 << 20)

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
    return (uint64_t)1 << (MEMORY_BITS - d->shift);
}

uint64_t shadow_device_bytes(const struct shadow_device *d)
{
    return d->at ? d->piece + (d->used + 2) * PAGE : 0;
}

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuMemAddressReserve && d->cuMemAddressFree && d->cuMemRelease && d->cuMemCreate &&
           d->cuMemMap && d->cuMemUnmap && d->cuMemSetAccess && d->cuMemsetD8Async;
}

// --- mappings ----------------------------------------------------------------------------------------------

static CUresult create(CUdevice device, uint64_t size, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return guard.real.cuMemCreate(handle, size, &prop, 0);
}

static CUresult set_access(CUdevice device, CUdeviceptr at, uint64_t size, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = flags};
    return guard.real.cuMemSetAccess(at, size, &access, 1);
}

// Maps a handle many times over, for kernels.
static CUresult map_over(struct context *ctx, CUdeviceptr at, uint64_t size, uint64_t unit,
                         CUmemGenericAllocationHandle handle)
{
    CUresult r = CUDA_SUCCESS;
    for (uint64_t done = 0; done < size && !r; done += unit)
        r = guard.real.cuMemMap(at + done, unit, 0, handle, 0);
    return r ? r : set_access(ctx->device, at, size, CU_MEM_ACCESS_FLAGS_PROT_READ);
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
    r = set_access(ctx->device, at, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
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

// Returns whether a whole piece describes addresses of --mode=pages.
static bool is_owned(const struct shadow_device *d, uint64_t piece)
{
    return pages_map_owns(piece * d->piece << d->shift, d->piece << d->shift);
}

// Cuts a piece into pages that share one page. While d->at == 0 nothing is mapped for kernels yet.
static CUresult make_fine(struct shadow_device *d, struct context *ctx, uint64_t piece)
{
    CUdeviceptr at = d->at + piece * d->piece;
    d->pieces[piece] = 1;
    CUresult r = d->at ? guard.real.cuMemUnmap(at, d->piece) : CUDA_SUCCESS;
    return r || !d->at
               ? r
               : map_over(ctx, at, d->piece, PAGE, is_owned(d, piece) ? d->poison_page : d->zero_page);
}

// Gives a page memory of its own, full of a byte.
static CUresult make_real(struct shadow_device *d, struct context *ctx, uint64_t page, uint8_t byte)
{
    if (d->used == SLOTS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUmemGenericAllocationHandle *handle = &d->handles[d->used];
    CUdeviceptr write = d->write + d->used * PAGE, read = d->at + page * PAGE;
    CUresult r = create(ctx->device, PAGE, handle);
    if (r)
        return r;
    d->slots[page] = ++d->used;
    r = guard.real.cuMemMap(write, PAGE, 0, *handle, 0);
    if (!r)
        r = set_access(ctx->device, write, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (!r)
        r = context_fill(ctx, write, byte, PAGE);
    if (!r && d->at)
        r = guard.real.cuMemUnmap(read, PAGE);
    return r || !d->at ? r : map_over(ctx, read, PAGE, PAGE, *handle);
}

static CUresult map_piece(const struct shadow_device *d, CUdeviceptr at, uint64_t piece)
{
    const struct driver *real = &guard.real;
    uint64_t first = piece * d->piece / PAGE, n = d->piece / PAGE;
    CUmemGenericAllocationHandle shared = is_owned(d, piece) ? d->poison_page : d->zero_page;
    if (!d->pieces[piece])
        return real->cuMemMap(at + piece * d->piece, d->piece, 0, d->zeros, 0);
    CUresult r = CUDA_SUCCESS;
    for (uint64_t page = first; page < first + n && !r; page++)
        r = real->cuMemMap(at + page * PAGE, PAGE, 0,
                           d->slots[page] ? d->handles[d->slots[page] - 1] : shared, 0);
    return r;
}

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
    for (uint64_t piece = 0; piece < bytes / d->piece && !r; piece++)
        r = map_piece(d, at, piece);
    if (!r)
        r = set_access(ctx->device, at, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);
    // What is just below 0: a null pointer with a negative index. Kernels may load one byte more.
    if (!r)
        r = map_over(ctx, at + top, d->piece + PAGE, PAGE, d->poison_page);
    if (!r) {
        d->at = at;
        d->place = place;
        return r;
    }
    unmap_all(d, &place);
    return r;
}

// Maps everything once more, at other addresses, with a page that gets memory. Kernels that are running keep
// the former ones. Returns false if that cannot be done: then the page is never written.
static bool remake(struct shadow_device *d, struct context *ctx, uint64_t page)
{
    CUdeviceptr former = d->at;
    struct shadow_place place = d->place;
    uint64_t piece = page * PAGE / d->piece;
    if (d->nformer == SHADOW_FORMER)
        return false;
    d->at = 0;
    CUresult r = d->pieces[piece] ? CUDA_SUCCESS : make_fine(d, ctx, piece);
    if (!r)
        r = make_real(d, ctx, page, 0);
    if (!r)
        r = map_all(d, ctx);
    if (r)
        d->at = former;
    else
        d->former[d->nformer++] = place;
    return !r;
}

// --- changes -----------------------------------------------------------------------------------------------

// Makes sure that bytes of the shadow can be written. *can: they can.
static CUresult prepare(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t last,
                        bool *can)
{
    CUresult r = CUDA_SUCCESS;
    *can = true;
    for (uint64_t page = first / PAGE; page <= last / PAGE && *can && !r; page++) {
        uint64_t piece = page * PAGE / d->piece;
        bool owned = is_owned(d, piece);
        if (d->slots[page])
            continue;
        if (d->at && !owned) {
            *can = remake(d, ctx, page);
            continue;
        }
        if (!d->pieces[piece])
            r = make_fine(d, ctx, piece);
        if (!r)
            r = make_real(d, ctx, page, owned ? KCHECK_SHADOW_POISON : 0);
    }
    return r;
}

static CUdeviceptr written_at(const struct shadow_device *d, uint64_t byte)
{
    return d->write + (uint64_t)(d->slots[byte / PAGE] - 1) * PAGE + byte % PAGE;
}

static CUresult fill_part(struct context *ctx, CUdeviceptr to, uint8_t byte, uint64_t count,
                          const struct check_shadow_change *c)
{
    const struct driver *real = &guard.real;
    char bytes[SMALL];
    if (c->ordered)
        return (c->per_thread ? real->cuMemsetD8Async_ptsz : real->cuMemsetD8Async)(to, byte, count,
                                                                                    c->stream);
    if (count > SMALL)
        return context_fill(ctx, to, byte, count);
    memset(bytes, byte, count);
    return context_write(ctx, &(struct context_copy){to, bytes, (uint32_t)count}, 1);
}

// Sets bytes [first, end) of the shadow, whose pages are real.
static CUresult fill(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t end, uint8_t byte,
                     const struct check_shadow_change *c)
{
    CUresult r = CUDA_SUCCESS;
    while (first < end && !r) {
        uint64_t left = PAGE - first % PAGE, now = end - first < left ? end - first : left;
        r = fill_part(ctx, written_at(d, first), byte, now, c);
        first += now;
    }
    return r;
}

// Allows bytes [first, last) of the shadow, and sets that at `last`: by one copy where they are few.
static CUresult allow_until(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t last,
                            uint8_t byte, const struct check_shadow_change *c)
{
    char bytes[SMALL] = {0};
    uint64_t count = last - first + 1;
    if (count <= SMALL && first / PAGE == last / PAGE) {
        bytes[last - first] = (char)byte;
        return context_write(ctx, &(struct context_copy){written_at(d, first), bytes, (uint32_t)count}, 1);
    }
    CUresult r = fill(d, ctx, first, last, 0, c);
    return r ? r : fill(d, ctx, last, last + 1, byte, c);
}

// A buffer that --mode=pages has placed starts at a multiple of a granule, and no other one is in its last.
static CUresult change_placed(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c, bool *can)
{
    uint64_t rest = c->size & (((uint64_t)1 << d->shift) - 1);
    uint64_t first = c->base >> d->shift, last = (c->base + c->size - 1) >> d->shift;
    // Where --mode=pages got few addresses at once, others may have memory in the same piece.
    *can = is_owned(d, first / d->piece) && is_owned(d, last / d->piece);
    CUresult r = *can ? prepare(d, ctx, first, last, can) : CUDA_SUCCESS;
    if (r || !*can)
        return r;
    if (c->live && rest)
        return allow_until(d, ctx, first, last, kcheck_shadow_byte(d->shift, (uint32_t)rest), c);
    return fill(d, ctx, first, last + 1, c->live ? 0 : KCHECK_SHADOW_POISON, c);
}

// Allows bytes [first, past) of the shadow. Where a page could not be given memory nothing was forbidden.
static CUresult allow(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t past)
{
    const struct check_shadow_change now = {.ordered = false};
    CUresult r = CUDA_SUCCESS;
    for (uint64_t at = first, end; at < past && !r; at = end) {
        end = (at / PAGE + 1) * PAGE < past ? (at / PAGE + 1) * PAGE : past;
        if (d->slots[at / PAGE])
            r = fill(d, ctx, at, end, 0, &now);
    }
    return r;
}

// Writes bytes [first, first + count), of which runs are equal.
struct run {
    uint64_t first;
    uint32_t count;
    char bytes[SMALL];
};

static CUresult write_run(struct shadow_device *d, struct context *ctx, struct run *run)
{
    const struct context_copy copy = {written_at(d, run->first), run->bytes, run->count};
    CUresult r = run->count ? context_write(ctx, &copy, 1) : CUDA_SUCCESS;
    run->first += run->count;
    run->count = 0;
    return r;
}

// Adds equal bytes, which lie in one page.
static CUresult add_run(struct shadow_device *d, struct context *ctx, struct run *run, uint64_t count,
                        uint8_t byte)
{
    const struct check_shadow_change now = {.ordered = false};
    CUresult r = CUDA_SUCCESS;
    if (run->count + count > SMALL)
        r = write_run(d, ctx, run);
    if (!r && count > SMALL) {
        r = fill(d, ctx, run->first, run->first + count, byte, &now);
        run->first += count;
        return r;
    }
    memset(run->bytes + run->count, byte, count);
    run->count += (uint32_t)count;
    return r;
}

// The granules of a pool that nothing else is in: all that are whole, and the last one of its block.
static void pool_granules(unsigned shift, const struct shadow_pool_range *pool, uint64_t *first,
                          uint64_t *past)
{
    uint64_t mask = ((uint64_t)1 << shift) - 1;
    unsigned section = epoch_enter();
    const struct track_block *b = track_live(pool->base);
    bool ends = b && track_end(b) == pool->end;
    epoch_leave(section);
    *first = (pool->base + mask) >> shift;
    *past = (ends ? pool->end + mask : pool->end) >> shift;
}

// Makes bytes of the shadow of a pool anew.
static CUresult change_pieces(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c, bool *can)
{
    struct shadow_pool_range pool;
    struct run run = {.count = 0};
    uint64_t first, past, at = c->base >> d->shift, end = ((c->base + c->size - 1) >> d->shift) + 1;
    if (!shadow_pool_find(c->base, &pool))
        return CUDA_SUCCESS;
    pool_granules(d->shift, &pool, &first, &past);
    at = at > first ? at : first;
    end = end < past ? end : past;
    CUresult r = at < end ? prepare(d, ctx, at, end - 1, can) : CUDA_SUCCESS;
    run.first = at;
    while (at < end && !r && *can) {
        uint64_t page = (at / PAGE + 1) * PAGE, stop = page < end ? page : end;
        while (at < stop && !r) {
            uint8_t byte;
            uint64_t to = shadow_pool_run(d->shift, at << d->shift, stop << d->shift, &byte) >> d->shift;
            r = add_run(d, ctx, &run, to - at, byte);
            at = to;
        }
        if (!r)
            r = write_run(d, ctx, &run);
    }
    return r;
}

// Forbids memory of the driver's, or allows it again: whole granules.
static CUresult change_range(struct shadow_device *d, struct context *ctx,
                             const struct check_shadow_change *c, bool *can)
{
    uint64_t mask = ((uint64_t)1 << d->shift) - 1;
    uint64_t first = (c->base + mask) >> d->shift, past = (c->base + c->size) >> d->shift;
    if (c->live)
        return allow(d, ctx, first, past);
    CUresult r = first < past ? prepare(d, ctx, first, past - 1, can) : CUDA_SUCCESS;
    return r || !*can ? r : fill(d, ctx, first, past, KCHECK_SHADOW_POISON, c);
}

// A buffer with room around it, in memory of the driver: the room is forbidden.
static CUresult forbid_room(struct shadow_device *d, struct context *ctx, const struct check_shadow_change *c,
                            const struct shadow_room *room, bool *can)
{
    uint64_t rest = c->size & (((uint64_t)1 << d->shift) - 1), end = (c->base + c->size) >> d->shift;
    uint64_t front = room->base >> d->shift, first = c->base >> d->shift;
    uint64_t past = (room->base + room->size) >> d->shift;
    CUresult r = prepare(d, ctx, front, first - 1, can);
    if (!r && *can)
        r = fill(d, ctx, front, first, KCHECK_SHADOW_POISON, c);
    if (!r && *can)
        r = prepare(d, ctx, end, past - 1, can);
    if (r || !*can)
        return r;
    r = allow(d, ctx, first, end);
    if (!r && rest)
        r = fill(d, ctx, end, end + 1, kcheck_shadow_byte(d->shift, (uint32_t)rest), c);
    return r ? r : fill(d, ctx, end + (rest != 0), past, KCHECK_SHADOW_POISON, c);
}

static CUresult change_block(struct shadow_device *d, struct context *ctx,
                             const struct check_shadow_change *c, bool *can)
{
    struct shadow_room room = shadow_room_around(c->base, c->size);
    uint64_t end = room.size ? room.base + room.size : c->base + c->size;
    if (c->base & (((uint64_t)1 << d->shift) - 1) || end >> MEMORY_BITS)
        return CUDA_SUCCESS;
    if (pages_map_owns(c->base, c->size))
        return change_placed(d, ctx, c, can);
    return room.size && c->live ? forbid_room(d, ctx, c, &room, can) : CUDA_SUCCESS;
}

CUresult shadow_device_change(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c)
{
    bool can = true;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = c->what == CHECK_SHADOW_PIECES  ? change_pieces(d, ctx, c, &can)
                 : c->what == CHECK_SHADOW_RANGE ? change_range(d, ctx, c, &can)
                                                 : change_block(d, ctx, c, &can);
    context_capture_restore(mode);
    if (!r && !can)
        guard_count(GUARD_SHADOW_OUTSIDE);
    return r;
}

// --- making it ---------------------------------------------------------------------------------------------

static void *reserve_table(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static CUresult make_memory(struct shadow_device *d, struct context *ctx)
{
    CUresult r = guard.real.cuMemAddressReserve(&d->write, SLOTS * PAGE, PAGE, 0, 0);
    if (!r)
        r = create_full(ctx, d->write, d->piece, 0, &d->zeros);
    if (!r)
        r = create_full(ctx, d->write, PAGE, 0, &d->zero_page);
    return r ? r : create_full(ctx, d->write, PAGE, KCHECK_SHADOW_POISON, &d->poison_page);
}

// The first bytes of the address space.
static CUresult forbid_null(struct shadow_device *d, struct context *ctx)
{
    const struct check_shadow_change now = {.ordered = false};
    CUresult r = make_fine(d, ctx, 0);
    if (!r)
        r = make_real(d, ctx, 0, 0);
    return r ? r : fill(d, ctx, 0, KCHECK_NULL_PAGE >> d->shift, KCHECK_SHADOW_POISON, &now);
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
            if (is_owned(d, piece) && !d->pieces[piece])
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
    d->slots = reserve_table(npages * sizeof *d->slots);
    d->handles = reserve_table(SLOTS * sizeof *d->handles);
    if (!d->pieces || !d->slots || !d->handles)
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
    release(d->zero_page);
    release(d->poison_page);
}

void shadow_device_drop(struct shadow_device *d)
{
    if (!d->shift)
        return;
    uint64_t npages = bytes_of(d) / PAGE;
    if (d->handles)
        release_memory(d);
    if (d->pieces)
        munmap(d->pieces, bytes_of(d) / d->piece);
    if (d->slots)
        munmap(d->slots, npages * sizeof *d->slots);
    if (d->handles)
        munmap(d->handles, SLOTS * sizeof *d->handles);
    *d = (struct shadow_device){.shift = 0};
}
