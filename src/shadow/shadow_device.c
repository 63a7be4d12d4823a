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
    return d->cuMemAddressReserve && d->cuMemCreate && d->cuMemMap && d->cuMemUnmap && d->cuMemSetAccess &&
           d->cuMemsetD8Async;
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

// Cuts a piece into pages that share one page.
static CUresult make_fine(struct shadow_device *d, struct context *ctx, uint64_t piece,
                          CUmemGenericAllocationHandle page)
{
    CUresult r = guard.real.cuMemUnmap(d->at + piece * d->piece, d->piece);
    if (!r)
        r = map_over(ctx, d->at + piece * d->piece, d->piece, PAGE, page);
    d->pieces[piece] = 1;
    return r;
}

// Gives a page memory of its own, full of a byte.
static CUresult make_real(struct shadow_device *d, struct context *ctx, uint64_t page, uint8_t byte)
{
    CUmemGenericAllocationHandle handle;
    if (d->used == SLOTS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr write = d->write + d->used * PAGE, read = d->at + page * PAGE;
    CUresult r = create(ctx->device, PAGE, &handle);
    if (r)
        return r;
    r = guard.real.cuMemMap(write, PAGE, 0, handle, 0);
    if (!r)
        r = set_access(ctx->device, write, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (!r)
        r = context_fill(ctx, write, byte, PAGE);
    if (!r)
        r = guard.real.cuMemUnmap(read, PAGE);
    if (!r)
        r = map_over(ctx, read, PAGE, PAGE, handle);
    guard.real.cuMemRelease(handle);  // the mappings keep it
    if (!r)
        d->slots[page] = ++d->used;
    return r;
}

// --- changes -----------------------------------------------------------------------------------------------

// Returns whether a whole piece describes addresses of --mode=pages.
static bool is_owned(const struct shadow_device *d, uint64_t piece)
{
    uint64_t first = piece * d->piece << d->shift, size = d->piece << d->shift;
    return pages_map_owns(first, size);
}

// Makes sure that bytes of the shadow can be written. *can: they can.
static CUresult prepare(struct shadow_device *d, struct context *ctx, uint64_t first, uint64_t last,
                        bool *can)
{
    CUresult r = CUDA_SUCCESS;
    *can = true;
    for (uint64_t page = first / PAGE; page <= last / PAGE && *can && !r; page++) {
        uint64_t piece = page * PAGE / d->piece;
        if (d->slots[page])
            continue;
        *can = is_owned(d, piece);
        if (*can && !d->pieces[piece])
            r = make_fine(d, ctx, piece, d->poison_page);
        if (*can && !r)
            r = make_real(d, ctx, page, KCHECK_SHADOW_POISON);
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

// A buffer that --mode=pages has placed starts at a multiple of a granule, and no other one is in its last.
CUresult shadow_device_change(struct shadow_device *d, struct context *ctx,
                              const struct check_shadow_change *c)
{
    uint64_t granule = (uint64_t)1 << d->shift, rest = c->size % granule;
    uint64_t first = c->base >> d->shift, last = (c->base + c->size - 1) >> d->shift;
    bool can;
    if (c->base % granule || (c->base + c->size) >> MEMORY_BITS || !pages_map_owns(c->base, c->size))
        return CUDA_SUCCESS;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = prepare(d, ctx, first, last, &can);
    if (!r && can)
        r = fill(d, ctx, first, c->live && rest ? last : last + 1, c->live ? 0 : KCHECK_SHADOW_POISON, c);
    if (!r && can && c->live && rest)
        r = fill(d, ctx, last, last + 1, kcheck_shadow_byte(d->shift, (uint32_t)rest), c);
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

// Kernels on a GPU may use generic addresses of shared and local memory, whose windows may be anywhere; the
// CPU device's are below 2^47.
static CUresult map_all(struct shadow_device *d, struct context *ctx)
{
    uint64_t top = bytes_of(d) - d->piece, bytes = guard.real_fault ? memory_bytes(d) : top;
    CUresult r = create_full(ctx, d->at, d->piece, 0, &d->zeros);
    if (!r)
        r = create_full(ctx, d->at, PAGE, 0, &d->zero_page);
    if (!r)
        r = create_full(ctx, d->at, PAGE, KCHECK_SHADOW_POISON, &d->poison_page);
    if (!r)
        r = map_over(ctx, d->at, bytes, d->piece, d->zeros);
    // What is just below 0: a null pointer with a negative index.
    return r ? r : map_over(ctx, d->at + top, d->piece, PAGE, d->poison_page);
}

// The first bytes of the address space.
static CUresult forbid_null(struct shadow_device *d, struct context *ctx)
{
    const struct check_shadow_change now = {.ordered = false};
    CUresult r = make_fine(d, ctx, 0, d->zero_page);
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
                r = make_fine(d, ctx, piece, d->poison_page);
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

CUresult shadow_device_make(struct shadow_device *d, struct context *ctx, unsigned shift)
{
    *d = (struct shadow_device){.shift = shift, .piece = piece_bytes(shift)};
    uint64_t npages = bytes_of(d) / PAGE;
    d->pieces = reserve_table(bytes_of(d) / d->piece);
    d->slots = reserve_table(npages * sizeof *d->slots);
    if (!d->pieces || !d->slots)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!has_calls())
        return CUDA_ERROR_NOT_SUPPORTED;
    CUstreamCaptureMode mode = context_capture_relax();
    CUresult r = guard.real.cuMemAddressReserve(&d->at, bytes_of(d), PAGE, 0, 0);
    if (!r)
        r = guard.real.cuMemAddressReserve(&d->write, SLOTS * PAGE, PAGE, 0, 0);
    if (!r)
        r = map_all(d, ctx);
    if (!r)
        r = forbid_null(d, ctx);
    if (!r)
        r = forbid_used(d, ctx);
    struct adding all = {d, ctx, r};
    unsigned section = epoch_enter();
    if (!r)
        track_each(add_block, &all);
    epoch_leave(section);
    context_capture_restore(mode);
    return all.r;
}

void shadow_device_drop(struct shadow_device *d)
{
    if (!d->shift)
        return;
    uint64_t npages = bytes_of(d) / PAGE;
    if (d->pieces)
        munmap(d->pieces, bytes_of(d) / d->piece);
    if (d->slots)
        munmap(d->slots, npages * sizeof *d->slots);
    *d = (struct shadow_device){.shift = 0};
}
