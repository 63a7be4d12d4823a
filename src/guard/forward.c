// SPDX-License-Identifier: MIT
#include "guard/forward.h"

#include "core/guard.h"
#include "guard/guard_start.h"

CUresult forward_missing(void)
{
    return guard.real.handle ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NO_DEVICE;
}

// Called by the stub below, which has saved the caller's arguments.
__attribute__((used)) static void forward_start(void)
{
    guard_start();
}

// The address of the slot is passed in a register that the ABI reserves for code between caller and callee,
// so that the stub knows where to jump when the guard has filled the table.
#if defined(__x86_64__)
#define ENTRY(symbol)                          \
    ".globl " #symbol "\n"                     \
    ".type " #symbol ", @function\n"           \
    ".p2align 4\n" #symbol ":\n"               \
    "endbr64\n"                                \
    "lea forward_to_" #symbol "(%rip), %r11\n" \
    "jmp *(%r11)\n"                            \
    ".size " #symbol ", . - " #symbol "\n"

__asm__(".text\n"
        "forward_first:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "sub $192, %rsp\n"
        "mov %rdi, (%rsp)\n"
        "mov %rsi, 8(%rsp)\n"
        "mov %rdx, 16(%rsp)\n"
        "mov %rcx, 24(%rsp)\n"
        "mov %r8, 32(%rsp)\n"
        "mov %r9, 40(%rsp)\n"
        "mov %r11, 48(%rsp)\n"
        "movups %xmm0, 64(%rsp)\n"
        "movups %xmm1, 80(%rsp)\n"
        "movups %xmm2, 96(%rsp)\n"
        "movups %xmm3, 112(%rsp)\n"
        "movups %xmm4, 128(%rsp)\n"
        "movups %xmm5, 144(%rsp)\n"
        "movups %xmm6, 160(%rsp)\n"
        "movups %xmm7, 176(%rsp)\n"
        "call forward_start\n"
        "mov (%rsp), %rdi\n"
        "mov 8(%rsp), %rsi\n"
        "mov 16(%rsp), %rdx\n"
        "mov 24(%rsp), %rcx\n"
        "mov 32(%rsp), %r8\n"
        "mov 40(%rsp), %r9\n"
        "mov 48(%rsp), %r11\n"
        "movups 64(%rsp), %xmm0\n"
        "movups 80(%rsp), %xmm1\n"
        "movups 96(%rsp), %xmm2\n"
        "movups 112(%rsp), %xmm3\n"
        "movups 128(%rsp), %xmm4\n"
        "movups 144(%rsp), %xmm5\n"
        "movups 160(%rsp), %xmm6\n"
        "movups 176(%rsp), %xmm7\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "jmp *(%r11)\n"
        ".cfi_endproc\n");
#elif defined(__aarch64__)
#define ENTRY(symbol)                              \
    ".globl " #symbol "\n"                         \
    ".type " #symbol ", %function\n"               \
    ".p2align 4\n" #symbol ":\n"                   \
    "hint #34\n"                                   \
    "adrp x16, forward_to_" #symbol "\n"           \
    "add x16, x16, :lo12:forward_to_" #symbol "\n" \
    "ldar x17, [x16]\n"                            \
    "br x17\n"                                     \
    ".size " #symbol ", . - " #symbol "\n"

__asm__(".text\n"
        "forward_first:\n"
        ".cfi_startproc\n"
        "hint #34\n"
        "stp x29, x30, [sp, #-224]!\n"
        ".cfi_def_cfa_offset 224\n"
        ".cfi_offset x29, -224\n"
        ".cfi_offset x30, -216\n"
        "stp x0, x1, [sp, #16]\n"
        "stp x2, x3, [sp, #32]\n"
        "stp x4, x5, [sp, #48]\n"
        "stp x6, x7, [sp, #64]\n"
        "stp x8, x16, [sp, #80]\n"
        "stp q0, q1, [sp, #96]\n"
        "stp q2, q3, [sp, #128]\n"
        "stp q4, q5, [sp, #160]\n"
        "stp q6, q7, [sp, #192]\n"
        "bl forward_start\n"
        "ldp x0, x1, [sp, #16]\n"
        "ldp x2, x3, [sp, #32]\n"
        "ldp x4, x5, [sp, #48]\n"
        "ldp x6, x7, [sp, #64]\n"
        "ldp x8, x16, [sp, #80]\n"
        "ldp q0, q1, [sp, #96]\n"
        "ldp q2, q3, [sp, #128]\n"
        "ldp q4, q5, [sp, #160]\n"
        "ldp q6, q7, [sp, #192]\n"
        "ldp x29, x30, [sp], #224\n"
        ".cfi_def_cfa_offset 0\n"
        "ldar x17, [x16]\n"
        "br x17\n"
        ".cfi_endproc\n");
#else
#error "no forwarder for this processor"
#endif

// clang-format off
__asm__(".text\n"
#define CALL(symbol, ...) ENTRY(symbol)
#define BARE(symbol, base) ENTRY(symbol)
#include "driver/calls.def"
#undef CALL
#undef BARE
        ".pushsection .data.rel.forward, \"aw\"\n"
        ".p2align 6\n"
        ".globl forward_slots\n"
        ".hidden forward_slots\n"
        "forward_slots:\n"
#define CALL(symbol, ...) SLOT(symbol)
#define BARE(symbol, base) SLOT(symbol)
#define SLOT(symbol) "forward_to_" #symbol ": .quad forward_first\n"
#include "driver/calls.def"
        ".popsection\n");
// clang-format on
