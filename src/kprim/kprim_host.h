// SPDX-License-Identifier: MIT
// kprim.h on the host, for tests.
#ifndef MOAT_KPRIM_KPRIM_HOST_H
#define MOAT_KPRIM_KPRIM_HOST_H

#include <string.h>

#define KPRIM static inline
#define KPRIM_FAR static __attribute__((unused))
#define KPRIM_ROLLED
// a % b, where b comes from memory that a kernel may have overwritten.
#define KPRIM_REST(a, b) ((a) % (b))

#include "kprim/kprim_one_lane.h"

// Defined by the test; called before each atomic operation.
void kprim_step(void);
// The number of the test's thread, from which kprim_number, kprim_smid and kprim_who derive their results.
extern _Thread_local uint32_t kprim_self;

KPRIM int kprim_c11(enum kprim_order order)
{
    static const int orders[] = {[KPRIM_RELAXED] = __ATOMIC_RELAXED,
                                 [KPRIM_ACQUIRE] = __ATOMIC_ACQUIRE,
                                 [KPRIM_RELEASE] = __ATOMIC_RELEASE,
                                 [KPRIM_ACQ_REL] = __ATOMIC_ACQ_REL};
    return orders[order];
}

#define KPRIM_PLAIN(bits)                                     \
    KPRIM uint##bits##_t kprim_get##bits(uint64_t at)         \
    {                                                         \
        return *(const uint##bits##_t *)(uintptr_t)at;        \
    }                                                         \
    KPRIM void kprim_put##bits(uint64_t at, uint##bits##_t v) \
    {                                                         \
        *(uint##bits##_t *)(uintptr_t)at = v;                 \
    }
KPRIM_PLAIN(8)
KPRIM_PLAIN(32)
KPRIM_PLAIN(64)

#define KPRIM_LOAD(bits)                                                                                 \
    KPRIM uint##bits##_t kprim_ld##bits(uint64_t at, enum kprim_order order)                             \
    {                                                                                                    \
        kprim_step();                                                                                    \
        return __atomic_load_n((uint##bits##_t *)(uintptr_t)at, kprim_c11(order));                       \
    }                                                                                                    \
    KPRIM void kprim_st##bits(uint64_t at, uint##bits##_t v, enum kprim_order order)                     \
    {                                                                                                    \
        kprim_step();                                                                                    \
        __atomic_store_n((uint##bits##_t *)(uintptr_t)at, v, kprim_c11(order));                          \
    }                                                                                                    \
    KPRIM uint##bits##_t kprim_cas##bits(uint64_t at, uint##bits##_t from, uint##bits##_t to)            \
    {                                                                                                    \
        kprim_step();                                                                                    \
        __atomic_compare_exchange_n((uint##bits##_t *)(uintptr_t)at, &from, to, false, __ATOMIC_ACQ_REL, \
                                    __ATOMIC_ACQUIRE);                                                   \
        return from;                                                                                     \
    }
KPRIM_LOAD(32)
KPRIM_LOAD(64)

#define KPRIM_RMW(name, bits)                                                                      \
    KPRIM uint##bits##_t kprim_##name##bits(uint64_t at, uint##bits##_t v, enum kprim_order order) \
    {                                                                                              \
        kprim_step();                                                                              \
        return __atomic_fetch_##name((uint##bits##_t *)(uintptr_t)at, v, kprim_c11(order));        \
    }
KPRIM_RMW(add, 32)
KPRIM_RMW(add, 64)
KPRIM_RMW(or, 32)
KPRIM_RMW(or, 64)
KPRIM_RMW(and, 32)
KPRIM_RMW(and, 64)

KPRIM uint64_t kprim_mark64(uint64_t at, uint64_t from, uint64_t to)
{
    kprim_step();
    __atomic_compare_exchange_n((uint64_t *)(uintptr_t)at, &from, to, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
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

// Defined by the test if it uses them.
bool kprim_is_global(uint64_t address);
uint32_t kprim_dynamic_shared(void);
void kprim_trap(void);

KPRIM uint32_t kprim_smid(void)
{
    return kprim_self;
}

// Defined by the test, too.
void kprim_pause(void);

KPRIM void kprim_who(struct kprim_thread *t)
{
    memset(t, 0, sizeof *t);
    t->thread[0] = kprim_self;
}

KPRIM uint32_t kprim_block(const struct kprim_thread *t)
{
    return t->thread[0];
}

KPRIM uint32_t kprim_number(void)
{
    return kprim_self;
}

#endif
