// SPDX-License-Identifier: MIT
// Loads, stores and other accesses to memory. Internal to src/exec.
#ifndef MOAT_EXEC_ACCESS_H
#define MOAT_EXEC_ACCESS_H

#include <emmintrin.h>
#include <string.h>

#include "exec/sched.h"
#include "exec/space.h"

enum access_space { ACCESS_GENERIC, ACCESS_GLOBAL, ACCESS_SHARED, ACCESS_LOCAL, ACCESS_PARAM, ACCESS_SPACES };

// insn.flags of an access. Slot a is the address; values are in d, b, c, e.
enum {
    ACCESS_LOG = 7,        // log2 of the bytes of one element, 0 to 4
    ACCESS_SIGNED = 8,     // loads sign-extend
    ACCESS_VEC_SHIFT = 4,  // log2 of the elements: 1, 2 or 4
    ACCESS_VEC = 3 << ACCESS_VEC_SHIFT,
    ACCESS_REG_SHIFT = 6,  // registers of 16, 32, 64, 128 bits, as 0 to 3
    ACCESS_REG = 3 << ACCESS_REG_SHIFT,
    ACCESS_A32 = 1 << 8,  // the address register has 32 bits
    // No address register: imm is the address; in local memory, relative to the frame; in shared memory, an
    // offset in the block's own.
    ACCESS_NO_BASE = 1 << 9,
    ACCESS_SPACE_SHIFT = 10,
    ACCESS_SPACE = 7 << ACCESS_SPACE_SHIFT,
    ACCESS_STORES = 1 << 13,
    ACCESS_ATOMIC = 1 << 14,
    ACCESS_WIDE = 1 << 15,  // the first half of an access to twice as many bytes
    // For the counters: the space that the program spells, xor the space in which the bytes lie
    // (ACCESS_SPACE); 0 if they are the same.
    ACCESS_SPELLED_SHIFT = 16,
    ACCESS_SPELLED = 7 << ACCESS_SPELLED_SHIFT,
    ACCESS_PART = 1 << 19,  // not the first part of what is one access in the program
    ACCESS_OWN = 1 << 20,   // only the block's own shared memory may be accessed
};
enum { ACCESS_CONST = ACCESS_SPACES };  // only as a spelled space: constants lie in global memory

static inline unsigned access_log(const struct exec_insn *i)
{
    return i->flags & ACCESS_LOG;
}
static inline unsigned access_count(const struct exec_insn *i)
{
    return 1u << (i->flags >> ACCESS_VEC_SHIFT & 3);
}
static inline enum access_space access_space(const struct exec_insn *i)
{
    return (enum access_space)(i->flags >> ACCESS_SPACE_SHIFT & 7);
}
static inline unsigned access_spelled(const struct exec_insn *i)
{
    return (i->flags >> ACCESS_SPACE_SHIFT ^ i->flags >> ACCESS_SPELLED_SHIFT) & 7;
}

// Returns the function for an access with these flags, in the chosen instruction set; NULL if there is none.
exec_fn *access_fn(uint32_t flags);

// Runs before the two halves of a 32-byte access: faults unless the address is 32-byte aligned, and copies
// the address register to d, if there is one.
exec_fn access_wide;

// Returns the address of one lane's access: generic, or an offset in the instruction's space.
uint64_t access_address(const struct exec_warp *w, const struct exec_insn *i, unsigned lane);

// Access one lane's bytes, at most 16. They return false after a fault of w.
bool access_read(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address, void *to,
                 unsigned size);
bool access_write(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                  const void *from, unsigned size);

// Returns the host address of one lane's bytes, which must be contiguous: for atomic accesses. Returns NULL
// after a fault of w, and without a fault for more than 4 bytes of local memory.
char *access_host(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                  unsigned size, bool write);

// The same for an atomic of up to 16 bytes. One that is skipped changes memory of nobody's, which holds 0.
char *access_atomic(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                    unsigned size);

// Raises the fault of an access whose address is not aligned as the instruction needs it.
void access_misaligned(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                       unsigned size, bool write);

// Copy `size` bytes, 1 to 16 and a power of two. The side in memory, aligned to `size`, is accessed at once:
// on a GPU no thread sees half of what another one's vector access has written, and programs rely on it where
// a flag lies beside its value, as in CUB's look-back. x86 promises it for 16 bytes where there is AVX.
static inline __attribute__((always_inline)) void access_load_whole(void *to, const char *memory,
                                                                    unsigned size)
{
    if (size == 16) {
        __m128i all;
        __asm__ __volatile__("movdqa %1, %0" : "=x"(all) : "m"(*(const __m128i *)memory));
        _mm_storeu_si128(to, all);
    } else if (size == 8) {
        uint64_t all = __atomic_load_n((const uint64_t *)memory, __ATOMIC_RELAXED);
        memcpy(to, &all, sizeof all);
    } else if (size == 4) {
        uint32_t all = __atomic_load_n((const uint32_t *)memory, __ATOMIC_RELAXED);
        memcpy(to, &all, sizeof all);
    } else if (size == 2) {
        uint16_t all = __atomic_load_n((const uint16_t *)memory, __ATOMIC_RELAXED);
        memcpy(to, &all, sizeof all);
    } else {
        memcpy(to, memory, size);
    }
}
static inline __attribute__((always_inline)) void access_store_whole(char *memory, const void *from,
                                                                     unsigned size)
{
    if (size == 16) {
        __m128i all = _mm_loadu_si128(from);
        __asm__ __volatile__("movdqa %1, %0" : "=m"(*(__m128i *)memory) : "x"(all));
    } else if (size == 8) {
        uint64_t all;
        memcpy(&all, from, sizeof all);
        __atomic_store_n((uint64_t *)memory, all, __ATOMIC_RELAXED);
    } else if (size == 4) {
        uint32_t all;
        memcpy(&all, from, sizeof all);
        __atomic_store_n((uint32_t *)memory, all, __ATOMIC_RELAXED);
    } else if (size == 2) {
        uint16_t all;
        memcpy(&all, from, sizeof all);
        __atomic_store_n((uint16_t *)memory, all, __ATOMIC_RELAXED);
    } else {
        memcpy(memory, from, size);
    }
}

// Access bytes of local memory. The caller has checked them.
void access_local_read(const struct exec_warp *w, unsigned lane, uint32_t at, void *to, unsigned size);
void access_local_write(struct exec_warp *w, unsigned lane, uint32_t at, const void *from, unsigned size);

// Copies words of local memory between frames, for the lanes of mask.
void access_local_copy(struct exec_warp *w, uint32_t to, uint32_t from, uint32_t size, uint32_t mask);

// Reads a zero-terminated string at address, at most size - 1 bytes of it, and terminates it. For printf and
// assert. Returns false after a fault.
bool access_string(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address, char *to,
                   unsigned size);

#endif
