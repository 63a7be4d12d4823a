// SPDX-License-Identifier: MIT
#include "fence/fence_partition.h"

#include "core/guard.h"

#define UNIT ((uint64_t)FENCE_PARTITION_UNIT)
#define ZONE ((uint64_t)KFENCE_ZONE)
#define AROUND (KFENCE_FAR + ZONE)  // sinks on either side

enum {
    LEAST_BITS = 32,  // of the size: the upper halves of its addresses differ from all others
    SHARE = 4,        // a growth adds this part of the memory that there is
};

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuMemAddressReserve && d->cuMemAddressFree && d->cuMemCreate && d->cuMemMap && d->cuMemUnmap &&
           d->cuMemSetAccess && d->cuMemRelease;
}

// --- addresses ---------------------------------------------------------------------------------------------

// Reserves [base - AROUND, base + size + AROUND) with base at a multiple of size.
static CUresult reserve(uint64_t size, uint64_t *base)
{
    const struct driver *d = &guard.real;
    CUdeviceptr at = 0;
    // Wherever this begins, a multiple of size lies in it with room on either side.
    CUresult r = d->cuMemAddressReserve(&at, 2 * size + 2 * AROUND, 0, 0, 0);
    *base = (at + AROUND + size - 1) & ~(size - 1);
    return r;
}

static uint64_t power_above(uint64_t n)
{
    uint64_t power = (uint64_t)1 << LEAST_BITS;
    while (power < n)
        power *= 2;
    return power;
}

// --- sinks -------------------------------------------------------------------------------------------------

static CUresult create(CUdevice device, uint64_t bytes, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return guard.real.cuMemCreate(handle, bytes, &prop, 0);
}

static CUresult open_to_kernels(CUdevice device, uint64_t base, uint64_t bytes)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return guard.real.cuMemSetAccess(base, bytes, &access, 1);
}

static CUresult map_sinks(const struct fence_partition *p, uint64_t from, uint64_t to)
{
    CUresult r = CUDA_SUCCESS;
    uint64_t at = from;
    for (; at < to && !r; at += UNIT)
        r = guard.real.cuMemMap(at, UNIT, 0, p->sink, 0);
    return r || from == to ? r : open_to_kernels(p->device, from, to - from);
}

CUresult fence_partition_make(struct fence_partition *p, struct context *ctx)
{
    const struct context_device *device = context_device_of(ctx->device);
    if (!has_calls() || !device || !device->mappable)
        return CUDA_ERROR_NOT_SUPPORTED;
    // Twice the memory of the device: freed and taken memory does not always fit together.
    *p = (struct fence_partition){.device = ctx->device, .most = power_above(2 * device->memory)};
    uint64_t size = (uint64_t)1 << LEAST_BITS, base = 0;
    CUresult r = create(p->device, UNIT, &p->sink);
    if (!r)
        r = reserve(p->most, &base);
    if (!r)
        r = map_sinks(p, base - AROUND, base + size + AROUND);
    if (r)
        return r;
    p->base = base;
    p->size = size;
    p->top = base + ZONE;
    p->generation = 1;
    return CUDA_SUCCESS;
}

// Maps sinks behind the partition, up to twice its size.
static CUresult enlarge(struct fence_partition *p)
{
    if (p->size == p->most)
        return CUDA_ERROR_OUT_OF_MEMORY;
    // What is around the partition is mapped already; the same behind the last size was reserved too.
    CUresult r = map_sinks(p, p->base + p->size + AROUND, p->base + 2 * p->size + AROUND);
    if (r)
        return r;
    p->size *= 2;
    p->generation++;
    return CUDA_SUCCESS;
}

// --- pieces ------------------------------------------------------------------------------------------------

// Puts memory in the place of sinks.
static CUresult put_memory(struct fence_partition *p, uint64_t base, uint64_t bytes)
{
    CUmemGenericAllocationHandle handle;
    CUresult r = create(p->device, bytes, &handle);
    if (r)
        return r;
    for (uint64_t at = base; at < base + bytes && !r; at += UNIT)
        r = guard.real.cuMemUnmap(at, UNIT);
    if (!r)
        r = guard.real.cuMemMap(base, bytes, 0, handle, 0);
    if (!r)
        r = open_to_kernels(p->device, base, bytes);
    guard.real.cuMemRelease(handle);  // the mapping keeps it
    if (r)
        map_sinks(p, base, base + bytes);  // whatever failed, nothing may be left unmapped
    if (r || !fence_space_add(&p->space, base, bytes))
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    p->held += bytes;
    return CUDA_SUCCESS;
}

// Adds a piece behind all others. There is room in the list.
static CUresult add_piece(struct fence_partition *p, uint64_t bytes)
{
    CUresult r = put_memory(p, p->top, bytes);
    if (r)
        return r;
    p->pieces.items[p->pieces.len++] = (struct fence_piece){p->top, bytes, true};
    p->top += bytes;
    return CUDA_SUCCESS;
}

// Returns the smallest piece that was given back and has room, or NULL.
static struct fence_piece *find_gap(struct fence_partition *p, uint64_t bytes)
{
    struct fence_piece *found = NULL;
    for (size_t i = 0; i < p->pieces.len; i++) {
        struct fence_piece *piece = &p->pieces.items[i];
        if (!piece->there && piece->bytes >= bytes && (!found || piece->bytes < found->bytes))
            found = piece;
    }
    return found;
}

// Puts memory where some was given back. There is room in the list.
static CUresult fill_gap(struct fence_partition *p, struct fence_piece *piece, uint64_t bytes)
{
    CUresult r = put_memory(p, piece->base, bytes);
    if (r)
        return r;
    if (piece->bytes > bytes)
        p->pieces.items[p->pieces.len++] =
            (struct fence_piece){piece->base + bytes, piece->bytes - bytes, false};
    piece->bytes = bytes;
    piece->there = true;
    return CUDA_SUCCESS;
}

CUresult fence_partition_grow(struct fence_partition *p, uint64_t bytes)
{
    uint64_t need = (bytes + UNIT - 1) / UNIT * UNIT, more = (p->top - p->base) / SHARE / UNIT * UNIT;
    CUresult r = CUDA_SUCCESS;
    if (need < bytes || need > p->most || vec_reserve(&p->pieces, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fence_piece *gap = find_gap(p, need);
    if (gap)
        return fill_gap(p, gap, need);
    more = more > need ? more : need;
    while (!r && p->top + more + ZONE > p->base + p->size)
        r = enlarge(p);
    if (!r)
        r = add_piece(p, more);
    return r && more > need ? add_piece(p, need) : r;
}

// Returns the last piece in the extent that has at most so many bytes, or NULL.
static struct fence_piece *find_free(const struct fence_partition *p, const struct fence_extent *e,
                                     uint64_t most)
{
    struct fence_piece *found = NULL;
    for (size_t i = 0; e && i < p->pieces.len; i++) {
        struct fence_piece *piece = &p->pieces.items[i];
        if (piece->there && piece->bytes <= most && piece->base >= e->base &&
            piece->base + piece->bytes <= e->base + e->size && (!found || piece->base > found->base))
            found = piece;
    }
    return found;
}

bool fence_partition_has_free(const struct fence_partition *p, const struct fence_extent *e, uint64_t most)
{
    return find_free(p, e, most);
}

// Puts sinks in the place of memory that is in no extent. A piece is unmapped as it was mapped, whole.
// Returns false if the driver does not do it.
static bool put_sinks(struct fence_partition *p, struct fence_piece *piece)
{
    if (guard.real.cuMemUnmap(piece->base, piece->bytes))
        return false;
    piece->there = false;
    p->held -= piece->bytes;
    return !map_sinks(p, piece->base, piece->base + piece->bytes);
}

uint64_t fence_partition_give_back(struct fence_partition *p, struct fence_extent *e, uint64_t most)
{
    uint64_t given = 0;
    struct fence_piece *piece;
    while ((piece = find_free(p, e, most - given)) &&
           fence_space_cut(&p->space, e, piece->base, piece->bytes, &e)) {
        uint64_t bytes = piece->bytes;
        if (!put_sinks(p, piece))
            break;
        given += bytes;
    }
    return given;
}

void fence_partition_forget(struct fence_partition *p)
{
    vec_free(&p->pieces);
    *p = (struct fence_partition){.size = 0};
}

void fence_partition_describe(const struct fence_partition *p, struct kfence_module *m)
{
    m->base = p->base;
    m->mask = p->size - 1;
    m->outside = ~m->mask;
    m->sink = p->base + p->size - ZONE / 2;
    m->pages = p->size >> 21;
    m->last = p->base + m->mask;
}
