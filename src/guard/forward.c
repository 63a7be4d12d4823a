// SPDX-License-Identifier: MIT
#include "guard/forward.h"

#include "base/cancel.h"
#include "core/guard.h"
#include "guard/guard_start.h"
#include "hook/api_error.h"
#include "launch/kernel_fault.h"

extern driver_function forward_slots[DRIVER_CALLS];
extern const driver_function forward_entries[DRIVER_CALLS];
void forward_watched(void);  // in assembly; with the call's own type

static driver_function behind[DRIVER_CALLS];

// What a slot holds where the driver has no such function, or there is no driver.
static CUresult missing(void)
{
    return guard.real.handle ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NO_DEVICE;
}

const struct hook_forwarder forward_tables = {.slots = forward_slots,
                                              .behind = behind,
                                              .entries = forward_entries,
                                              .watched = (driver_function)forward_watched,
                                              .missing = (driver_function)missing};

// Called by forward_watched before the call, with the caller's arguments saved. Returns what to call.
// Acquire: pairs with the store in hook.c.
__attribute__((used)) static driver_function forward_enter(const driver_function *slot)
{
    cancel_hold();
    return __atomic_load_n(&behind[slot - forward_slots], __ATOMIC_ACQUIRE);
}

// Called by forward_watched after the call. Returns what the program gets.
__attribute__((used)) static CUresult forward_leave(const driver_function *slot, CUresult r)
{
    if (__builtin_expect(r != CUDA_SUCCESS && api_error_wanted(), 0))
        api_error_seen((enum driver_id)(slot - forward_slots), r);
    kernel_fault_skipped();
    cancel_release();
    return r;
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
    "forward_entry_" #symbol ":\n"             \
    "endbr64\n"                                \
    "lea forward_to_" #symbol "(%rip), %r11\n" \
    "jmp *(%r11)\n"                            \
    ".size " #symbol ", . - " #symbol "\n"

__asm__(".text\n"
        ".globl forward_watched\n"
        ".hidden forward_watched\n"
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
        ".cfi_endproc\n"
        "forward_watched:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "sub $256, %rsp\n"
        "mov %rdi, 128(%rsp)\n"
        "mov %rsi, 136(%rsp)\n"
        "mov %rdx, 144(%rsp)\n"
        "mov %rcx, 152(%rsp)\n"
        "mov %r8, 160(%rsp)\n"
        "mov %r9, 168(%rsp)\n"
        "mov %r11, 176(%rsp)\n"
        "movups %xmm0, 192(%rsp)\n"
        "movups %xmm1, 208(%rsp)\n"
        "movups %xmm2, 224(%rsp)\n"
        "movups %xmm3, 240(%rsp)\n"
        "mov %r11, %rdi\n"
        "call forward_enter\n"
        "mov 128(%rsp), %rdi\n"
        "mov 136(%rsp), %rsi\n"
        "mov 144(%rsp), %rdx\n"
        "mov 152(%rsp), %rcx\n"
        "mov 160(%rsp), %r8\n"
        "mov 168(%rsp), %r9\n"
        "movups 192(%rsp), %xmm0\n"
        "movups 208(%rsp), %xmm1\n"
        "movups 224(%rsp), %xmm2\n"
        "movups 240(%rsp), %xmm3\n"
        "movups 16(%rbp), %xmm4\n"
        "movups %xmm4, (%rsp)\n"
        "movups 32(%rbp), %xmm5\n"
        "movups %xmm5, 16(%rsp)\n"
        "movups 48(%rbp), %xmm6\n"
        "movups %xmm6, 32(%rsp)\n"
        "movups 64(%rbp), %xmm7\n"
        "movups %xmm7, 48(%rsp)\n"
        "movups 80(%rbp), %xmm4\n"
        "movups %xmm4, 64(%rsp)\n"
        "movups 96(%rbp), %xmm5\n"
        "movups %xmm5, 80(%rsp)\n"
        "movups 112(%rbp), %xmm6\n"
        "movups %xmm6, 96(%rsp)\n"
        "movups 128(%rbp), %xmm7\n"
        "movups %xmm7, 112(%rsp)\n"
        "call *%rax\n"
        "mov 176(%rsp), %rdi\n"
        "mov %eax, %esi\n"
        "call forward_leave\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n");
#elif defined(__aarch64__)
#define ENTRY(symbol)                              \
    ".globl " #symbol "\n"                         \
    ".type " #symbol ", %function\n"               \
    ".p2align 4\n" #symbol ":\n"                   \
    "forward_entry_" #symbol ":\n"                 \
    "hint #34\n"                                   \
    "adrp x16, forward_to_" #symbol "\n"           \
    "add x16, x16, :lo12:forward_to_" #symbol "\n" \
    "ldar x17, [x16]\n"                            \
    "br x17\n"                                     \
    ".size " #symbol ", . - " #symbol "\n"

__asm__(".text\n"
        ".globl forward_watched\n"
        ".hidden forward_watched\n"
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
        ".cfi_endproc\n"
        "forward_watched:\n"
        ".cfi_startproc\n"
        "hint #34\n"
        "stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset x29, -16\n"
        ".cfi_offset x30, -8\n"
        "mov x29, sp\n"
        ".cfi_def_cfa_register x29\n"
        "sub sp, sp, #272\n"
        "stp x0, x1, [sp, #128]\n"
        "stp x2, x3, [sp, #144]\n"
        "stp x4, x5, [sp, #160]\n"
        "stp x6, x7, [sp, #176]\n"
        "stp x8, x16, [sp, #192]\n"
        "stp q0, q1, [sp, #208]\n"
        "stp q2, q3, [sp, #240]\n"
        "mov x0, x16\n"
        "bl forward_enter\n"
        "mov x17, x0\n"
        "ldp x0, x1, [sp, #128]\n"
        "ldp x2, x3, [sp, #144]\n"
        "ldp x4, x5, [sp, #160]\n"
        "ldp x6, x7, [sp, #176]\n"
        "ldp x8, x16, [sp, #192]\n"
        "ldp q0, q1, [sp, #208]\n"
        "ldp q2, q3, [sp, #240]\n"
        "ldp q4, q5, [x29, #16]\n"
        "stp q4, q5, [sp, #0]\n"
        "ldp q4, q5, [x29, #48]\n"
        "stp q4, q5, [sp, #32]\n"
        "ldp q4, q5, [x29, #80]\n"
        "stp q4, q5, [sp, #64]\n"
        "ldp q4, q5, [x29, #112]\n"
        "stp q4, q5, [sp, #96]\n"
        "blr x17\n"
        "mov w1, w0\n"
        "ldr x0, [sp, #200]\n"
        "bl forward_leave\n"
        "mov sp, x29\n"
        ".cfi_def_cfa_register sp\n"
        "ldp x29, x30, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        "ret\n"
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
#undef CALL
#undef BARE
        ".globl forward_entries\n"
        ".hidden forward_entries\n"
        "forward_entries:\n"
#define CALL(symbol, ...) ".quad forward_entry_" #symbol "\n"
#define BARE(symbol, base) ".quad forward_entry_" #symbol "\n"
#include "driver/calls.def"
        ".popsection\n");
// clang-format on
