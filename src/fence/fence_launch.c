// SPDX-License-Identifier: MIT
#include "fence/fence_launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "context/kernels.h"
#include "core/guard.h"
#include "core/slab_pool.h"
#include "fence/fence_handles.h"
#include "fence/fence_host.h"
#include "fence/fence_memory.h"
#include "launch/launch_call.h"
#include "launch/launch_memo.h"
#include "prove/check_prove.h"
#include "rewrite/modules.h"
#include "track/guard_report.h"

// What is known of a kernel that was fenced, in its data of kernels.h. It stays for the life of the process.
struct fence_kernel {
    const void *masked;               // the variant that masks; NULL: there is none
    const void *bare;                 // the program's own code; NULL: there is none
    const void *rest;                 // masks what the proof does not cover; NULL: there is none
    const struct check_prove *prove;  // of `bare` and `rest`
    const struct pass_check_kernel *about;
};

enum { NAME = 4096 };

static unsigned data_number;
static struct slab_pool pool = SLAB_POOL(struct fence_kernel);

int fence_launch_start(void)
{
    int number = kernels_take_number();
    data_number = number < 0 ? 0 : (unsigned)number;
    check_prove_buffer = fence_memory_judged;
    return number < 0 ? -ENOMEM : 0;
}

// --- kernels -----------------------------------------------------------------------------------------------

static const struct fence_kernel *kernel_of(const void *handle)
{
    struct kernel *k = handle ? kernels_find(handle) : NULL;
    // Acquire: pairs with the release in keep.
    return k ? atomic_load_explicit(&k->data[data_number], memory_order_acquire) : NULL;
}

// Makes a variant known: errors in it are those of the kernel.
static void keep_variant(const void *variant, enum kernels_kind kind, const void *owner, struct kernel *k)
{
    if (!variant)
        return;
    kernels_found(variant, kind, owner, NULL);
    struct kernel *instead = kernels_get(variant);
    if (instead)
        kernels_stands_for(instead, k);
}

static void keep(const void *handle, enum kernels_kind kind, const void *owner,
                 const struct fence_kernel *found)
{
    struct kernel *k = kernels_get(handle);
    struct fence_kernel *c = k ? slab_pool_get(&pool) : NULL;
    struct kernels_parameter layout[KERNELS_PARAMETERS];
    const struct pass_check_kernel *about = found->about;
    if (!c)
        return;
    *c = *found;
    keep_variant(c->masked, kind, owner, k);
    keep_variant(c->bare, kind, owner, k);
    keep_variant(c->rest, kind, owner, k);
    if (c->masked || c->bare || c->rest) {
        for (uint32_t i = 0; i < about->nparams && i < KERNELS_PARAMETERS; i++)
            layout[i] = (struct kernels_parameter){(uint16_t)about->params[i].offset,
                                                   (uint16_t)about->params[i].size};
        if (about->nparams <= KERNELS_PARAMETERS)
            kernels_set_layout(k, layout, about->nparams);
    }
    // Release: pairs with the acquire in kernel_of.
    atomic_store_explicit(&k->data[data_number], c, memory_order_release);
}

static bool is_named(struct str name, const char *text)
{
    return name.len == strlen(text) && !memcmp(name.ptr, text, name.len);
}

static bool was_fenced(const struct pass_result *part, const char *name)
{
    for (uint32_t i = 0; part->check && i < part->nfuncs; i++)
        if (is_named(part->funcs[i].name, name))
            return part->funcs[i].why == PASS_REWRITTEN;
    return false;
}

static const struct pass_check_kernel *find_about(const struct pass_result *part, const char *name)
{
    for (uint32_t i = 0; part->check && i < part->check->nkernels; i++)
        if (is_named(part->check->kernels[i].name, name))
            return &part->check->kernels[i];
    return NULL;
}

static const void *find_variant(const void *owner, enum kernels_kind kind, const char *prefix,
                                const char *name)
{
    char text[NAME];
    void *variant = NULL;
    if (snprintf(text, sizeof text, "%s%s", prefix, name) >= (int)sizeof text)
        return NULL;
    CUresult r = kind == KERNELS_KERNEL
                     ? guard.real.cuLibraryGetKernel((CUkernel *)&variant, (CUlibrary)owner, text)
                     : guard.real.cuModuleGetFunction((CUfunction *)&variant, (CUmodule)owner, text);
    return r ? NULL : variant;
}

void fence_launch_found(const void *handle, const void *owner, const char *name)
{
    const struct kernel *k = kernels_find(handle);
    struct modules_row *row = k && owner && name && !kernel_of(handle) ? modules_hold(owner) : NULL;
    const struct pass_check_kernel *about = NULL;
    bool found = false;
    for (unsigned i = 0; row && i < row->nparts && !found; i++) {
        found = was_fenced(row->parts[i], name);
        about = found ? find_about(row->parts[i], name) : NULL;
    }
    if (found) {
        enum kernels_kind kind = atomic_load_explicit(&k->kind, memory_order_acquire);
        struct fence_kernel c = {.about = about};
        if (about && guard.options.fence != OPTION_FENCE_CHECK)
            c.masked = find_variant(owner, kind, KFENCE_PREFIX, name);
        if (about && about->proved != PASS_CHECK_FULL && guard.options.proofs == OPTION_PROOFS_ON)
            c.prove = check_prove_found(about);
        if (c.prove && pass_check_may_be_bare((enum pass_check_proved)about->proved))
            c.bare = find_variant(owner, kind, KFENCE_BARE_PREFIX, name);
        if (c.prove && pass_check_has_rest((enum pass_check_proved)about->proved))
            c.rest = find_variant(owner, kind, KFENCE_REST_PREFIX, name);
        keep(handle, kind, owner, &c);
    }
    modules_release(row);
}

static CUfunction function_of(const void *variant)
{
    CUfunction function = NULL;
    return variant && !guard.real.cuKernelGetFunction(&function, (CUkernel)variant) ? function : NULL;
}

void fence_launch_function_of(CUfunction function, CUkernel kernel)
{
    const struct fence_kernel *c = kernel_of(kernel);
    const struct kernel *k = kernels_find(kernel);
    if (!c || kernel_of(function))
        return;
    struct fence_kernel of = *c;
    of.masked = function_of(c->masked);
    of.bare = function_of(c->bare);
    of.rest = function_of(c->rest);
    keep(function, KERNELS_FUNCTION, k ? atomic_load_explicit(&k->owner, memory_order_acquire) : NULL, &of);
}

const void *fence_launch_variant(const void *handle, unsigned n)
{
    const struct fence_kernel *c = kernel_of(handle);
    const void *all[] = {c ? c->masked : NULL, c ? c->bare : NULL, c ? c->rest : NULL};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && !n--)
            return all[i];
    return NULL;
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

// Several devices that launch together share other words.
static bool is_cooperative(const struct launch_call *l)
{
    return launch_call_is_cooperative(l) && l->call != DRIVER_cuLaunchCooperativeKernelMultiDevice;
}

// Whether a variant can be launched in place of the kernel.
static bool fits(const struct launch_call *l, const void *variant)
{
    return variant &&
           (!launch_call_is_cooperative(l) || (is_cooperative(l) && launch_call_fits_together(l, variant)));
}

static bool is_right(const struct launch_call *l, const struct pass_check_pair *pair, uint64_t value,
                     const struct fence_partition *here)
{
    switch (pair->span) {
    case PASS_CHECK_COOPERATIVE: return is_cooperative(l);
    case PASS_CHECK_TEXTURE: return fence_handles_has(MODE_TEXTURE, value);
    case PASS_CHECK_SURFACE: return fence_handles_has(MODE_SURFACE, value);
    default: return !(value & (pair->align - 1)) && here && fence_partition_has(here, value);
    }
}

// Whether the handles among the parameters are those of textures and surfaces, and all parameters from which
// the variant computes what it masks point into the partition, and are aligned as the variant counts on.
// handles: only they are looked at.
static bool is_inside(const struct launch_call *l, const struct pass_check_variant *v, bool handles)
{
    const void *bytes;
    size_t size;
    if (!v->npairs)
        return true;
    if (!launch_call_parameters(l, &bytes, &size))
        return false;
    const struct fence_partition *here = fence_memory_here();
    for (uint32_t i = 0; i < v->npairs; i++) {
        uint64_t pointer = 0, offset = v->pairs[i].offset;
        bool has_value = v->pairs[i].span != PASS_CHECK_COOPERATIVE;
        if (has_value && (size < sizeof pointer || offset > size - sizeof pointer))
            return false;
        if (has_value)
            memcpy(&pointer, (const char *)bytes + offset, sizeof pointer);
        if ((!handles || v->pairs[i].span != 1) && !is_right(l, &v->pairs[i], pointer, here))
            return false;
    }
    return true;
}

// What a proof says of the accesses of the launch that could leave the partition. A graph's kernels are
// launched later, and with other parameters perhaps: they keep their fence.
static enum check_proved proved(const struct launch_call *l, const struct fence_kernel *c)
{
    const void *bytes;
    size_t size;
    struct launch_memo_key key;
    uint64_t known[LAUNCH_MEMO_ANSWER];
    bool lasts;
    if ((!c->bare && !c->rest) || l->node)
        return CHECK_PROVED_NOTHING;
    if (check_prove_is_idle(c->prove))
        return CHECK_PROVED_ALL;
    if (!launch_call_parameters(l, &bytes, &size))
        return CHECK_PROVED_NOTHING;
    launch_memo_ask(&key, c, fence_memory_version(), l, bytes, size);
    if (launch_memo_find(&key, known)) {
        if (known[0] != CHECK_PROVED_NOTHING)
            check_prove_again(c->prove, l);
        return (enum check_proved)known[0];
    }
    enum check_proved said = check_prove_holds(c->prove, l, bytes, size, NULL, &lasts);
    if (lasts)
        launch_memo_keep(&key, &(uint64_t){said}, 1);
    return said;
}

static void launch_kernel(const struct launch_call *l)
{
    const struct fence_kernel *c = kernel_of(l->function);
    if (!c) {
        launch_bare(l);
        return;
    }
    guard_count(GUARD_FENCE_LAUNCHES);
    enum check_proved said = proved(l, c);
    if (said == CHECK_PROVED_ALL && fits(l, c->bare) && is_inside(l, &c->about->full, true) &&
        launch_call_replace(l, c->bare)) {
        guard_count(GUARD_FENCE_PROVED);
    } else if (said != CHECK_PROVED_NOTHING && fits(l, c->rest) && is_inside(l, &c->about->rest, false) &&
               launch_call_replace(l, c->rest)) {
        guard_count(GUARD_FENCE_PART);
        if (guard.options.fence != OPTION_FENCE_CHECK)
            guard_count(GUARD_FENCE_MASKED);
    } else if (fits(l, c->masked) && is_inside(l, &c->about->full, false) &&
               launch_call_replace(l, c->masked)) {
        guard_count(GUARD_FENCE_MASKED);
    }
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
