// SPDX-License-Identifier: MIT
#include "shadow/shadow_map.h"

#include "core/guard.h"
#include "pages/pages_map.h"

CUresult shadow_map(struct shadow_device *d, CUdeviceptr at, uint64_t size,
                    CUmemGenericAllocationHandle handle)
{
    d->mappings++;
    return guard.real.cuMemMap(at, size, 0, handle, 0);
}

CUresult shadow_map_access(CUdevice device, CUdeviceptr at, uint64_t size, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = flags};
    return guard.real.cuMemSetAccess(at, size, &access, 1);
}

CUresult shadow_map_over(struct shadow_device *d, CUdeviceptr at, uint64_t size, uint64_t unit,
                         CUmemGenericAllocationHandle handle)
{
    CUresult r = CUDA_SUCCESS;
    for (uint64_t done = 0; done < size && !r; done += unit)
        r = shadow_map(d, at + done, unit, handle);
    return r;
}

bool shadow_device_owns(const struct shadow_device *d, uint64_t piece)
{
    return pages_map_owns(piece * d->piece << d->shift, d->piece << d->shift);
}

bool shadow_owns_page(const struct shadow_device *d, uint64_t page)
{
    return shadow_device_owns(d, page * SHADOW_PAGE / d->piece);
}

bool shadow_has_real(const struct shadow_device *d, uint64_t block)
{
    const uint64_t pages = SHADOW_BLOCK / SHADOW_PAGE;
    for (uint64_t i = block * pages; i < (block + 1) * pages; i++)
        if (d->slots[i])
            return true;
    return false;
}

CUresult shadow_map_page(struct shadow_device *d, CUdeviceptr at, uint64_t page)
{
    return shadow_map(d, at + page * SHADOW_PAGE, SHADOW_PAGE,
                      d->slots[page] ? d->handles[d->slots[page] - 1] : d->page[shadow_owns_page(d, page)]);
}

CUresult shadow_map_block(struct shadow_device *d, CUdeviceptr at, uint64_t block)
{
    bool owned = shadow_device_owns(d, block * SHADOW_BLOCK / d->piece);
    uint64_t first = block * SHADOW_BLOCK;
    if (!shadow_has_real(d, block))
        return shadow_map(d, at + first, SHADOW_BLOCK, d->blocks[owned]);
    CUresult r = CUDA_SUCCESS;
    for (uint64_t page = first / SHADOW_PAGE; page < (first + SHADOW_BLOCK) / SHADOW_PAGE && !r; page++)
        r = shadow_map_page(d, at, page);
    return r;
}

CUresult shadow_map_piece(struct shadow_device *d, CUdeviceptr at, uint64_t piece)
{
    uint64_t first = piece * d->piece / SHADOW_BLOCK, n = d->piece / SHADOW_BLOCK;
    if (!d->pieces[piece])
        return shadow_map(d, at + piece * d->piece, d->piece, d->zeros);
    CUresult r = CUDA_SUCCESS;
    for (uint64_t block = first; block < first + n && !r; block++)
        r = shadow_map_block(d, at, block);
    return r;
}

bool shadow_owns_span(const struct shadow_device *d, uint64_t span)
{
    return pages_map_owns(span * d->span << d->shift, d->span << d->shift);
}

// Returns whether a span can be whole: nothing in it is fine, or can become so without the others.
static bool can_be_whole(const struct shadow_device *d, uint64_t span)
{
    uint64_t n = d->span / d->piece, first = span * n, owned = 0;
    for (uint64_t i = first; i < first + n; i++) {
        owned += shadow_device_owns(d, i);
        if (d->pieces[i])
            return false;
    }
    return !owned || owned == n;
}

CUresult shadow_map_pieces(struct shadow_device *d, CUdeviceptr at, uint64_t span)
{
    uint64_t n = d->span / d->piece;
    CUresult r = CUDA_SUCCESS;
    for (uint64_t i = span * n; i < (span + 1) * n && !r; i++)
        r = shadow_map_piece(d, at, i);
    return r;
}

CUresult shadow_map_span(struct shadow_device *d, CUdeviceptr at, uint64_t span)
{
    d->next_spans[span] = can_be_whole(d, span);
    return d->next_spans[span] ? shadow_map(d, at + span * d->span, d->span, d->span_zeros)
                               : shadow_map_pieces(d, at, span);
}
