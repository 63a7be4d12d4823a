// SPDX-License-Identifier: MIT
#include "guard/dl_hook.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define SONAME "libcuda.so.1"

static __thread bool paused __attribute__((tls_model("initial-exec")));

void dl_hook_pause(bool on)
{
    paused = on;
}

const char *dl_hook_name(const char *name)
{
    if (!name || paused)
        return name;
    const char *slash = strrchr(name, '/');
    const char *file = slash ? slash + 1 : name;
    if (strncmp(file, "libcuda.so", 10) != 0 || (file[10] && file[10] != '.'))
        return name;
    // A toolkit's stub is meant to be linked with, never to be run.
    return SONAME;
}

// What the stub below needs: where to go on, and with which name.
struct dl_hook_target {
    const char *name;
    void *function;
};

__attribute__((used)) static struct dl_hook_target dl_hook_open(const char *name)
{
    static void *real;  // a race finds the same address twice
    void *function = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!function) {
        function = dlsym(RTLD_NEXT, "dlopen");
        __atomic_store_n(&real, function, __ATOMIC_RELAXED);
    }
    return (struct dl_hook_target){dl_hook_name(name), function};
}

// A jump, not a call: the C library takes its return address for the caller's identity.
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        ".p2align 4\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rsi\n"
        ".cfi_def_cfa_offset 16\n"
        "call dl_hook_open\n"
        "pop %rsi\n"
        ".cfi_def_cfa_offset 8\n"
        "mov %rax, %rdi\n"
        "jmp *%rdx\n"
        ".cfi_endproc\n"
        ".size dlopen, . - dlopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, %function\n"
        ".p2align 4\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "hint #34\n"
        "stp x30, x1, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset x30, -16\n"
        "bl dl_hook_open\n"
        "mov x17, x1\n"
        "ldp x30, x1, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        ".cfi_restore x30\n"
        "br x17\n"
        ".cfi_endproc\n"
        ".size dlopen, . - dlopen\n");
#endif
