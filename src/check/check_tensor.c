// SPDX-License-Identifier: MIT
#include "check/check_tensor.h"

#include <stdio.h>
#include <string.h>

#include "track/encoded_map.h"
#include "track/track.h"

_Static_assert((int)ENCODED_MAP_RANK == (int)KCHECK_MAP_RANK, "the host knows all dimensions");

// Returns whether all of the tensor is where nothing has to be compared.
static bool is_right(const struct encoded_map *about)
{
    const struct track_block *b = track_announced(about->address);
    b = b ? b : track_live(about->address);
    if (!b)
        return false;
    // When memory of a graph is valid is unknown.
    if (b->facts.family == TRACK_GRAPH)
        return true;
    return about->bytes && about->bytes <= track_end(b) - about->address;
}

void check_tensor_fill(const char *bytes, struct kcheck_map *out)
{
    struct encoded_map about;
    *out = (struct kcheck_map){.address = 0};
    if (!encoded_map_find(bytes, &about))
        return;
    out->box = encoded_map_reach(&about);
    if (is_right(&about))
        return;
    out->address = about.address;
    out->element = about.element ? about.element : 1;
    for (uint32_t i = 0; i < about.rank && about.bytes; i++) {
        out->last[i] = (uint32_t)(about.size[i] - 1);
        out->extra[i] = about.box[i];
        if (i)
            out->stride[i - 1] = about.stride[i];
    }
    // Without known strides, the first element stands for all.
    for (uint32_t i = 0; i < KCHECK_MAP_RANK && !about.bytes; i++)
        out->last[i] = UINT32_MAX;
}

const char *check_tensor_note(uint64_t address)
{
    static char note[300];
    struct encoded_map about;
    if (!encoded_map_find_address(address, &about) || !about.bytes)
        return NULL;
    int len = snprintf(note, sizeof note, "its box is part of a tensor map of %u dimension%s, ",
                       (unsigned)about.rank, about.rank == 1 ? "" : "s");
    for (uint32_t i = 0; i < about.rank; i++)
        len += snprintf(note + len, sizeof note - (size_t)len, "%s%llu", i ? " x " : "",
                        (unsigned long long)about.size[i]);
    snprintf(note + len, sizeof note - (size_t)len, " elements of %u bytes: %llu bytes from 0x%llx on",
             (unsigned)about.element, (unsigned long long)about.bytes, (unsigned long long)address);
    return note;
}
