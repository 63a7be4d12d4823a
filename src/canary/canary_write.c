// SPDX-License-Identifier: MIT
#include "canary/canary_write.h"

#include <string.h>

#include "canary/canary_staging.h"
#include "context/context_copy.h"
#include "core/lock.h"
#include "core/guard.h"

static struct lock lock = LOCK_INIT(CANARY_WRITE);  // a leaf, held while rows are copied

void canary_write_after_fork(void)
{
    lock_after_fork(&lock);
}

void canary_write_make(const struct canary_place *place, uint8_t head[CANARY_HEAD],
                       uint8_t tail[CANARY_TAIL_MOST], uint32_t *count)
{
    struct canary_seed seed = canary_slab_seed(place);
    *count = canary_slab_tail(place->slab, place->size);
    canary_bytes_head(&seed, canary_slab_head_number(place->slab, place->size), head);
    canary_bytes_slot(&seed, canary_slab_phase(place->slab, place->size), tail, *count);
}

// Writes the head of the first slot. The rest of its row is before the slab, and may be another's.
static CUresult write_first_head(const struct canary_slab *slab, struct canary_staging *staging)
{
    uint8_t *head = staging->pinned->fill_buffer;
    struct canary_seed seed = canary_bytes_seed(slab->base, slab->stride);
    canary_bytes_head(&seed, slab->stride, head);
    CUresult r =
        guard.real.cuMemcpyHtoDAsync_v2(slab->base - CANARY_HEAD, head, CANARY_HEAD, staging->fill_stream);
    return r ? r : guard.real.cuStreamSynchronize(staging->fill_stream);
}

// Writes as many rows at a time as fit into the fill buffer.
CUresult canary_write_slab(struct context *ctx, const struct canary_slab *slab)
{
    struct canary_staging *staging = canary_staging_of(ctx);
    uint32_t width;
    uint64_t at = canary_slab_row(slab, &width);
    CUresult r = staging ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    CUstreamCaptureMode mode = context_capture_relax();
    lock_take(&lock);
    if (!r)
        r = write_first_head(slab, staging);
    for (uint32_t row = 1, n; row <= slab->slots && !r; row += n) {
        uint8_t *fill_buffer = staging->pinned->fill_buffer;
        n = slab->slots + 1 - row < CANARY_FILL_BYTES / width ? slab->slots + 1 - row
                                                              : CANARY_FILL_BYTES / width;
        for (uint32_t i = 0; i < n; i++)
            canary_slab_make_row(slab, row + i, width, fill_buffer + (size_t)i * width);
        const CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                 .srcHost = fill_buffer,
                                 .srcPitch = width,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = at + row * slab->stride,
                                 .dstPitch = slab->stride,
                                 .WidthInBytes = width,
                                 .Height = n};
        r = guard.real.cuMemcpy2DAsync_v2(&c, staging->fill_stream);
        if (!r)
            r = guard.real.cuStreamSynchronize(staging->fill_stream);
    }
    lock_give(&lock);
    context_capture_restore(mode);
    return r;
}

// Writes the canaries of a lone buffer. The first copy is of two rows, as a scan's: if the driver refuses
// it, as it may across pieces of mapped memory, that is known from the start.
static CUresult write_lone(struct context *ctx, const struct canary_place *place,
                           struct canary_staging *staging, int row_buffer)
{
    uint8_t *rows = staging->pinned->row_buffer[row_buffer];
    uint32_t count;
    canary_write_make(place, rows, rows + CANARY_HEAD, &count);
    const struct context_copy rest = {place->base + place->size + CANARY_HEAD, rows + 2 * CANARY_HEAD,
                                      count - CANARY_HEAD};
    return context_write_rows(ctx, place->base - CANARY_HEAD, place->size + CANARY_HEAD, CANARY_HEAD, rows,
                              &rest);
}

CUresult canary_write_place(struct context *ctx, const struct canary_place *place)
{
    struct canary_staging *staging = canary_staging_of(ctx);
    int row_buffer =
        staging && canary_slab_is_lone_suballocated(place->slab) ? canary_staging_take_rows(staging) : -1;
    if (row_buffer >= 0) {
        CUresult r = write_lone(ctx, place, staging, row_buffer);
        canary_staging_give_rows(staging, row_buffer);
        return r;
    }
    uint8_t head[CANARY_HEAD], tail[CANARY_TAIL_MOST];
    uint32_t count;
    uint64_t behind = place->base + place->size;
    canary_write_make(place, head, tail, &count);
    if (canary_slab_is_direct(place->slab)) {
        if (place->slab->memory->write_more)
            place->slab->memory->write_more(place);
        memcpy((uint8_t *)(uintptr_t)place->base - CANARY_HEAD, head, CANARY_HEAD);
        memcpy((uint8_t *)(uintptr_t)behind, tail, count);
        return CUDA_SUCCESS;
    }
    static const uint8_t zeros[CANARY_TAIL_MOST];
    uint32_t clear = place->clear_from ? (uint32_t)place->size - place->clear_from : 0;
    const struct context_copy copies[] = {{place->base - CANARY_HEAD, head, CANARY_HEAD},
                                          {behind, tail, count},
                                          {place->base + place->clear_from, (void *)zeros, clear}};
    return context_write(ctx, copies, 3);
}
