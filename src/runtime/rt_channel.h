// SPDX-License-Identifier: MIT
//
// The runtime describes an array's elements by the bits of their channels, the driver by a format.
#ifndef MOAT_RUNTIME_RT_CHANNEL_H
#define MOAT_RUNTIME_RT_CHANNEL_H

#include "runtime/rt.h"

cudaError_t rt_channel_to_driver(const cudaChannelFormatDesc *desc, CUarray_format *format,
                                 unsigned *channels);
cudaError_t rt_channel_from_driver(CUarray_format format, unsigned channels, cudaChannelFormatDesc *desc);

// Returns the bytes of an element of the array.
cudaError_t rt_channel_array_size(cudaArray_const_t array, size_t *size);

#endif
