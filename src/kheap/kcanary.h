// SPDX-License-Identifier: MIT
// Canaries of blocks on the kernels' heap.
//
// As in core/canary_bytes.h, everything is derived from a keyed hash (SipHash's rounds, one for each word
// and three at the end) of the buffer's address and size: a program that reads the canary of one buffer can
// restore that one, but learns nothing about any other. The size is encrypted with a hash of the address
// alone, because it must be readable before it is known. No byte of a canary is 0. Unlike there, the keys lie
// in device memory, where a kernel that searches for them finds them.
#ifndef MOAT_KHEAP_KCANARY_H
#define MOAT_KHEAP_KCANARY_H

#include "base/canary_shape.h"
#include "kheap/kheap.h"
#include "kprim/kprim.h"

struct kcanary {
    uint64_t head, size, tail;
};

// Offsets in the heap's own structure, which the device reads by address.
#define KCANARY_KEY(heap, i) kprim_get64((heap) + __builtin_offsetof(struct kheap, key) + 8 * (i))

KPRIM uint64_t kcanary_rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

KPRIM void kcanary_mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = kcanary_rotate(v[1], 13) ^ v[0];
    v[3] = kcanary_rotate(v[3], 16) ^ v[2];
    v[0] = kcanary_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = kcanary_rotate(v[1], 17) ^ v[2];
    v[3] = kcanary_rotate(v[3], 21) ^ v[0];
    v[2] = kcanary_rotate(v[2], 32);
}

KPRIM void kcanary_start(uint64_t heap, uint64_t v[4])
{
    uint64_t a = KCANARY_KEY(heap, 0), b = KCANARY_KEY(heap, 1);
    v[0] = a ^ 0x736f6d6570736575u;
    v[1] = b ^ 0x646f72616e646f6du;
    v[2] = a ^ 0x6c7967656e657261u;
    v[3] = b ^ 0x7465646279746573u;
}

KPRIM void kcanary_absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    kcanary_mix(v);
    v[0] ^= word;
}

KPRIM uint64_t kcanary_draw(uint64_t v[4], uint64_t tweak)
{
    v[2] ^= tweak;
    kcanary_mix(v);
    kcanary_mix(v);
    kcanary_mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

// Returns the mask that encrypts the size.
KPRIM_FAR uint64_t kcanary_cover(uint64_t heap, uint64_t address)
{
    uint64_t v[4];
    kcanary_start(heap, v);
    kcanary_absorb(v, address);
    return kcanary_draw(v, 0xee ^ KCANARY_KEY(heap, 2));
}

KPRIM_FAR struct kcanary kcanary_make(uint64_t heap, uint64_t address, uint64_t size, uint64_t cover)
{
    struct kcanary c;
    uint64_t v[4];
    kcanary_start(heap, v);
    kcanary_absorb(v, address);
    kcanary_absorb(v, size);
    c.head = canary_shape(kcanary_draw(v, 0xff ^ KCANARY_KEY(heap, 2)));
    c.tail = canary_shape(kcanary_draw(v, 0x100));
    c.size = canary_shape_hide(size, cover);
    return c;
}

// Returns the mark of freed buffers: their head canary is XORed with it (equation 3 of GMODx), so that damage
// to it stays visible.
KPRIM uint64_t kcanary_free(uint64_t heap)
{
    return KCANARY_KEY(heap, 3) & CANARY_SHAPE_RANDOM;
}

KPRIM void kcanary_put_tail(uint64_t at, uint64_t tail)
{
    if (at % 8 == 0) {
        kprim_put64(at, tail);
        return;
    }
    if (at % 4 == 0) {
        kprim_put32(at, (uint32_t)tail);
        kprim_put32(at + 4, (uint32_t)(tail >> 32));
        return;
    }
    for (unsigned i = 0; i < 8; i++)
        kprim_put8(at + i, (uint8_t)(tail >> 8 * i));
}

KPRIM uint64_t kcanary_get_tail(uint64_t at)
{
    if (at % 8 == 0)
        return kprim_get64(at);
    if (at % 4 == 0)
        return (uint64_t)kprim_get32(at + 4) << 32 | kprim_get32(at);
    uint64_t tail = 0;
    for (unsigned i = 0; i < 8; i++)
        tail |= (uint64_t)kprim_get8(at + i) << 8 * i;
    return tail;
}

#endif
