// SPDX-License-Identifier: MIT
// What code for kernels needs of the machine: memory, atomic operations, the warp.
//
// Such code (the kernels' heap, the error ring) is written once, over these functions. On a GPU they are PTX
// instructions; on the host they are C11 atomics, each preceded by a step in which a test can let another
// thread run, and a warp has one lane. In native functions of the CPU device (KPRIM_NATIVE) they are C11
// atomics on the device's memory. Addresses are numbers. get and put are for memory that one thread owns at
// the time; ld, st and the others are atomic at device scope. Orders are C11's; operations on one address see
// each other in one order.
#ifndef MOAT_KPRIM_KPRIM_H
#define MOAT_KPRIM_KPRIM_H

#include <stdbool.h>
#include <stdint.h>

enum kprim_order { KPRIM_RELAXED, KPRIM_ACQUIRE, KPRIM_RELEASE, KPRIM_ACQ_REL };

struct kprim_thread {
    uint64_t grid;
    uint32_t block[3], thread[3];
};

#ifdef __NVPTX__
#include "kprim/kprim_device.h"
#elif defined KPRIM_NATIVE
#include "kprim/kprim_native.h"
#else
#include "kprim/kprim_host.h"
#endif

#endif
