// SPDX-License-Identifier: MIT
#include "guard/dl_hook.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "guard/jit_hook.h"

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
    // A toolkit's stub library is for linking only, never to be run.
    return SONAME;
}

// What the assembly stubs below need: the function to jump to, and the name to pass.
struct dl_hook_target {
    const char *name;
    void *function;
};

__attribute__((used)) static struct dl_hook_target dl_hook_open(const char *name)
{
    static void *real;  // threads that race store the same address
    void *function = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!function) {
        function = dlsym(RTLD_NEXT, "dlopen");
        __atomic_store_n(&real, function, __ATOMIC_RELAXED);
    }
    return (struct dl_hook_target){dl_hook_name(name), function};
}

// Whether something was loaded into another namespace. Relaxed: only the end of the process reads it.
static _Atomic bool namespaces;

// The driver is the one of the base namespace: the stub selects that namespace if the name was replaced.
__attribute__((used)) static struct dl_hook_target dl_hook_open_in(const char *name, Lmid_t in)
{
    static void *real;
    void *function = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!function) {
        function = dlsym(RTLD_NEXT, "dlmopen");
        __atomic_store_n(&real, function, __ATOMIC_RELAXED);
    }
    if (in != LM_ID_BASE)
        atomic_store_explicit(&namespaces, true, memory_order_relaxed);
    return (struct dl_hook_target){dl_hook_name(name), function};
}

// The version that dlsym had when glibc came to the processor: every glibc has it.
#if defined(__x86_64__)
#define DLSYM_VERSION "GLIBC_2.2.5"
#else
#define DLSYM_VERSION "GLIBC_2.17"
#endif

// A sanitizer's start calls dlsym before its own functions work.
#define EARLY __attribute__((no_sanitize("address", "thread", "undefined")))

typedef void *symbol_fn(void *handle, const char *symbol);

EARLY static symbol_fn *real_dlsym(void)
{
    static symbol_fn *real;
    symbol_fn *function = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (!function) {
        function = (symbol_fn *)dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
        __atomic_store_n(&real, function, __ATOMIC_RELAXED);
    }
    return function;
}

void *dl_hook_real_symbol(void *handle, const char *symbol)
{
    return real_dlsym()(handle, symbol);
}

// What the stub returns, or NULL: then it jumps to the function.
struct dl_hook_symbol {
    void *found;
    symbol_fn *function;
};

EARLY __attribute__((used)) static struct dl_hook_symbol dl_hook_symbol(void *handle, const char *symbol)
{
    return (struct dl_hook_symbol){jit_hook_symbol(handle, symbol), real_dlsym()};
}

#if __GLIBC_PREREQ(2, 35)
static bool is_driver(const struct link_map *map)
{
    const char *strings = NULL;
    size_t name = 0;
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
        else if (d->d_tag == DT_SONAME)
            name = d->d_un.d_val;
    return strings && name && strcmp(strings + name, SONAME) == 0;
}

unsigned dl_hook_other_drivers(void)
{
    unsigned n = 0;
    if (!atomic_load_explicit(&namespaces, memory_order_relaxed) || _r_debug.r_version < 2)
        return 0;
    // From version 2 on _r_debug is the beginning of the extended struct.
    const struct r_debug_extended *r = (const struct r_debug_extended *)&_r_debug;
    while ((r = r->r_next))
        for (const struct link_map *map = r->base.r_map; map; map = map->l_next)
            n += is_driver(map);
    return n;
}
#else
unsigned dl_hook_other_drivers(void)
{
    return 0;
}
#endif

// A jump, not a call, because the C library identifies the caller by the return address.
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
        ".size dlopen, . - dlopen\n"
        ".globl dlmopen\n"
        ".type dlmopen, @function\n"
        ".p2align 4\n"
        "dlmopen:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rdi\n"
        ".cfi_def_cfa_offset 16\n"
        "push %rsi\n"
        ".cfi_def_cfa_offset 24\n"
        "push %rdx\n"
        ".cfi_def_cfa_offset 32\n"
        "xchg %rsi, %rdi\n"
        "call dl_hook_open_in\n"
        "mov %rdx, %r11\n"
        "pop %rdx\n"
        ".cfi_def_cfa_offset 24\n"
        "pop %rcx\n"
        ".cfi_def_cfa_offset 16\n"
        "pop %rdi\n"
        ".cfi_def_cfa_offset 8\n"
        "mov %rax, %rsi\n"
        "cmp %rcx, %rsi\n"
        "je 1f\n"
        "xor %edi, %edi\n"
        "1: jmp *%r11\n"
        ".cfi_endproc\n"
        ".size dlmopen, . - dlmopen\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        ".p2align 4\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rdi\n"
        ".cfi_def_cfa_offset 16\n"
        "push %rsi\n"
        ".cfi_def_cfa_offset 24\n"
        "sub $8, %rsp\n"
        ".cfi_def_cfa_offset 32\n"
        "call dl_hook_symbol\n"
        "add $8, %rsp\n"
        ".cfi_def_cfa_offset 24\n"
        "pop %rsi\n"
        ".cfi_def_cfa_offset 16\n"
        "pop %rdi\n"
        ".cfi_def_cfa_offset 8\n"
        "test %rax, %rax\n"
        "jnz 1f\n"
        "jmp *%rdx\n"
        "1: ret\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
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
        ".size dlopen, . - dlopen\n"
        ".globl dlmopen\n"
        ".type dlmopen, %function\n"
        ".p2align 4\n"
        "dlmopen:\n"
        ".cfi_startproc\n"
        "hint #34\n"
        "stp x30, x0, [sp, #-32]!\n"
        ".cfi_def_cfa_offset 32\n"
        ".cfi_offset x30, -32\n"
        "stp x1, x2, [sp, #16]\n"
        "mov x2, x0\n"
        "mov x0, x1\n"
        "mov x1, x2\n"
        "bl dl_hook_open_in\n"
        "mov x17, x1\n"
        "mov x1, x0\n"
        "ldp x3, x2, [sp, #16]\n"
        "ldp x30, x0, [sp], #32\n"
        ".cfi_def_cfa_offset 0\n"
        ".cfi_restore x30\n"
        "cmp x1, x3\n"
        "csel x0, x0, xzr, eq\n"
        "br x17\n"
        ".cfi_endproc\n"
        ".size dlmopen, . - dlmopen\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        ".p2align 4\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "hint #34\n"
        "stp x30, x0, [sp, #-32]!\n"
        ".cfi_def_cfa_offset 32\n"
        ".cfi_offset x30, -32\n"
        "str x1, [sp, #16]\n"
        "bl dl_hook_symbol\n"
        "mov x17, x1\n"
        "mov x2, x0\n"
        "ldr x1, [sp, #16]\n"
        "ldp x30, x0, [sp], #32\n"
        ".cfi_def_cfa_offset 0\n"
        ".cfi_restore x30\n"
        "cbnz x2, 1f\n"
        "br x17\n"
        "1: mov x0, x2\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#endif
