// SPDX-License-Identifier: MIT
// kprim.h on a GPU: PTX 6.3, sm_70.
#ifndef MOAT_KPRIM_KPRIM_DEVICE_H
#define MOAT_KPRIM_KPRIM_DEVICE_H

#define KPRIM static inline __attribute__((always_inline))
// For rare or long functions, which are not inlined.
#define KPRIM_FAR static __attribute__((noinline, unused))
// Before a loop: the driver compiles code with each module, and takes longer for a loop that it unrolls.
#define KPRIM_ROLLED _Pragma("clang loop unroll(disable)")
// a % b, where b comes from memory that a kernel may have overwritten.
#define KPRIM_REST(a, b) ((a) % (b))
#define KPRIM_GLOBAL __attribute__((address_space(1)))
#define KPRIM_ASM(...) __asm__ volatile(__VA_ARGS__ : "memory")

KPRIM uint64_t kprim_get64(uint64_t at)
{
    return *(KPRIM_GLOBAL const uint64_t *)at;
}

KPRIM uint32_t kprim_get32(uint64_t at)
{
    return *(KPRIM_GLOBAL const uint32_t *)at;
}

KPRIM uint8_t kprim_get8(uint64_t at)
{
    return *(KPRIM_GLOBAL const uint8_t *)at;
}

KPRIM void kprim_put64(uint64_t at, uint64_t v)
{
    *(KPRIM_GLOBAL uint64_t *)at = v;
}

KPRIM void kprim_put32(uint64_t at, uint32_t v)
{
    *(KPRIM_GLOBAL uint32_t *)at = v;
}

KPRIM void kprim_put8(uint64_t at, uint8_t v)
{
    *(KPRIM_GLOBAL uint8_t *)at = v;
}

#define KPRIM_LOAD(bits, reg)                                                                \
    KPRIM uint##bits##_t kprim_ld##bits(uint64_t at, enum kprim_order order)                 \
    {                                                                                        \
        uint##bits##_t v;                                                                    \
        if (order == KPRIM_ACQUIRE)                                                          \
            KPRIM_ASM("ld.acquire.gpu.global.u" #bits " %0, [%1];" : "=" #reg(v) : "l"(at)); \
        else                                                                                 \
            KPRIM_ASM("ld.relaxed.gpu.global.u" #bits " %0, [%1];" : "=" #reg(v) : "l"(at)); \
        return v;                                                                            \
    }                                                                                        \
    KPRIM void kprim_st##bits(uint64_t at, uint##bits##_t v, enum kprim_order order)         \
    {                                                                                        \
        if (order == KPRIM_RELEASE)                                                          \
            KPRIM_ASM("st.release.gpu.global.u" #bits " [%0], %1;" : : "l"(at), #reg(v));    \
        else                                                                                 \
            KPRIM_ASM("st.relaxed.gpu.global.u" #bits " [%0], %1;" : : "l"(at), #reg(v));    \
    }
KPRIM_LOAD(32, r)
KPRIM_LOAD(64, l)

#define KPRIM_ATOM(how, op, type, at, v, old, reg) \
    KPRIM_ASM("atom." #how ".gpu.global." op "." type " %0, [%1], %2;" : "=" #reg(old) : "l"(at), #reg(v))

// ptxas makes a reduction of it where the result is unused.
#define KPRIM_RMW(name, bits, reg, op, type)                                                       \
    KPRIM uint##bits##_t kprim_##name##bits(uint64_t at, uint##bits##_t v, enum kprim_order order) \
    {                                                                                              \
        uint##bits##_t old;                                                                        \
        if (order == KPRIM_RELAXED)                                                                \
            KPRIM_ATOM(relaxed, op, type, at, v, old, reg);                                        \
        else if (order == KPRIM_ACQUIRE)                                                           \
            KPRIM_ATOM(acquire, op, type, at, v, old, reg);                                        \
        else if (order == KPRIM_RELEASE)                                                           \
            KPRIM_ATOM(release, op, type, at, v, old, reg);                                        \
        else                                                                                       \
            KPRIM_ATOM(acq_rel, op, type, at, v, old, reg);                                        \
        return old;                                                                                \
    }
KPRIM_RMW(add, 64, l, "add", "u64")
KPRIM_RMW(add, 32, r, "add", "u32")
KPRIM_RMW(or, 64, l, "or", "b64")
KPRIM_RMW(and, 64, l, "and", "b64")
KPRIM_RMW(or, 32, r, "or", "b32")
KPRIM_RMW(and, 32, r, "and", "b32")

// Orders the loads before it and those behind it.
KPRIM void kprim_fence(void)
{
    KPRIM_ASM("fence.acq_rel.gpu;" : :);
}

KPRIM void kprim_min64(uint64_t at, uint64_t v)
{
    KPRIM_ASM("red.relaxed.gpu.global.min.u64 [%0], %1;" : : "l"(at), "l"(v));
}

KPRIM void kprim_max64(uint64_t at, uint64_t v)
{
    KPRIM_ASM("red.relaxed.gpu.global.max.u64 [%0], %1;" : : "l"(at), "l"(v));
}

// A compare-and-swap with acquire and release.
KPRIM uint64_t kprim_cas64(uint64_t at, uint64_t from, uint64_t to)
{
    uint64_t old;
    KPRIM_ASM("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(at), "l"(from), "l"(to));
    return old;
}

// A compare-and-swap with release only.
KPRIM uint64_t kprim_mark64(uint64_t at, uint64_t from, uint64_t to)
{
    uint64_t old;
    KPRIM_ASM("atom.release.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(at), "l"(from), "l"(to));
    return old;
}

KPRIM uint32_t kprim_cas32(uint64_t at, uint32_t from, uint32_t to)
{
    uint32_t old;
    KPRIM_ASM("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(at), "r"(from), "r"(to));
    return old;
}

// At system scope: with the host.
KPRIM uint64_t kprim_ld64_system(uint64_t at)
{
    uint64_t v;
    KPRIM_ASM("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(at));
    return v;
}

KPRIM void kprim_st64_system(uint64_t at, uint64_t v)
{
    KPRIM_ASM("st.release.sys.global.u64 [%0], %1;" : : "l"(at), "l"(v));
}

// Returns false for an address in a window of shared, local or constant memory.
KPRIM bool kprim_is_global(uint64_t address)
{
    uint32_t v;
    __asm__("{\n\t.reg .pred p;\n\tisspacep.global p, %1;\n\tselp.u32 %0, 1, 0, p;\n\t}"
            : "=r"(v)
            : "l"(address));
    return v;
}

// Returns the bytes of shared memory that the launch has added to those of the kernel's variables.
KPRIM uint32_t kprim_dynamic_shared(void)
{
    uint32_t v;
    __asm__("mov.u32 %0, %%dynamic_smem_size;" : "=r"(v));
    return v;
}

// Returns the address of the memory by which the blocks of a cooperative launch synchronise; 0: there is
// none.
KPRIM uint64_t kprim_grid_memory(void)
{
    uint32_t high, low;
    __asm__("mov.u32 %0, %%envreg1;" : "=r"(high));
    __asm__("mov.u32 %0, %%envreg2;" : "=r"(low));
    return (uint64_t)high << 32 | low;
}

// Stops the grid.
KPRIM void kprim_trap(void)
{
    KPRIM_ASM("trap;" : :);
}

// --- the warp ----------------------------------------------------------------------------------------------

#define KPRIM_SPECIAL(name, what)                             \
    KPRIM uint32_t kprim_##name(void)                         \
    {                                                         \
        uint32_t v;                                           \
        __asm__ volatile("mov.u32 %0, %" what ";" : "=r"(v)); \
        return v;                                             \
    }
KPRIM_SPECIAL(lane, "%laneid")
KPRIM_SPECIAL(below, "%lanemask_lt")
KPRIM_SPECIAL(smid, "%smid")

// Returns the lanes that are converged here now.
KPRIM uint32_t kprim_active(void)
{
    uint32_t v;
    KPRIM_ASM("activemask.b32 %0;" : "=r"(v) :);
    return v;
}

// Returns the lanes of mask with the same v. All lanes of mask must come here.
KPRIM uint32_t kprim_same(uint32_t mask, uint32_t v)
{
    uint32_t same;
    KPRIM_ASM("match.any.sync.b32 %0, %1, %2;" : "=r"(same) : "r"(v), "r"(mask));
    return same;
}

KPRIM uint32_t kprim_share32(uint32_t mask, uint32_t v, uint32_t from)
{
    uint32_t r;
    KPRIM_ASM("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=r"(r) : "r"(v), "r"(from), "r"(mask));
    return r;
}

KPRIM uint64_t kprim_share64(uint32_t mask, uint64_t v, uint32_t from)
{
    return (uint64_t)kprim_share32(mask, (uint32_t)(v >> 32), from) << 32 |
           kprim_share32(mask, (uint32_t)v, from);
}

KPRIM uint32_t kprim_ballot(uint32_t mask, bool v)
{
    uint32_t r;
    KPRIM_ASM("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %1, 0;\n\tvote.sync.ballot.b32 %0, p, %2;\n\t}"
              : "=r"(r)
              : "r"((uint32_t)v), "r"(mask));
    return r;
}

KPRIM void kprim_sync(uint32_t mask)
{
    KPRIM_ASM("bar.warp.sync %0;" : : "r"(mask));
}

// Lets other threads run first.
KPRIM void kprim_pause(void)
{
    KPRIM_ASM("nanosleep.u32 200;" : :);
}

// --- the grid ----------------------------------------------------------------------------------------------

#define KPRIM_READ(v, what) __asm__ volatile("mov.u32 %0, %" what ";" : "=r"(v))

KPRIM void kprim_who(struct kprim_thread *t)
{
    __asm__ volatile("mov.u64 %0, %%gridid;" : "=l"(t->grid));
    KPRIM_READ(t->block[0], "%ctaid.x");
    KPRIM_READ(t->block[1], "%ctaid.y");
    KPRIM_READ(t->block[2], "%ctaid.z");
    KPRIM_READ(t->thread[0], "%tid.x");
    KPRIM_READ(t->thread[1], "%tid.y");
    KPRIM_READ(t->thread[2], "%tid.z");
}

// Returns the number of the thread's block in its grid, modulo 2^32.
KPRIM uint32_t kprim_block(const struct kprim_thread *t)
{
    uint32_t gx, gy;
    KPRIM_READ(gx, "%nctaid.x");
    KPRIM_READ(gy, "%nctaid.y");
    return (t->block[2] * gy + t->block[1]) * gx + t->block[0];
}

// Returns the thread's number in its grid, modulo 2^32.
KPRIM uint32_t kprim_number(void)
{
    struct kprim_thread t;
    uint32_t nx, ny, nz;
    kprim_who(&t);
    KPRIM_READ(nx, "%ntid.x");
    KPRIM_READ(ny, "%ntid.y");
    KPRIM_READ(nz, "%ntid.z");
    uint32_t thread = (t.thread[2] * ny + t.thread[1]) * nx + t.thread[0];
    return kprim_block(&t) * (nx * ny * nz) + thread;
}

#endif
