// SPDX-License-Identifier: MIT
#include "fence/fence_launch.h"

#include <errno.h>
#include <string.h>

#include "context/kernels.h"
#include "core/guard.h"
#include "fence/fence_host.h"
#include "fence/fence_memory.h"
#include "launch/launch_call.h"
#include "rewrite/modules.h"
#include "track/guard_report.h"

// What is known of a kernel, in its data of kernels.h.
struct fence_kernel {
    bool fenced;
};

static unsigned data_number;
static const struct fence_kernel fenced = {.fenced = true};

int fence_launch_start(void)
{
    int number = kernels_take_number();
    data_number = number < 0 ? 0 : (unsigned)number;
    return number < 0 ? -ENOMEM : 0;
}

// --- kernels -----------------------------------------------------------------------------------------------

static const struct fence_kernel *kernel_of(const void *handle)
{
    struct kernel *k = handle ? kernels_find(handle) : NULL;
    // Acquire: pairs with the release in keep.
    return k ? atomic_load_explicit(&k->data[data_number], memory_order_acquire) : NULL;
}

static void keep(const void *handle)
{
    struct kernel *k = kernels_get(handle);
    // Release: pairs with the acquire in kernel_of.
    if (k)
        atomic_store_explicit(&k->data[data_number], (void *)&fenced, memory_order_release);
}

static bool was_fenced(const struct pass_result *part, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 0; pass_symbol_of(part, "fence") && i < part->nfuncs; i++)
        if (part->funcs[i].name.len == length && !memcmp(part->funcs[i].name.ptr, name, length))
            return part->funcs[i].why == PASS_REWRITTEN;
    return false;
}

void fence_launch_found(const void *handle, const void *owner, const char *name)
{
    struct modules_row *row = owner && name && !kernel_of(handle) ? modules_hold(owner) : NULL;
    bool found = false;
    for (unsigned i = 0; row && i < row->nparts; i++)
        found |= was_fenced(row->parts[i], name);
    modules_release(row);
    if (found)
        keep(handle);
}

void fence_launch_function_of(CUfunction function, CUkernel kernel)
{
    if (kernel_of(kernel))
        keep(function);
}

// --- launches ----------------------------------------------------------------------------------------------

// A note names each kernel once, as long as there is room.
static void note_once(const char *name, const char *what)
{
    static _Atomic(const char *) named[16];
    for (unsigned i = 0; name && i < sizeof named / sizeof *named; i++) {
        const char *none = NULL;
        // Relaxed: a name is the same text for all.
        if (atomic_compare_exchange_strong_explicit(&named[i], &none, name, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            guard_report_note("fence: kernel %s %s", name, what);
            return;
        }
        if (none == name)
            return;
    }
}

static void launch_bare(const struct launch_call *l)
{
    const char *name = kernels_name(l->function);
    if (guard.options.uncovered == OPTION_UNCOVERED_ALLOW) {
        guard_count(GUARD_FENCE_UNCOVERED);
        note_once(name, "runs without a fence");
        return;
    }
    guard_count(GUARD_FENCE_REFUSED);
    note_once(name, "is refused: it has no PTX, or could not be fenced (--uncovered=allow lets it run)");
    launch_call_refuse(l, CUDA_ERROR_NOT_PERMITTED);
}

static void launch_kernel(const struct launch_call *l)
{
    if (!kernel_of(l->function)) {
        launch_bare(l);
        return;
    }
    guard_count(GUARD_FENCE_LAUNCHES);
}

void fence_launch(const struct launch_call *l)
{
    // The kernels of a graph were seen when their nodes were made.
    bool ready = fence_host_launch();
    if (l->function)
        launch_kernel(l);
    if (!ready && l->change && guard.options.uncovered == OPTION_UNCOVERED_REFUSE) {
        guard_count(GUARD_FENCE_REFUSED);
        launch_call_refuse(l, CUDA_ERROR_NOT_PERMITTED);
    }
    if (!l->node)
        fence_memory_gate();
}
