// SPDX-License-Identifier: MIT
// kprim.h for code that the CPU device calls natively (base/native_rows.h): a warp has one lane, as on the
// host, and addresses are those of the device, with its rights. A lane that may not access some memory, or
// that would have to wait, declines its call.
#ifndef MOAT_KPRIM_KPRIM_NATIVE_H
#define MOAT_KPRIM_KPRIM_NATIVE_H

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "base/native_rows.h"

#define KPRIM static inline __attribute__((always_inline, unused))
#define KPRIM_FAR static __attribute__((unused))
#define KPRIM_ROLLED
#define KPRIM_REST(a, b) kprim_native_rest(a, b)

#include "kprim/kprim_one_lane.h"

// More atomic loads than any call makes. A call that makes them searches memory that a kernel has
// overwritten.
enum { KPRIM_NATIVE_LOADS = 1 << 20 };

// The call that a thread is executing.
struct kprim_native {
    struct native_call *call;
    uint32_t lane, loads;
    volatile uint32_t done;
    jmp_buf decline;
};

// Set before the first call, and never changed.
extern struct native_space kprim_native_space;
extern _Thread_local struct kprim_native *kprim_native_here __attribute__((tls_model("initial-exec")));

// Calls `body`, which adds to here->done the lanes whose calls are done, and sets here->lane to the one that
// it executes. Returns here->done as it was when body returned or called kprim_decline.
uint32_t kprim_native_run(struct native_call *c, void (*body)(struct native_call *, struct kprim_native *));

#define KPRIM_NATIVE_EACH(here, mask)                                                             \
    for (uint32_t left_ = (mask); left_ && ((here)->lane = (uint32_t)__builtin_ctz(left_), true); \
         left_ &= left_ - 1)

static _Noreturn inline __attribute__((unused)) void kprim_decline(void)
{
    _longjmp(kprim_native_here->decline, 1);
}

// Not even a kernel that has overwritten memory ends the process by a division.
KPRIM uint32_t kprim_native_rest(uint32_t a, uint32_t b)
{
    if (!b)
        kprim_decline();
    return a % b;
}

// Returns the host address of bytes that a kernel may access; they are aligned to their size.
KPRIM void *kprim_native_at(uint64_t at, unsigned size, unsigned rights)
{
    const struct native_space *s = &kprim_native_space;
    if (at >> NATIVE_BITS || at % size)
        kprim_decline();
    // As in exec/space.h: pairs with the releases of whoever sets rights.
    unsigned have = __atomic_load_n(&s->coarse[at >> NATIVE_COARSE_BITS], __ATOMIC_ACQUIRE);
    if (__builtin_expect(have & NATIVE_FINE, 0))
        have = __atomic_load_n(&s->fine[at >> NATIVE_FINE_BITS], __ATOMIC_RELAXED);
    if ((have & rights) != rights)
        kprim_decline();
    return (void *)(uintptr_t)(at - s->device_base < s->device_size ? at + s->alias : at);
}

KPRIM int kprim_c11(enum kprim_order order)
{
    switch (order) {
    case KPRIM_RELAXED: return __ATOMIC_RELAXED;
    case KPRIM_ACQUIRE: return __ATOMIC_ACQUIRE;
    case KPRIM_RELEASE: return __ATOMIC_RELEASE;
    default: return __ATOMIC_ACQ_REL;
    }
}

// The memory is the program's, and may be changed by a kernel that is wrong: plain accesses are relaxed ones.
#define KPRIM_NATIVE_PLAIN(bits)                                                             \
    KPRIM uint##bits##_t kprim_get##bits(uint64_t at)                                        \
    {                                                                                        \
        return __atomic_load_n((uint##bits##_t *)kprim_native_at(at, bits / 8, NATIVE_READ), \
                               __ATOMIC_RELAXED);                                            \
    }                                                                                        \
    KPRIM void kprim_put##bits(uint64_t at, uint##bits##_t v)                                \
    {                                                                                        \
        __atomic_store_n((uint##bits##_t *)kprim_native_at(at, bits / 8, NATIVE_WRITE), v,   \
                         __ATOMIC_RELAXED);                                                  \
    }
KPRIM_NATIVE_PLAIN(8)
KPRIM_NATIVE_PLAIN(32)
KPRIM_NATIVE_PLAIN(64)

// The order is a constant wherever these are inlined.
#define KPRIM_NATIVE_ATOMIC(bits)                                                                          \
    KPRIM uint##bits##_t kprim_ld##bits(uint64_t at, enum kprim_order order)                               \
    {                                                                                                      \
        if (!--kprim_native_here->loads)                                                                   \
            kprim_decline();                                                                               \
        return __atomic_load_n((uint##bits##_t *)kprim_native_at(at, bits / 8, NATIVE_READ),               \
                               kprim_c11(order));                                                          \
    }                                                                                                      \
    KPRIM void kprim_st##bits(uint64_t at, uint##bits##_t v, enum kprim_order order)                       \
    {                                                                                                      \
        __atomic_store_n((uint##bits##_t *)kprim_native_at(at, bits / 8, NATIVE_WRITE), v,                 \
                         kprim_c11(order));                                                                \
    }                                                                                                      \
    KPRIM uint##bits##_t kprim_cas##bits(uint64_t at, uint##bits##_t from, uint##bits##_t to)              \
    {                                                                                                      \
        __atomic_compare_exchange_n(                                                                       \
            (uint##bits##_t *)kprim_native_at(at, bits / 8, NATIVE_READ | NATIVE_WRITE), &from, to, false, \
            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);                                                           \
        return from;                                                                                       \
    }
KPRIM_NATIVE_ATOMIC(32)
KPRIM_NATIVE_ATOMIC(64)

#define KPRIM_NATIVE_RMW(name, bits)                                                               \
    KPRIM uint##bits##_t kprim_##name##bits(uint64_t at, uint##bits##_t v, enum kprim_order order) \
    {                                                                                              \
        return __atomic_fetch_##name(                                                              \
            (uint##bits##_t *)kprim_native_at(at, bits / 8, NATIVE_READ | NATIVE_WRITE), v,        \
            kprim_c11(order));                                                                     \
    }
KPRIM_NATIVE_RMW(add, 32)
KPRIM_NATIVE_RMW(add, 64)
KPRIM_NATIVE_RMW(or, 32)
KPRIM_NATIVE_RMW(or, 64)
KPRIM_NATIVE_RMW(and, 32)
KPRIM_NATIVE_RMW(and, 64)

KPRIM uint64_t kprim_mark64(uint64_t at, uint64_t from, uint64_t to)
{
    __atomic_compare_exchange_n((uint64_t *)kprim_native_at(at, 8, NATIVE_READ | NATIVE_WRITE), &from, to,
                                false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return from;
}

KPRIM uint64_t kprim_ld64_system(uint64_t at)
{
    return kprim_ld64(at, KPRIM_ACQUIRE);
}

KPRIM void kprim_st64_system(uint64_t at, uint64_t v)
{
    kprim_st64(at, v, KPRIM_RELEASE);
}

KPRIM bool kprim_is_global(uint64_t address)
{
    const struct native_call *c = kprim_native_here->call;
    for (uint32_t i = 0; i < c->nconstants; i++)
        if (address - c->constants[i].at < c->constants[i].size)
            return false;
    return address - kprim_native_space.window >= kprim_native_space.window_size;
}

KPRIM uint32_t kprim_dynamic_shared(void)
{
    kprim_decline();
}

KPRIM void kprim_trap(void)
{
    kprim_decline();
}

KPRIM void kprim_pause(void)
{
    kprim_decline();
}

// --- the warp ----------------------------------------------------------------------------------------------

KPRIM uint32_t kprim_smid(void)
{
    return kprim_native_here->call->smid;
}

// --- the grid ----------------------------------------------------------------------------------------------

KPRIM void kprim_who(struct kprim_thread *t)
{
    const struct native_call *c = kprim_native_here->call;
    t->grid = c->grid;
    for (unsigned i = 0; i < 3; i++) {
        t->block[i] = c->block[i];
        t->thread[i] = c->thread[i][kprim_native_here->lane];
    }
}

KPRIM uint32_t kprim_block(const struct kprim_thread *t)
{
    const uint32_t *blocks = kprim_native_here->call->blocks;
    return (t->block[2] * blocks[1] + t->block[1]) * blocks[0] + t->block[0];
}

KPRIM uint32_t kprim_number(void)
{
    const uint32_t *n = kprim_native_here->call->threads;
    struct kprim_thread t;
    kprim_who(&t);
    uint32_t thread = (t.thread[2] * n[1] + t.thread[1]) * n[0] + t.thread[0];
    return kprim_block(&t) * (n[0] * n[1] * n[2]) + thread;
}

#endif
