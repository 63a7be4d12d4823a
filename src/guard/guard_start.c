// SPDX-License-Identifier: MIT
#include "guard/guard_start.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/option_variable.h"
#include "base/modes.def"
#include "base/modes.h"
#include "context/kernels.h"
#include "context/context.h"
#include "core/guard.h"
#include "core/lock.h"
#include "guard/dl_hook.h"
#include "guard/forward.h"
#include "guard/jit_forward.h"
#include "driver/driver_ptx.h"
#include "kcheck/kcheck_native.h"
#include "kheap/kheap_native.h"
#include "context/capture_rule.h"
#include "launch/graph_names.h"
#include "launch/kernel_fault.h"
#include "context/green.h"
#include "track/guard_report.h"
#include "hook/api_error.h"
#include "hook/hook.h"
#include "hook/hook_context.h"
#include "hook/hook_link.h"
#include "launch/launch_ring.h"
#include "track/leak.h"
#include "context/names.h"
#include "mode/mode.h"
#include "rewrite/rewrite_about.h"
#include "share/share.h"
#include "share/share_open.h"
#include "track/script_frames.h"
#include "track/stack.h"
#include "guard/torch_alloc.h"
#include "track/tensor_label.h"
#include "track/encoded_map.h"
#include "track/track.h"
#include "context/kernel_filter.h"

static void complain(void *ctx, const char *line)
{
    guard_report_note("%s", line);
}

static void read_options(void)
{
    const char *text = getenv(OPTION_VARIABLE);
    guard.options_read = !option_read_variable(&guard.option_set, &guard.options, text, complain, NULL);
}

// Returns whether the library that was opened is this one: a link to moat may stand where the driver is
// expected.
static bool is_ourselves(const struct driver *d)
{
    return d->cuInit == cuInit;
}

static bool try_driver(const char *path, char *why, size_t size)
{
    dl_hook_pause(true);
    int err = driver_open(&guard.real, path, why, size);
    dl_hook_pause(false);
    if (!err && is_ourselves(&guard.real)) {
        driver_close(&guard.real);
        err = -ENOENT;
    }
    if (!err)
        snprintf(guard.real_path, sizeof guard.real_path, "%s", path);
    return !err;
}

// Searches the folders where packages install the driver; used if the options do not name one.
static bool search_driver(char *why, size_t size)
{
    static const char *const folders[] = {
        "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
        "/usr/lib/wsl/lib",          "/usr/local/nvidia/lib64",    "/usr/lib",
        "/usr/local/cuda/compat",    "/run/opengl-driver/lib",
    };
    snprintf(why, size, "no libcuda.so.1 in the usual folders");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/libcuda.so.1", folders[i]);
        if (!access(path, R_OK) && try_driver(path, why, size))
            return true;
    }
    return false;
}

static void open_driver(void)
{
    char why[300];
    const char *path = guard.options.driver;
    if (path && try_driver(path, why, sizeof why))
        return;
    if (search_driver(why, sizeof why))
        return;
    guard_report_note("no CUDA driver: %s", why);
}

// Initialises all locks anew in the child of a fork, because a thread that the child does not have may have
// held them.
static void after_fork(void)
{
    lock_forget_held();
    track_after_fork();
    names_after_fork();
    kernels_after_fork();
    graph_names_after_fork();
    capture_rule_after_fork();
    context_after_fork();
    mode_after_fork();
    share_after_fork();
    share_open_after_fork();
    rewrite_about_after_fork();
    hook_link_after_fork();
    hook_context_after_fork();
    green_after_fork();
    script_frames_after_fork();
    guard_report_after_fork();
    tensor_label_after_fork();
    encoded_map_after_fork();
    atomic_store_explicit(&launch_ring.count, 0, memory_order_relaxed);
    atomic_store_explicit(&launch_ring.made, 0, memory_order_relaxed);
    atomic_store_explicit(&launch_ring.graphs, 0, memory_order_relaxed);
    one_or_many_forget(&launch_ring.only);
    for (int i = 0; i < GUARD_COUNTS; i++)
        atomic_store_explicit(&guard.counts[i], 0, memory_order_relaxed);
}

#define MODE(id, symbol, ...) extern const struct mode symbol##_mode;
#define WITH(id, symbol) extern const struct mode symbol##_mode;
MODES(MODE, WITH)
#undef MODE
#undef WITH

static const struct mode_row rows[] = {
#define MODE(id, symbol, ...) {&symbol##_mode, OPTION_MODE_##id},
#define WITH(id, symbol) {&symbol##_mode, OPTION_MODE_##id},
    MODES(MODE, WITH)
#undef MODE
#undef WITH
};

// A graph counts as one launch in the ring; how many kernels it runs is unknown. Refused launches are in the
// ring too.
static void summarise(void)
{
    uint64_t graphs = atomic_load_explicit(&launch_ring.graphs, memory_order_relaxed);
    uint64_t refused = atomic_load_explicit(&guard.counts[GUARD_LAUNCHES_REFUSED], memory_order_relaxed);
    uint64_t kernels = atomic_load_explicit(&launch_ring.count, memory_order_relaxed) - graphs;
    guard_add(GUARD_GRAPHS, graphs);
    guard_add(GUARD_LAUNCHES, kernels > refused ? kernels - refused : 0);
    if (kernels > refused && !mode_checks_kernels())
        guard_report_relabel(GUARD_LAUNCHES, "kernel launches, not checked inside (--mode=check)");
    mode_summarise();
}

// Offers the CPU device what modes add to kernels in C: in a mode that adds nothing no function asks for it.
static void offer_native(void)
{
    driver_native_fn *offer;
    void *symbol = dlsym(guard.real.handle, DRIVER_NATIVE_SYMBOL);
    memcpy(&offer, &symbol, sizeof offer);
    if (offer && guard.watching && offer(kheap_native, KHEAP_NATIVE, &kprim_native_space))
        offer(kcheck_native, KCHECK_NATIVE, &kprim_native_space);
}

static void start_once(void)
{
    read_options();
    guard_report_init(summarise);
    open_driver();
    if (stack_init(0))
        guard_report_note("no memory for call stacks");
    guard.watching = guard.real.handle && guard.options_read && !(guard.options.mode >> OPTION_MODE_OFF & 1);
    if (guard.real.handle) {
        void *fault = dlsym(guard.real.handle, DRIVER_FAULT_SYMBOL);
        memcpy(&guard.real_fault, &fault, sizeof fault);
        void *heap = dlsym(guard.real.handle, DRIVER_KERNEL_HEAP_SYMBOL);
        memcpy(&guard.real_kernel_heap, &heap, sizeof heap);
        offer_native();
        fault = dlsym(guard.real.handle, DRIVER_SKIPPED_SYMBOL);
        if (guard.watching && guard.options.on_error == OPTION_ON_ERROR_SKIP) {
            memcpy(&guard.real_skipped, &fault, sizeof fault);
            if (!fault)
                guard_report_note("--on-error=skip: only the CPU device can skip, so kernels stop at errors");
        }
    }
    char why[200] = "";
    if (guard.watching && !kernel_filter_start(why, sizeof why))
        guard_report_note("--kernel-name: %s: all kernels are chosen", why);
    if (guard.watching && modes_conflict(guard.options.mode, why, sizeof why)) {
        guard_report_note("%s: no mode is active", why);
        guard.options.mode = 1 << OPTION_MODE_API;
    }
    // Only the CPU device's driver describes faults.
    guard.options.mode = modes_for_device(guard.options.mode, guard.real_fault != NULL);
    guard.options.mode = modes_with_layout(guard.options.mode);
    mode_start(rows, sizeof rows / sizeof *rows);
    pthread_atfork(NULL, NULL, after_fork);
    hook_install(&guard.real, &forward_tables, api_error_wanted());
    if (guard.watching) {
        guard_report_start();
        torch_alloc_note();
    }
    jit_forward_start();
}

void guard_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cancel_hold();
    pthread_once(&once, start_once);
    cancel_release();
}

// Makes no call of the driver, which is unloaded by now.
static void end(void *unused)
{
    kernel_fault_skipped();
    leak_report(NULL);
    guard_add(GUARD_OTHER_DRIVERS, dl_hook_other_drivers());
    mode_end();
    guard_report_end();
}

int __cxa_atexit(void (*f)(void *), void *argument, void *library);

// Destructors of libraries run in an order that moat cannot choose, and some free CUDA memory. A handler that
// is registered meanwhile, for no library in particular, runs after all of them.
__attribute__((destructor)) static void at_unload(void)
{
    if (guard.watching && __cxa_atexit(end, NULL, NULL))
        end(NULL);
}
