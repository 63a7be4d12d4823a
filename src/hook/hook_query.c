// SPDX-License-Identifier: MIT
// Queries about memory: buffers that a mode placed are described as plain ones. Also the calls that such
// memory cannot serve. Without such a mode all calls are passed on unchanged.
#include <string.h>

#include "launch/kernel_fault.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "mode/mode.h"

struct whose {
    enum mode_what what;
    struct mode_answer answer;
};

static struct whose ask(CUdeviceptr pointer)
{
    struct whose w;
    w.what = mode_ask(pointer, &w.answer);
    return w;
}

// The driver knows no memory at address 0, so it returns what it would for an address between two buffers.
static CUdeviceptr known_as(const struct whose *w, CUdeviceptr pointer)
{
    return w->what == MODE_AROUND ? 0 : pointer;
}

CUresult hook_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuMemGetAddressRange_v2(base, size, known_as(&w, pointer));
    if (r || w.what != MODE_BUFFER)
        return r;
    if (base)
        *base = w.answer.base;
    if (size)
        *size = w.answer.size;
    return r;
}

// Memory that modes hold for the program's next buffers counts as available.
CUresult hook_cuMemGetInfo_v2(size_t *available, size_t *all)
{
    size_t total;
    uint64_t held = mode_held();
    CUresult r = guard.real.cuMemGetInfo_v2(available, all ? all : &total);
    if (r || !available)
        return r;
    // Other threads may have freed some meanwhile.
    total = all ? *all : total;
    *available = held < total - *available ? *available + held : total;
    return r;
}

// For mapped memory the driver reports no context and no pool, and as its range all that was reserved.
static void correct(CUpointer_attribute attribute, void *value, const struct whose *w)
{
    const struct mode_answer *a = &w->answer;
    int no = 0;
    if (!w->answer.mapped && attribute != CU_POINTER_ATTRIBUTE_RANGE_START_ADDR &&
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
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:  // the program requested none
        memcpy(value, &no, sizeof no);
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        // The driver has written, as a byte or a word, that mapped memory is not; moat shares it as plain
        // memory.
        *(char *)value = a->shareable;
        break;
    default: break;
    }
}

CUresult hook_cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuPointerGetAttribute(value, attribute, known_as(&w, pointer));
    if (!r && w.what == MODE_BUFFER)
        correct(attribute, value, &w);
    return r;
}

CUresult hook_cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                     CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuPointerGetAttributes(count, attributes, values, known_as(&w, pointer));
    for (unsigned i = 0; !r && w.what == MODE_BUFFER && i < count; i++)
        correct(attributes[i], values[i], &w);
    return r;
}

// On an H200 SYNC_MEMOPS is set for all memory, and setting it is an error for mapped memory only.
CUresult hook_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    CUresult r = guard.real.cuPointerSetAttribute(value, attribute, known_as(&w, pointer));
    bool all_have_it = value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && w.what == MODE_BUFFER;
    return r == CUDA_ERROR_NOT_SUPPORTED && all_have_it ? CUDA_SUCCESS : r;
}

// Memory that a mode mapped has no handle, as far as the program knows.
CUresult hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    bool ours = ask((uintptr_t)address).what != MODE_NOT_OURS;
    return guard.real.cuMemRetainAllocationHandle(handle, ours ? NULL : address);
}

CUresult hook_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    struct whose w = ask(pointer);
    if (handle && w.what == MODE_BUFFER && w.answer.mode->share)
        return w.answer.mode->share(&w.answer, pointer, handle);
    if (handle)
        mode_shares_plain();
    return guard.real.cuIpcGetMemHandle(handle, pointer);
}

// The device of the current context gets access to the memory of another context.
CUresult hook_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CUresult r = guard.real.cuCtxEnablePeerAccess(peer, flags);
    CUdevice device;
    bool pushed;
    if (!mode_allocates() || r || guard.real.cuCtxGetDevice(&device) || device < 0 ||
        device >= CONTEXT_DEVICES)
        return r;
    struct context *ctx = context_enter(peer, &pushed);
    if (!ctx)
        return r;
    // Relaxed: a mode that makes a buffer meanwhile is informed of the peer below.
    atomic_fetch_or_explicit(&ctx->peers, (uint64_t)1 << device, memory_order_relaxed);
    CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    mode_peer(ctx, &desc);
    context_leave(pushed);
    return r;
}

CUresult hook_cuCtxDisablePeerAccess(CUcontext peer)
{
    CUresult r = guard.real.cuCtxDisablePeerAccess(peer);
    CUdevice device;
    struct context *ctx = mode_allocates() && !r ? context_find(peer) : NULL;
    if (ctx && !guard.real.cuCtxGetDevice(&device) && device >= 0 && device < CONTEXT_DEVICES)
        atomic_fetch_and_explicit(&ctx->peers, ~((uint64_t)1 << device), memory_order_relaxed);
    return r;
}

CUresult hook_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult r = guard.real.cuMemPoolCreate(pool, props);
    if (!r)
        mode_pool_made(*pool, props);
    return r;
}

CUresult hook_cuMemPoolDestroy(CUmemoryPool pool)
{
    mode_pool_ends(pool);
    CUresult r = guard.real.cuMemPoolDestroy(pool);
    if (!r)
        mode_pool_gone(pool);
    return r;
}

CUresult hook_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
    CUresult r = guard.real.cuMemPoolSetAccess(pool, desc, count);
    if (!r)
        mode_pool_opened(pool, desc, count);
    return r;
}
