// SPDX-License-Identifier: MIT
// What a program can ask about its memory, answered for buffers in pages of their own, and for those between canaries, as
// for plain ones; and the calls that such memory cannot serve. Without --mode=pages or canary all of it passes.
#include <string.h>

#include "guard/canary.h"
#include "guard/canary_ground.h"
#include "guard/canary_tract.h"
#include "guard/kernel_fault.h"
#include "guard/guard.h"
#include "guard/hook.h"
#include "guard/pages.h"
#include "guard/pages_pool.h"
#include "guard/share.h"

// What a pointer is in either mode. mapped: it is in memory about which the driver answers otherwise in more than its range.
struct whose {
    enum pages_what what;
    bool mapped, pages;
    struct pages_answer answer;
};

// A buffer between canaries.
static bool is_mapped(CUdeviceptr pointer, CUcontext *context)
{
    unsigned section = epoch_enter();
    bool is = canary_ground_is_mapped(pointer, context);
    epoch_leave(section);
    return is;
}

static struct whose ask(CUdeviceptr pointer)
{
    struct whose w = {.what = PAGES_NOT_OURS};
    w.what = pages_ask(pointer, &w.answer);
    w.mapped = w.pages = w.what != PAGES_NOT_OURS;
    if (w.pages)
        return w;
    switch (canary_ask(pointer, &w.answer.base, &w.answer.size)) {
    case CANARY_BUFFER:
        w.what = PAGES_BUFFER;
        w.mapped = w.answer.shareable = is_mapped(pointer, &w.answer.context);
        break;
    case CANARY_AROUND: w.what = PAGES_SLACK; break;
    case CANARY_NOT_OURS: break;
    }
    return w;
}

// The driver knows nothing at address 0: the same answer as for a place between two buffers.
static CUdeviceptr known_as(const struct whose *w, CUdeviceptr pointer)
{
    return w->what == PAGES_SLACK ? 0 : pointer;
}

CUresult hook_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuMemGetAddressRange_v2(base, size, known_as(&w, pointer));
    if (r || w.what != PAGES_BUFFER)
        return r;
    if (base)
        *base = w.answer.base;
    if (size)
        *size = w.answer.size;
    return r;
}

// What is held for the program's next buffers is free to it.
CUresult hook_cuMemGetInfo_v2(size_t *available, size_t *all)
{
    size_t total;
    uint64_t held = canary_held();
    CUresult r = guard.real.cuMemGetInfo_v2(available, all ? all : &total);
    if (r || !available)
        return r;
    // Meanwhile others may have given some back.
    total = all ? *all : total;
    *available = held < total - *available ? *available + held : total;
    return r;
}

// Mapped memory is of no context and of no pool, and its range is all that was reserved.
static void correct(CUpointer_attribute attribute, void *value, const struct whose *w)
{
    const struct pages_answer *a = &w->answer;
    int no = 0;
    if (!w->mapped && attribute != CU_POINTER_ATTRIBUTE_RANGE_START_ADDR &&
        attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        return;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(value, &(CUcontext){a->pool ? NULL : a->context}, sizeof(CUcontext));
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: memcpy(value, &a->base, sizeof a->base); break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: memcpy(value, &a->size, sizeof a->size); break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: memcpy(value, &a->pool, sizeof a->pool); break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        if (a->pool)
            memcpy(value, &no, sizeof no);
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:  // the program did not ask for any
        memcpy(value, &no, sizeof no);
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        // The driver has written that mapped memory is not, as a byte or a word. It is shared as plain memory is.
        *(char *)value = a->shareable;
        break;
    default: break;
    }
}

CUresult hook_cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuPointerGetAttribute(value, attribute, known_as(&w, pointer));
    if (!r && w.what == PAGES_BUFFER)
        correct(attribute, value, &w);
    return r;
}

CUresult hook_cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                     CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuPointerGetAttributes(count, attributes, values, known_as(&w, pointer));
    for (unsigned i = 0; !r && w.what == PAGES_BUFFER && i < count; i++)
        correct(attributes[i], values[i], &w);
    return r;
}

// On an H200 it is on for all memory, and setting it is an error for mapped memory only.
CUresult hook_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuPointerSetAttribute(value, attribute, known_as(&w, pointer));
    bool all_have_it = value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && w.what == PAGES_BUFFER;
    return r == CUDA_ERROR_NOT_SUPPORTED && all_have_it ? CUDA_SUCCESS : r;
}

// The program did not map it.
CUresult hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    bool ours = ask((uintptr_t)address).what != PAGES_NOT_OURS;
    return guard.real.cuMemRetainAllocationHandle(handle, ours ? NULL : address);
}

// The driver's handle is for all that cuMemAlloc gave, canaries and neighbours too.
static bool share_padded(const struct whose *w, CUipcMemHandle *handle)
{
    struct share_memory m;
    CUdeviceptr base;
    size_t bytes;
    if (share_offered(w->answer.base, handle))
        return true;
    m = (struct share_memory){.size = w->answer.size, .fd = -1};
    if (w->mapped) {
        m.later = canary_tract_share;
        return canary_tract_can_share(w->answer.base, m.size) && !share_offer(w->answer.base, &m, handle);
    }
    if (guard.real.cuMemGetAddressRange_v2(&base, &bytes, w->answer.base) ||
        guard.real.cuIpcGetMemHandle(&m.handle, w->answer.base))
        return false;
    m.offset = w->answer.base - base;
    return !share_offer(w->answer.base, &m, handle);
}

static CUresult stop_mapping(const struct whose *w)
{
    const struct home *home = home_find(w->answer.context);
    guard_count(GUARD_CANARY_REFUSED);
    if (home)
        canary_tract_give_up(home,
                             "a buffer that the program shares by cuIpcGetMemHandle lies in more pieces than "
                             "can be handed over");
    return CUDA_ERROR_NOT_SUPPORTED;
}

// If a buffer cannot be shared, those that follow it can.
CUresult hook_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    if (!handle)
        return guard.real.cuIpcGetMemHandle(handle, pointer);
    if (w.what == PAGES_BUFFER && (w.pages ? pages_share(pointer, handle) : share_padded(&w, handle))) {
        guard_count(GUARD_IPC_SHARED);
        return CUDA_SUCCESS;
    }
    if (w.what == PAGES_BUFFER && w.mapped && !w.pages)
        return stop_mapping(&w);
    pages_stop("the program shares memory by cuIpcGetMemHandle, which cannot be mapped");
    canary_stop(
        "the program shares memory by cuIpcGetMemHandle, and a handle is for all that cuMemAlloc gave");
    if (w.what == PAGES_BUFFER)
        guard_count(w.pages ? GUARD_PAGES_REFUSED : GUARD_CANARY_REFUSED);
    return w.what == PAGES_BUFFER && !w.pages ? CUDA_ERROR_NOT_SUPPORTED
                                              : guard.real.cuIpcGetMemHandle(handle, pointer);
}

// The current context's device may use the memory of another context.
CUresult hook_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CUresult r = guard.real.cuCtxEnablePeerAccess(peer, flags);
    CUdevice device;
    bool pushed;
    if (!(pages_on || canary_on) || r || guard.real.cuCtxGetDevice(&device) || device < 0 ||
        device >= HOME_DEVICES)
        return r;
    struct home *home = home_enter(peer, &pushed);
    if (!home)
        return r;
    // Relaxed: see pages_block_make.
    atomic_fetch_or_explicit(&home->peers, (uint64_t)1 << device, memory_order_relaxed);
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    pages_block_let(peer, NULL, &desc, 1);
    canary_tract_let(peer, &desc);
    home_leave(pushed);
    return r;
}

CUresult hook_cuCtxDisablePeerAccess(CUcontext peer)
{
    CUresult r = guard.real.cuCtxDisablePeerAccess(peer);
    CUdevice device;
    struct home *home = (pages_on || canary_on) && !r ? home_find(peer) : NULL;
    if (home && !guard.real.cuCtxGetDevice(&device) && device >= 0 && device < HOME_DEVICES)
        atomic_fetch_and_explicit(&home->peers, ~((uint64_t)1 << device), memory_order_relaxed);
    return r;
}

CUresult hook_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult r = guard.real.cuMemPoolCreate(pool, props);
    if (!r && pages_on)
        pages_pool_made(*pool, props);
    return r;
}

CUresult hook_cuMemPoolDestroy(CUmemoryPool pool)
{
    canary_pool_ends(pool);
    CUresult r = guard.real.cuMemPoolDestroy(pool);
    if (!r && pages_on)
        pages_pool_gone(pool);
    return r;
}

CUresult hook_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
    CUresult r = guard.real.cuMemPoolSetAccess(pool, desc, count);
    if (!r && pages_on && pool) {
        pages_pool_opened(pool);
        pages_block_let(NULL, pool, desc, count);
    }
    return r;
}
