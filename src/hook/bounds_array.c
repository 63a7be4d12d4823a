// SPDX-License-Identifier: MIT
#include "hook/bounds_array.h"

#include <stdio.h>

#include "core/guard.h"
#include "track/guard_report.h"
#include "track/track.h"

static bool beyond(uint64_t from, uint64_t count, uint64_t size)
{
    return from > size || (count ? count : 1) > size - from;
}

static uint64_t at_least_one(uint64_t n)
{
    return n ? n : 1;
}

static CUresult refuse(enum driver_id call, enum report_type type, CUarray array,
                       const struct bounds_box *box, enum report_access access,
                       const struct track_copy *buffer, const char *note)
{
    struct guard_finding f = {
        .type = type,
        .call = call,
        .nowhere = true,
        .bytes = box->width * at_least_one(box->height) * at_least_one(box->depth),
        .access = access,
        .nbuffers = buffer != NULL,
        .note = note,
    };
    if (buffer)
        f.buffers[0] = *buffer;
    guard_report_finding(&f);
    return type == REPORT_USE_AFTER_FREE ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

CUresult bounds_array(enum driver_id call, CUarray array, const struct bounds_box *box,
                      enum report_access access)
{
    if (!guard.watching || !array || !box->width)
        return CUDA_SUCCESS;
    unsigned section = epoch_enter();
    struct track_block *b = track_handle((uintptr_t)array);
    struct track_block *gone = b ? NULL : track_freed_handle((uintptr_t)array);
    struct track_copy copy = b      ? track_copy(b, false)
                             : gone ? track_copy(gone, true)
                                    : (struct track_copy){0};
    epoch_leave(section);
    if (gone)
        return refuse(call, REPORT_USE_AFTER_FREE, array, box, access, &copy, "the array was destroyed");
    CUDA_ARRAY3D_DESCRIPTOR d;
    if (!b || !guard.real.cuArray3DGetDescriptor_v2 || guard.real.cuArray3DGetDescriptor_v2(&d, array))
        return CUDA_SUCCESS;
    uint64_t row = (uint64_t)d.Width * driver_format_bytes(d.Format) * d.NumChannels;
    if (box->line)
        row *= at_least_one(d.Height);
    if (!row || !(beyond(box->x, box->width, row) || beyond(box->y, box->height, at_least_one(d.Height)) ||
                  beyond(box->z, box->depth, at_least_one(d.Depth))))
        return CUDA_SUCCESS;
    char note[240];
    snprintf(note, sizeof note,
             "the transfer is to x %llu+%llu, y %llu+%llu, z %llu+%llu of an array of %llu bytes x %zu x %zu",
             (unsigned long long)box->x, (unsigned long long)box->width, (unsigned long long)box->y,
             (unsigned long long)at_least_one(box->height), (unsigned long long)box->z,
             (unsigned long long)at_least_one(box->depth), (unsigned long long)row, d.Height, d.Depth);
    return refuse(call, REPORT_HEAP_OVERFLOW, array, box, access, &copy, note);
}
