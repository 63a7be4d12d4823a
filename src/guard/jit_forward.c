// SPDX-License-Identifier: MIT
// driver_ptx.h in libmoat.so: PTX is kept for the modes that rewrite and passed on to the CPU device.
#include "guard/jit_forward.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option_variable.h"
#include "core/guard.h"
#include "driver/driver_ptx.h"
#include "guard/guard_start.h"
#include "image/ptx_registry.h"
#include "rewrite/rewrite.h"
#include "track/guard_report.h"

#pragma GCC visibility push(default)
driver_ptx_fn moat_driver_ptx;
driver_host_fn moat_driver_host;
#pragma GCC visibility pop

// Finds a function of the CPU device. Returns NULL on a GPU.
static void *of_device(const char *symbol)
{
    return guard.real.handle && guard.real_fault ? dlsym(guard.real.handle, symbol) : NULL;
}

static int pass_on(struct str code, struct str ptx)
{
    driver_ptx_fn *next;
    void *symbol = of_device(DRIVER_PTX_SYMBOL);
    memcpy(&next, &symbol, sizeof next);
    return next ? next(code.ptr, code.len, ptx.ptr, ptx.len) : 0;
}

int moat_driver_ptx(const void *code, size_t code_size, const char *ptx, size_t ptx_size)
{
    struct str c = {code, code_size}, p = {ptx, ptx_size};
    guard_start();
    if (!code || !ptx)
        return -EINVAL;
    if (!guard.options.jit_ptx)
        return 0;
    int err = rewrite_on ? ptx_registry_add(c, p) : 0;
    int err2 = pass_on(c, p);
    return err ? err : err2;
}

uint64_t moat_driver_host(uint64_t address, size_t size)
{
    driver_host_fn *next;
    guard_start();
    void *symbol = of_device(DRIVER_HOST_SYMBOL);
    memcpy(&next, &symbol, sizeof next);
    return next ? next(address, size) : 0;
}

// --- compilers in C: jit_library.h -------------------------------------------------------------------------

// A pair that was kept before the driver was open: the machine code, then the PTX.
struct pending {
    struct pending *next;
    size_t code, ptx;
    char bytes[];
};

#define PENDING_BYTES ((size_t)256 << 20)  // of all pairs together

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank: leaf; guards what follows
static bool started;
static struct pending *pending;
static size_t pending_bytes;
static unsigned missed;

static bool wanted;

static void read_wanted(void)
{
    struct option_set set;
    struct options options;
    const char *text = getenv(OPTION_VARIABLE);
    wanted = !option_read_variable(&set, &options, text, NULL, NULL);
    if (wanted) {
        wanted = options.jit_ptx && options.mode != 1 << OPTION_MODE_OFF;
        option_free(&set);
    }
}

bool jit_forward_wanted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_wanted);
    return wanted;
}

static void say_missed(const char *whose)
{
    if (guard.watching)
        guard_report_note("the PTX of what %s has made could not be had", whose);
}

// Adds a pair to those that wait. The lock must be held.
static int add_pending(struct str code, struct str ptx)
{
    size_t size = code.len + ptx.len;
    struct pending *p = size > PENDING_BYTES - pending_bytes ? NULL : mem_alloc(sizeof *p + size);
    if (!p)
        return -ENOMEM;
    *p = (struct pending){.next = pending, .code = code.len, .ptx = ptx.len};
    memcpy(p->bytes, code.ptr, code.len);
    memcpy(p->bytes + code.len, ptx.ptr, ptx.len);
    pending = p;
    pending_bytes += size;
    return 0;
}

void jit_forward_keep(struct str code, struct str ptx, const char *whose)
{
    int err = ptx.len ? ptx_registry_add(code, ptx) : -ENOENT;
    pthread_mutex_lock(&lock);
    bool now = started;
    if (!now && !err)
        err = add_pending(code, ptx);
    if (!now && err)
        missed++;
    pthread_mutex_unlock(&lock);
    if (now && !err)
        err = pass_on(code, ptx);
    if (now && err)
        say_missed(whose);
}

void jit_forward_start(void)
{
    pthread_mutex_lock(&lock);
    struct pending *p = pending;
    pending = NULL;
    started = true;
    pthread_mutex_unlock(&lock);
    while (p) {
        struct pending *next = p->next;
        missed += pass_on((struct str){p->bytes, p->code}, (struct str){p->bytes + p->code, p->ptx}) != 0;
        mem_free(p);
        p = next;
    }
    if (missed)
        say_missed("NVRTC or nvJitLink");
}
