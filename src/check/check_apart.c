// SPDX-License-Identifier: MIT
#include "check/check_apart.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "check/check_host.h"
#include "context/context.h"
#include "context/kernels.h"
#include "core/guard.h"
#include "core/lock.h"
#include "rewrite/rewrite_later.h"
#include "track/guard_report.h"

enum { NAME = 4096, MOST_REGISTERS = 255 };
enum { UNIT = 8, WARPS = 4 };  // registers of a thread, and warps of a block, are given in these steps

// A variant that was made, or could not be. All members are protected by the lock.
struct unit {
    struct unit *next;
    const void *owner;  // the program's module or library
    const struct pass_check_kernel *checks;
    struct rewrite_limits limits;
    bool rest;
    bool ending;          // the owner is about to be unloaded
    CUcontext context;    // of a module; NULL: a library
    const void *module;   // a CUmodule or CUlibrary; NULL: it could not be made
    const void *variant;  // its CUfunction or CUkernel
};

static struct lock lock = LOCK_INIT(CHECK_APART);
static struct unit *units;

void check_apart_after_fork(void)
{
    lock_after_fork(&lock);
    units = NULL;
}

bool check_apart_has(const void *owner)
{
    struct modules_row *row = owner ? modules_hold(owner) : NULL;
    bool has = row && row->later;
    modules_release(row);
    return has;
}

// --- attributes --------------------------------------------------------------------------------------------

// The attributes of a library's kernel are those for one device.
static bool attribute_on(const void *handle, enum kernels_kind kind, CUfunction_attribute what,
                         CUdevice device, int *value)
{
    const struct driver *d = &guard.real;
    if (kind == KERNELS_FUNCTION)
        return d->cuFuncGetAttribute && !d->cuFuncGetAttribute(value, what, (CUfunction)handle);
    return d->cuKernelGetAttribute && !d->cuKernelGetAttribute(value, what, (CUkernel)handle, device);
}

static bool attribute(const void *handle, enum kernels_kind kind, CUfunction_attribute what, int *value)
{
    CUdevice device;
    return !guard.real.cuCtxGetDevice(&device) && attribute_on(handle, kind, what, device, value);
}

static void set_attribute(const void *handle, enum kernels_kind kind, CUfunction_attribute what,
                          CUdevice device, int value)
{
    if (kind == KERNELS_FUNCTION)
        guard.real.cuFuncSetAttribute((CUfunction)handle, what, value);
    else
        guard.real.cuKernelSetAttribute(what, value, (CUkernel)handle, device);
}

static void copy_for_device(const void *from, const void *to, enum kernels_kind kind, CUdevice device)
{
    static const CUfunction_attribute all[] = {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                               CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                               CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                               CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                               CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
                                               CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                               CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        int own = 0, value = 0;
        if (attribute_on(from, kind, all[i], device, &own) &&
            attribute_on(to, kind, all[i], device, &value) && own != value)
            set_attribute(to, kind, all[i], device, own);
    }
}

// What the program has set in its kernel holds for the variant, on all devices that it uses.
static void copy_attributes(const void *from, const void *to, enum kernels_kind kind)
{
    CUdevice here = -1;
    int n = 0;
    guard.real.cuCtxGetDevice(&here);
    copy_for_device(from, to, kind, here);
    if (kind != KERNELS_KERNEL || guard.real.cuDeviceGetCount(&n) || !guard.real.cuDevicePrimaryCtxGetState)
        return;
    for (CUdevice device = 0; device < n; device++) {
        unsigned flags;
        int active = 0;
        if (device != here && !guard.real.cuDevicePrimaryCtxGetState(device, &flags, &active) && active)
            copy_for_device(from, to, kind, device);
    }
}

// Returns how many registers a variant may use so that its blocks can be as large as the kernel's, as the
// program may have asked; 0: no limit is known.
static unsigned registers_of(const void *handle, enum kernels_kind kind)
{
    CUdevice device;
    int threads = 0, registers = 0;
    if (!attribute(handle, kind, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads) || threads <= 0 ||
        guard.real.cuCtxGetDevice(&device) ||
        guard.real.cuDeviceGetAttribute(&registers, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device))
        return 0;
    unsigned most = (unsigned)(registers / threads) / UNIT * UNIT;
    return most < MOST_REGISTERS ? most : 0;
}

// Returns how many registers a variant may use so that as many of its blocks run at once as of the kernel's,
// if that is declared for smaller blocks than the largest; 0: no limit is known.
static unsigned registers_beside(const void *handle, enum kernels_kind kind)
{
    const struct driver *d = &guard.real;
    CUdevice device;
    int all = 0, own = 0, most = 0, threads = 0, largest = 0;
    if (d->cuCtxGetDevice(&device) ||
        d->cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device) ||
        d->cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device) ||
        d->cuDeviceGetAttribute(&largest, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device) ||
        !attribute(handle, kind, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads) ||
        !attribute(handle, kind, CU_FUNC_ATTRIBUTE_NUM_REGS, &own) || all <= 0 || own <= 0 || threads <= 0 ||
        threads >= largest)
        return 0;
    unsigned warps = ((unsigned)threads + 31) / 32, each = (warps + WARPS - 1) / WARPS * WARPS * 32;
    unsigned blocks = (unsigned)all / (each * (((unsigned)own + UNIT - 1) / UNIT * UNIT));
    if (blocks > (unsigned)most / each)
        blocks = (unsigned)most / each;
    unsigned registers = blocks ? (unsigned)all / (each * blocks) / UNIT * UNIT : 0;
    return registers < MOST_REGISTERS ? registers : 0;
}

// Returns how many registers a variant may use so that all blocks of a cooperative launch, which the
// program's own kernel allows, can run at once; 0: that is unknown, or registers are not what keeps the
// variant from it.
static unsigned registers_together(const struct launch_call *l, const void *variant, enum kernels_kind kind)
{
    const struct driver *d = &guard.real;
    CUdevice device;
    int all = 0, processors = 0, own = 0, used = 0;
    if (d->cuCtxGetDevice(&device) ||
        d->cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device) ||
        d->cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) ||
        processors <= 0 || !attribute(l->function, kind, CU_FUNC_ATTRIBUTE_NUM_REGS, &own) ||
        !attribute(variant, kind, CU_FUNC_ATTRIBUTE_NUM_REGS, &used))
        return 0;
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint64_t warps = ((uint64_t)l->block[0] * l->block[1] * l->block[2] + 31) / 32;
    uint64_t at_once = (blocks + (unsigned)processors - 1) / (unsigned)processors;
    if (!at_once || !warps)
        return 0;
    uint64_t most = (uint64_t)all / ((warps + WARPS - 1) / WARPS * WARPS * 32 * at_once) / UNIT * UNIT;
    uint64_t least = ((unsigned)own + UNIT - 1u) / UNIT * UNIT;  // with as many the program's kernel fits
    most = most > least ? most : least;
    return most < (unsigned)used ? (unsigned)most : 0;
}

// --- making ------------------------------------------------------------------------------------------------

// Loads a compiled variant.
static CUresult load(struct unit *u, struct modules_row *of, const void *image, const char *name)
{
    const struct driver *d = &guard.real;
    CUlibrary library = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUkernel kernel = NULL;
    CUresult r = of->library ? d->cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0)
                             : d->cuModuleLoadData(&module, image);
    if (r)
        return r;
    r = of->library ? d->cuLibraryGetKernel(&kernel, library, name)
                    : d->cuModuleGetFunction(&function, module, name);
    const void *loaded = of->library ? (const void *)library : (const void *)module;
    struct modules_row *row = r ? NULL : modules_add_variants(loaded, of);
    if (row) {
        check_host_module(row);
        modules_release(row);
        u->module = loaded;
        u->variant = of->library ? (const void *)kernel : (const void *)function;
        return CUDA_SUCCESS;
    }
    if (of->library)
        d->cuLibraryUnload(library);
    else
        d->cuModuleUnload(module);
    return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static void note_failed(const char *name, const char *why)
{
    static _Atomic bool noted;
    // Relaxed: the note itself is all that is shared.
    if (!atomic_exchange_explicit(&noted, true, memory_order_relaxed))
        guard_report_note("check: no checked variant of kernel %s can be made (%s): its launches are not "
                          "checked unless they are proved",
                          name, why);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Requires the lock.
static void count_made(const struct unit *made, uint64_t start)
{
    guard_count(GUARD_CHECK_MADE);
    guard_add(GUARD_CHECK_MAKING, now() - start);
    for (const struct unit *u = units; u; u = u->next)
        if (u->owner == made->owner && u->checks == made->checks && u->rest != made->rest && u->variant) {
            guard_count(GUARD_CHECK_MADE_BESIDE);
            return;
        }
}

// Requires the lock.
static void make(struct unit *u, struct modules_row *of)
{
    uint64_t start = now();
    char name[NAME], why[200] = "its name is too long";
    struct rewrite_variant v = {.image = NULL};
    bool made = snprintf(name, sizeof name, "%s" STR_FMT, u->rest ? KCHECK_REST_PREFIX : KCHECK_PREFIX,
                         STR_ARG(u->checks->name)) < (int)sizeof name &&
                rewrite_later_make(of->later, name, &u->limits, &v, why, sizeof why);
    CUresult r = !made ? CUDA_SUCCESS
                 : rewrite_later_fits(of->parts[0]->check, of->handle, of->library)
                     ? load(u, of, v.image, name)
                     : CUDA_ERROR_NOT_FOUND;
    rewrite_variant_free(&v);
    if (u->module) {
        count_made(u, start);
        return;
    }
    if (r)
        snprintf(why, sizeof why, "%s", driver_result_name(r) ? driver_result_name(r) : "an unknown error");
    note_failed(name + strlen(u->rest ? KCHECK_REST_PREFIX : KCHECK_PREFIX), why);
}

// Requires the lock. Units of a kernel whose registers are limited alike are one. Returns NULL if out of
// memory.
static struct unit *find(struct modules_row *of, const struct pass_check_kernel *checks, bool rest,
                         const struct rewrite_limits *limits)
{
    struct unit *u = units;
    while (u && (u->owner != of->handle || u->checks != checks || u->rest != rest ||
                 u->limits.registers != limits->registers))
        u = u->next;
    if (u)
        return u;
    u = mem_zalloc(1, sizeof *u);
    if (!u)
        return NULL;
    *u = (struct unit){.next = units,
                       .owner = of->handle,
                       .checks = checks,
                       .limits = *limits,
                       .rest = rest,
                       .context = of->context};
    units = u;
    make(u, of);
    return u;
}

// Returns the variant that a kernel of the program stands for: for a function of a library's kernel, that of
// the context.
static const void *variant_for(const struct unit *u, enum kernels_kind kind)
{
    CUfunction function = NULL;
    if (!u || !u->variant || u->context || kind == KERNELS_KERNEL)
        return u ? u->variant : NULL;
    return guard.real.cuKernelGetFunction(&function, (CUkernel)u->variant) ? NULL : function;
}

// Makes the variant with so many registers, which is compiled if it is not there yet, the kernel's. l: only
// if all blocks of this launch can run at once then; NULL: in any case.
static const struct check_kernel *want(const void *handle, const struct check_kernel *k, bool rest,
                                       struct modules_row *of, unsigned registers,
                                       const struct launch_call *l)
{
    const struct kernel *own = kernels_find(handle);
    enum kernels_kind kind = atomic_load_explicit(&own->kind, memory_order_acquire);
    const struct rewrite_limits limits = {registers, registers_beside(handle, kind)};
    lock_take(&lock);
    const void *variant = variant_for(find(of, k->checks, rest, &limits), kind);
    lock_give(&lock);
    if (!variant)
        return k;
    copy_attributes(handle, variant, kind);
    if (l && !launch_call_fits_together(l, variant))
        return k;
    // The new module's variables are set before any thread finds the variant: --mode=shadow cannot run
    // without them.
    if (!check_host_launch())
        return k;
    struct check_kernel like = *k;
    *(rest ? &like.rest : &like.full) = (struct check_variant){variant, 0};
    return check_kernel_set(handle, &like);
}

static const void *variant_of(const struct check_kernel *k, bool rest)
{
    return rest ? k->rest.handle : k->full.handle;
}

// Makes the context current in which the variant of a kernel is made: that of its module, or of the function
// that a library has in a context. For the kernel of a library it is any: what is current remains. Programs
// ask for attributes, and set them, whatever is current. Returns false if there is none.
static bool enter(const void *handle, enum kernels_kind kind, const struct modules_row *of, bool *pushed)
{
    CUcontext in = of->context ? of->context : kind == KERNELS_KERNEL ? NULL : kernels_context(handle);
    CUcontext now = context_current_owner();
    *pushed = in && in != now && !guard.real.cuCtxPushCurrent_v2(in);
    return in && in != now ? *pushed : now != NULL;
}

// Makes the variant for a launch, or any launch if l is NULL.
static const struct check_kernel *want_for(const void *handle, const struct check_kernel *k, bool rest,
                                           const struct launch_call *l)
{
    const struct kernel *own = kernels_find(handle);
    enum kernels_kind kind = own ? atomic_load_explicit(&own->kind, memory_order_acquire) : KERNELS_FUNCTION;
    struct modules_row *of = modules_hold(k->apart);
    const struct check_kernel *now = check_kernel_of(handle);  // another thread may have been first
    k = now && now->checks == k->checks ? now : k;
    const void *variant = variant_of(k, rest);
    bool pushed = false;
    if (of && of->later && enter(handle, kind, of, &pushed)) {
        unsigned registers = !variant ? registers_of(handle, kind)
                             : l && !launch_call_fits_together(l, variant)
                                 ? registers_together(l, variant, kind)
                                 : 0;
        if (!variant || registers)
            k = want(handle, k, rest, of, registers, variant ? l : NULL);
        context_leave(pushed);
    }
    modules_release(of);
    return k;
}

const struct check_kernel *check_apart_want(const void *handle, const struct check_kernel *k, bool rest)
{
    if (!k->apart || variant_of(k, rest))
        return k;
    int saved = errno;
    CUstreamCaptureMode mode = context_capture_relax();
    k = want_for(handle, k, rest, NULL);
    context_capture_restore(mode);
    errno = saved;
    return k;
}

const struct check_kernel *check_apart_want_together(const struct launch_call *l,
                                                     const struct check_kernel *k, bool rest)
{
    const void *variant = variant_of(k, rest);
    if (!k->apart || !variant || launch_call_fits_together(l, variant) ||
        !launch_call_fits_together(l, l->function))
        return k;
    int saved = errno;
    CUstreamCaptureMode mode = context_capture_relax();
    k = want_for(l->function, k, rest, l);
    context_capture_restore(mode);
    errno = saved;
    return k;
}

// --- ends --------------------------------------------------------------------------------------------------

void check_apart_ends(const void *handle, bool ending)
{
    lock_take(&lock);
    for (struct unit *u = units; u; u = u->next)
        if (u->owner == handle) {
            u->ending = ending;
            if (u->module)
                check_host_module_ends(u->module, ending);
        }
    lock_give(&lock);
}

static void unload(const struct unit *u)
{
    struct modules_row *row = u->module ? modules_unloading(u->module) : NULL;
    CUresult r = !u->module   ? CUDA_ERROR_NOT_FOUND
                 : u->context ? guard.real.cuModuleUnload((CUmodule)u->module)
                              : guard.real.cuLibraryUnload((CUlibrary)u->module);
    if (!r)
        modules_gone(row);
    modules_release(row);
}

// Takes units out of the list, and unloads their modules if the context still exists.
static void take(bool (*is)(const struct unit *u, const void *what), const void *what, bool driver)
{
    struct unit *gone = NULL;
    lock_take(&lock);
    for (struct unit **at = &units; *at;) {
        struct unit *u = *at;
        if (!is(u, what)) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        u->next = gone;
        gone = u;
    }
    lock_give(&lock);
    while (gone) {
        struct unit *u = gone;
        gone = u->next;
        if (driver)
            unload(u);
        mem_free(u);
    }
}

static bool is_ending(const struct unit *u, const void *handle)
{
    return u->owner == handle && u->ending;
}

static bool is_of_context(const struct unit *u, const void *context)
{
    return u->context == context;
}

void check_apart_gone(const void *handle)
{
    take(is_ending, handle, true);
}

void check_apart_context_gone(CUcontext context)
{
    take(is_of_context, context, false);
}
