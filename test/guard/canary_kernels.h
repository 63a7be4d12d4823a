// SPDX-License-Identifier: MIT
// Kernels for programs that test --mode=canary, as PTX, with a function for each; and a word of host memory
// in which a kernel signals that it has written, so that the host knows when.
//
// Bytes are flipped, not set: a canary may have any value, so a fixed one could equal the byte that was
// there.
#ifndef CANARY_KERNELS_H
#define CANARY_KERNELS_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

static const char kernels_text[] =
    ".version 6.3\n"
    ".target sm_70\n"
    ".address_size 64\n"
    // Flips `count` bytes from p on, then sets *flag.
    ".visible .entry flip(.param .u64 p, .param .u64 count, .param .u64 flag)\n"
    "{\n"
    "    .reg .u64 %p, %n, %flag;\n"
    "    .reg .u32 %v;\n"
    "    .reg .pred %q;\n"
    "    ld.param.u64 %p, [p];\n"
    "    ld.param.u64 %n, [count];\n"
    "    ld.param.u64 %flag, [flag];\n"
    "loop:\n"
    "    ld.u8 %v, [%p];\n"
    "    xor.b32 %v, %v, 255;\n"
    "    st.u8 [%p], %v;\n"
    "    add.u64 %p, %p, 1;\n"
    "    sub.u64 %n, %n, 1;\n"
    "    setp.ne.u64 %q, %n, 0;\n"
    "    @%q bra loop;\n"
    "    membar.sys;\n"
    "    st.volatile.u32 [%flag], 1;\n"
    "    ret;\n"
    "}\n"
    // Flips the byte at p, sets *flag, waits until *go is not 0, and flips it back.
    ".visible .entry restore(.param .u64 p, .param .u64 go, .param .u64 flag)\n"
    "{\n"
    "    .reg .u64 %p, %go, %flag;\n"
    "    .reg .u32 %v, %w;\n"
    "    .reg .pred %q;\n"
    "    ld.param.u64 %p, [p];\n"
    "    ld.param.u64 %go, [go];\n"
    "    ld.param.u64 %flag, [flag];\n"
    "    ld.volatile.u8 %v, [%p];\n"
    "    xor.b32 %w, %v, 255;\n"
    "    st.volatile.u8 [%p], %w;\n"
    "    membar.sys;\n"
    "    st.volatile.u32 [%flag], 1;\n"
    "loop:\n"
    "    nanosleep.u32 1000;\n"
    "    ld.volatile.u32 %w, [%go];\n"
    "    setp.eq.u32 %q, %w, 0;\n"
    "    @%q bra loop;\n"
    "    st.volatile.u8 [%p], %v;\n"
    "    ret;\n"
    "}\n"
    // Waits until *go is not 0.
    ".visible .entry hold(.param .u64 go)\n"
    "{\n"
    "    .reg .u64 %go;\n"
    "    .reg .u32 %v;\n"
    "    .reg .pred %q;\n"
    "    ld.param.u64 %go, [go];\n"
    "loop:\n"
    "    nanosleep.u32 1000;\n"
    "    ld.volatile.u32 %v, [%go];\n"
    "    setp.eq.u32 %q, %v, 0;\n"
    "    @%q bra loop;\n"
    "    ret;\n"
    "}\n"
    // Sets bytes p[0] to p[count - 1]; as many threads as there are.
    ".visible .entry fill(.param .u64 p, .param .u64 count)\n"
    "{\n"
    "    .reg .u64 %p, %n, %i, %s;\n"
    "    .reg .u32 %a, %b, %c;\n"
    "    .reg .pred %q;\n"
    "    ld.param.u64 %p, [p];\n"
    "    ld.param.u64 %n, [count];\n"
    "    mov.u32 %a, %ctaid.x;\n"
    "    mov.u32 %b, %ntid.x;\n"
    "    mov.u32 %c, %tid.x;\n"
    "    mad.lo.u32 %a, %a, %b, %c;\n"
    "    cvt.u64.u32 %i, %a;\n"
    "    mov.u32 %c, %nctaid.x;\n"
    "    mul.lo.u32 %b, %b, %c;\n"
    "    cvt.u64.u32 %s, %b;\n"
    "loop:\n"
    "    setp.ge.u64 %q, %i, %n;\n"
    "    @%q ret;\n"
    "    cvt.u32.u64 %c, %i;\n"
    "    add.u64 %i, %i, %p;\n"
    "    st.u8 [%i], %c;\n"
    "    sub.u64 %i, %i, %p;\n"
    "    add.u64 %i, %i, %s;\n"
    "    bra loop;\n"
    "}\n";

// The kernels of one context.
struct kernels {
    CUmodule module;
    CUfunction flip, restore, hold, fill;
};

typedef _Atomic uint32_t kernels_word;

static inline void kernels_load(struct kernels *k)
{
    NEED(d.cuModuleLoadData(&k->module, kernels_text));
    NEED(d.cuModuleGetFunction(&k->flip, k->module, "flip"));
    NEED(d.cuModuleGetFunction(&k->restore, k->module, "restore"));
    NEED(d.cuModuleGetFunction(&k->hold, k->module, "hold"));
    NEED(d.cuModuleGetFunction(&k->fill, k->module, "fill"));
}

// A word that host and kernels access at the same address.
static inline kernels_word *kernels_new_word(void)
{
    void *word;
    NEED(d.cuMemHostAlloc(&word, 64, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    memset(word, 0, 64);
    return word;
}

static inline void kernels_flip(const struct kernels *k, CUdeviceptr p, uint64_t count, kernels_word *flag,
                                CUstream stream)
{
    void *arguments[] = {&p, &count, &flag};
    NEED(d.cuLaunchKernel(k->flip, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static inline void kernels_restore(const struct kernels *k, CUdeviceptr p, kernels_word *go,
                                   kernels_word *flag, CUstream stream)
{
    void *arguments[] = {&p, &go, &flag};
    NEED(d.cuLaunchKernel(k->restore, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static inline void kernels_hold(const struct kernels *k, kernels_word *go, CUstream stream)
{
    void *arguments[] = {&go};
    NEED(d.cuLaunchKernel(k->hold, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static inline void kernels_fill(const struct kernels *k, CUdeviceptr p, uint64_t count, CUstream stream)
{
    void *arguments[] = {&p, &count};
    NEED(d.cuLaunchKernel(k->fill, 2, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

// Seconds since 1970, to compare with the time stamps that a script adds to moat's output.
static inline double kernels_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Waits until a kernel has set the flag, returns when that was, and clears the flag.
static inline double kernels_wait(kernels_word *flag)
{
    double start = kernels_now();
    // Acquire: what the kernel wrote before it set the flag (membar.sys) is visible.
    while (!atomic_load_explicit(flag, memory_order_acquire)) {
        if (kernels_now() > start + 60) {
            printf("a kernel does not say that it has written\n");
            exit(2);
        }
        usleep(10);
    }
    double then = kernels_now();
    // Relaxed: the next kernel is launched after this, and a launch orders.
    atomic_store_explicit(flag, 0, memory_order_relaxed);
    return then;
}

#endif
