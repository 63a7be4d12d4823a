// SPDX-License-Identifier: MIT
#include "runtime/rt_channel.h"

struct channel {
    cudaChannelFormatKind kind;
    int bits;
    unsigned channels;
    CUarray_format format;
};

static const struct channel table[] = {
#define CHANNEL(kind, bits, channels, format) \
    {cudaChannelFormatKind##kind, bits, channels, CU_AD_FORMAT_##format},
#include "runtime/rt_channels.def"
};

enum { ROWS = sizeof table / sizeof *table };

// Returns the number of channels; 0 if some channel has other bits than the first, or one before it is
// missing.
static unsigned count(const cudaChannelFormatDesc *desc)
{
    const int bits[4] = {desc->x, desc->y, desc->z, desc->w};
    unsigned channels = 0;

    while (channels < 4 && bits[channels] == desc->x)
        channels++;
    for (unsigned i = channels; i < 4; i++)
        if (bits[i])
            return 0;
    return desc->x ? channels : 0;
}

cudaError_t rt_channel_to_driver(const cudaChannelFormatDesc *desc, CUarray_format *format,
                                 unsigned *channels)
{
    unsigned have = count(desc);

    for (int i = 0; i < ROWS; i++) {
        const struct channel *row = &table[i];
        if (row->kind != desc->f || row->bits != desc->x)
            continue;
        if (row->channels ? have != row->channels : have != 1 && have != 2 && have != 4)
            continue;
        *format = row->format;
        *channels = have;
        return cudaSuccess;
    }
    return cudaErrorInvalidChannelDescriptor;
}

cudaError_t rt_channel_from_driver(CUarray_format format, unsigned channels, cudaChannelFormatDesc *desc)
{
    for (int i = 0; i < ROWS; i++) {
        if (table[i].format == format) {
            int bits = table[i].bits;
            *desc = (cudaChannelFormatDesc){
                .x = bits,
                .y = channels > 1 ? bits : 0,
                .z = channels > 2 ? bits : 0,
                .w = channels > 3 ? bits : 0,
                .f = table[i].kind,
            };
            return cudaSuccess;
        }
    }
    return cudaErrorInvalidChannelDescriptor;
}

cudaError_t rt_channel_array_size(cudaArray_const_t array, size_t *size)
{
    CUDA_ARRAY3D_DESCRIPTOR found;
    cudaChannelFormatDesc desc;
    cudaError_t error = rt_error(RT_RAW(cuArray3DGetDescriptor_v2, &found, (CUarray)(uintptr_t)array));

    if (!error)
        error = rt_channel_from_driver(found.Format, found.NumChannels, &desc);
    if (!error)
        *size = (size_t)(desc.x + desc.y + desc.z + desc.w) / 8;
    return error;
}
