// SPDX-License-Identifier: MIT
// Allocation and free of every family that has addresses. A free marks the block as freed first and reverts
// that if the driver refuses: in between another thread may get the same address.
#include "hook/bounds.h"
#include "context/capture_rule.h"
#include "launch/kernel_fault.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "hook/hook_fill.h"
#include "mode/mode.h"
#include "share/share.h"
#include "share/share_open.h"
#include "track/track.h"

// Returns whether a refusal is about the pointer, and not about a context that is destroyed or in error.
static bool is_about_pointer(CUresult r)
{
    return r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ||
           r == CUDA_ERROR_INVALID_HANDLE;
}

static CUresult freed(CUresult r, bool known, uint64_t pointer, enum track_way way, enum driver_id call)
{
    if (r && known)
        track_not_freed(pointer);
    if (!r && known)
        track_was_freed(pointer);
    if (r && pointer && guard.watching && is_about_pointer(r))
        bounds_bad_free(call, pointer, way);
    return kernel_fault_seen(r);
}

static CUresult made(CUresult r, enum track_family family, enum driver_id call, uint64_t base, uint64_t size)
{
    if (!r && base && guard.watching)
        track_made(family, call, base, size);
    if (!r && base && hook_fill_on())
        hook_fill_made(family, base, size);
    return r;
}

// Records memory that no mode can place.
static CUresult made_elsewhere(CUresult r, enum track_family family, enum driver_id call, uint64_t base,
                               uint64_t size)
{
    if (!r)
        mode_made_elsewhere();
    return made(r, family, call, base, size);
}

bool hook_reclaim(CUresult r)
{
    return r == CUDA_ERROR_OUT_OF_MEMORY && mode_reclaim(false);
}

// Lets a mode allocate, from memory of its own or from the driver with surroundings. If it returns true, *r
// is the program's result.
static bool by_mode(const struct mode_alloc *a, CUdeviceptr *pointer, CUresult *r)
{
    uint64_t address = 0;
    if (!pointer || !mode_alloc(a, &address, r))
        return false;
    if (!*r)
        *pointer = address;
    return true;
}

CUresult hook_cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
    struct mode_alloc a = {.kind = MODE_PLAIN, .size = size};
    CUresult r;
    if (!capture_rule_forbids() && by_mode(&a, pointer, &r))
        return made(r, TRACK_PLAIN, DRIVER_cuMemAlloc_v2, r ? 0 : *pointer, size);
    r = guard.real.cuMemAlloc_v2(pointer, size);
    if (hook_reclaim(r))
        r = guard.real.cuMemAlloc_v2(pointer, size);
    return made(r, TRACK_PLAIN, DRIVER_cuMemAlloc_v2, r ? 0 : *pointer, size);
}

CUresult hook_cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                 unsigned element)
{
    struct mode_alloc a = {
        .kind = MODE_PITCH, .width = width, .height = height, .pitch = pitch, .element = element};
    CUresult r;
    if (capture_rule_forbids() || !by_mode(&a, pointer, &r))
        r = guard.real.cuMemAllocPitch_v2(pointer, pitch, width, height, element);
    if (hook_reclaim(r))
        r = guard.real.cuMemAllocPitch_v2(pointer, pitch, width, height, element);
    return made(r, TRACK_PITCH, DRIVER_cuMemAllocPitch_v2, r ? 0 : *pointer, r ? 0 : *pitch * height);
}

CUresult hook_cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned flags)
{
    struct mode_alloc a = {.kind = MODE_MANAGED, .size = size, .flags = &flags};
    CUresult r;
    if (!by_mode(&a, pointer, &r))
        r = guard.real.cuMemAllocManaged(pointer, size, flags);
    if (hook_reclaim(r))
        r = guard.real.cuMemAllocManaged(pointer, size, flags);
    return made(r, TRACK_MANAGED, DRIVER_cuMemAllocManaged, r ? 0 : *pointer, size);
}

static bool host_by_mode(size_t size, const unsigned *flags, void **pointer, CUresult *r)
{
    struct mode_alloc a = {.kind = MODE_HOST, .size = size, .flags = flags};
    CUdeviceptr address = 0;
    if (!pointer || !by_mode(&a, &address, r))
        return false;
    if (!*r)
        *pointer = (void *)(uintptr_t)address;
    return true;
}

CUresult hook_cuMemAllocHost_v2(void **pointer, size_t size)
{
    CUresult r;
    if (!host_by_mode(size, NULL, pointer, &r))
        r = guard.real.cuMemAllocHost_v2(pointer, size);
    if (hook_reclaim(r))
        r = guard.real.cuMemAllocHost_v2(pointer, size);
    return made(r, TRACK_PINNED, DRIVER_cuMemAllocHost_v2, r ? 0 : (uintptr_t)*pointer, size);
}

CUresult hook_cuMemHostAlloc(void **pointer, size_t size, unsigned flags)
{
    CUresult r;
    if (!host_by_mode(size, &flags, pointer, &r))
        r = guard.real.cuMemHostAlloc(pointer, size, flags);
    if (hook_reclaim(r))
        r = guard.real.cuMemHostAlloc(pointer, size, flags);
    return made(r, TRACK_PINNED, DRIVER_cuMemHostAlloc, r ? 0 : (uintptr_t)*pointer, size);
}

CUresult hook_cuMemHostRegister(void *pointer, size_t size, unsigned flags)
{
    CUresult r = guard.real.cuMemHostRegister(pointer, size, flags);
    return made_elsewhere(r, TRACK_REGISTERED, DRIVER_cuMemHostRegister, (uintptr_t)pointer, size);
}

CUresult hook_cuMemHostRegister_v2(void *pointer, size_t size, unsigned flags)
{
    CUresult r = guard.real.cuMemHostRegister_v2(pointer, size, flags);
    return made_elsewhere(r, TRACK_REGISTERED, DRIVER_cuMemHostRegister_v2, (uintptr_t)pointer, size);
}

// An allocation in a captured stream gives out no memory: the address belongs to a graph, whenever that runs.
static bool is_capturing(CUstream stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    __typeof__(cuStreamIsCapturing) *ask =
        per_thread ? guard.real.cuStreamIsCapturing_ptsz : guard.real.cuStreamIsCapturing;
    return ask && !ask(stream, &status) && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult made_in_order(CUresult r, enum driver_id call, const CUdeviceptr *pointer, size_t size,
                              CUstream stream, bool per_thread)
{
    if (r || !guard.watching)
        return r;
    if (is_capturing(stream, per_thread)) {
        track_made_in_graph(call, *pointer, size);
        return r;
    }
    if (hook_fill_on())
        hook_fill_in_order(*pointer, size, stream, per_thread);
    return made(r, TRACK_POOL, call, *pointer, size);
}

static bool pool_by_mode(enum driver_id call, CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                         CUstream stream, bool per_thread, CUresult *r)
{
    struct mode_alloc a = {
        .kind = MODE_POOL, .size = size, .pool = pool, .stream = stream, .per_thread = per_thread};
    if (!mode_allocates() || is_capturing(stream, per_thread) || !by_mode(&a, pointer, r))
        return false;
    if (!*r && hook_fill_on())
        hook_fill_in_order(*pointer, size, stream, per_thread);
    made(*r, TRACK_POOL, call, *r ? 0 : *pointer, size);
    return true;
}

// possible: the driver would not refuse the call anyway.
#define POOL(symbol, per_thread, possible, the_pool, parameters, arguments)                          \
    CUresult hook_##symbol parameters                                                                \
    {                                                                                                \
        CUresult r;                                                                                  \
        if ((possible) && pool_by_mode(DRIVER_##symbol, pointer, size, the_pool, q, per_thread, &r)) \
            return r;                                                                                \
        r = guard.real.symbol arguments;                                                             \
        if (hook_reclaim(r))                                                                         \
            r = guard.real.symbol arguments;                                                         \
        return made_in_order(r, DRIVER_##symbol, pointer, size, q, per_thread);                      \
    }

POOL(cuMemAllocAsync, false, true, NULL, (CUdeviceptr * pointer, size_t size, CUstream q), (pointer, size, q))
POOL(cuMemAllocAsync_ptsz, true, true, NULL, (CUdeviceptr * pointer, size_t size, CUstream q),
     (pointer, size, q))
POOL(cuMemAllocFromPoolAsync, false, pool, pool,
     (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream q), (pointer, size, pool, q))
POOL(cuMemAllocFromPoolAsync_ptsz, true, pool, pool,
     (CUdeviceptr * pointer, size_t size, CUmemoryPool pool, CUstream q), (pointer, size, pool, q))

CUresult hook_cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult r;
    bool known = guard.watching && track_freeing(pointer, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2);
    share_withdraw(pointer);  // before the free: afterwards another buffer may be there
    if (known && hook_fill_on())
        hook_fill_freed(pointer);
    struct mode_free f = {.way = MODE_FREE, .pointer = pointer, .call = DRIVER_cuMemFree_v2};
    if (!mode_free(&f, &r))
        r = guard.real.cuMemFree_v2(pointer);
    return freed(r, known, pointer, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2);
}

static CUresult free_in_order(enum driver_id call, __typeof__(cuMemFreeAsync) *real, CUdeviceptr pointer,
                              CUstream stream, bool per_thread)
{
    CUresult r;
    bool captured = guard.watching && is_capturing(stream, per_thread);
    bool known = guard.watching && !captured && track_freeing(pointer, TRACK_BY_DEVICE, call);
    if (!captured)
        share_withdraw(pointer);  // before the free: afterwards another buffer may be there
    if (known && hook_fill_on())
        hook_fill_freed_in_order(pointer, stream, per_thread);
    struct mode_free f = {MODE_FREE_IN_ORDER, pointer, call, stream, per_thread, captured};
    if (!mode_free(&f, &r))
        r = real(pointer, stream);
    return captured ? r : freed(r, known, pointer, TRACK_BY_DEVICE, call);
}

CUresult hook_cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    return free_in_order(DRIVER_cuMemFreeAsync, guard.real.cuMemFreeAsync, pointer, stream, false);
}

CUresult hook_cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
    return free_in_order(DRIVER_cuMemFreeAsync_ptsz, guard.real.cuMemFreeAsync_ptsz, pointer, stream, true);
}

CUresult hook_cuMemFreeHost(void *pointer)
{
    CUresult r;
    bool known = guard.watching && track_freeing((uintptr_t)pointer, TRACK_BY_HOST, DRIVER_cuMemFreeHost);
    if (known && hook_fill_on())
        hook_fill_freed((uintptr_t)pointer);
    struct mode_free f = {.way = MODE_FREE_HOST, .pointer = (uintptr_t)pointer, .call = DRIVER_cuMemFreeHost};
    if (!mode_free(&f, &r))
        r = guard.real.cuMemFreeHost(pointer);
    return freed(r, known, (uintptr_t)pointer, TRACK_BY_HOST, DRIVER_cuMemFreeHost);
}

CUresult hook_cuMemHostUnregister(void *pointer)
{
    enum driver_id call = DRIVER_cuMemHostUnregister;
    bool known = guard.watching && track_freeing((uintptr_t)pointer, TRACK_BY_REGISTER, call);
    return freed(guard.real.cuMemHostUnregister(pointer), known, (uintptr_t)pointer, TRACK_BY_REGISTER, call);
}

// Records memory of other processes and APIs, whose size the driver knows.
static CUresult imported(CUresult r, enum track_family family, enum driver_id call,
                         const CUdeviceptr *pointer)
{
    CUdeviceptr base = 0;
    size_t size = 0;
    if (r || !guard.watching || !guard.real.cuMemGetAddressRange_v2 ||
        guard.real.cuMemGetAddressRange_v2(&base, &size, *pointer))
        return r;
    return made_elsewhere(r, family, call, *pointer, base + size - *pointer);
}

// Opens a handle of the driver's, or one from another process under moat.
static CUresult open_handle(enum driver_id call, share_open_fn *real, CUdeviceptr *pointer,
                            const CUipcMemHandle *handle, unsigned flags)
{
    size_t size = 0;
    if (!share_is_ours(handle))
        return imported(real(pointer, *handle, flags), TRACK_IPC, call, pointer);
    CUresult r = share_open(pointer, &size, handle, flags, real);
    return made_elsewhere(r, TRACK_IPC, call, r ? 0 : *pointer, size);
}

CUresult hook_cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
    return open_handle(DRIVER_cuIpcOpenMemHandle_v2, guard.real.cuIpcOpenMemHandle_v2, pointer, &handle,
                       flags);
}

CUresult hook_cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
    return open_handle(DRIVER_cuIpcOpenMemHandle, guard.real.cuIpcOpenMemHandle, pointer, &handle, flags);
}

// Memory that was opened twice stays until it is closed twice.
CUresult hook_cuIpcCloseMemHandle(CUdeviceptr pointer)
{
    CUdeviceptr base;
    size_t size;
    CUresult r;
    bool known = guard.watching && track_freeing(pointer, TRACK_BY_IPC, DRIVER_cuIpcCloseMemHandle), last;
    if (!share_close(pointer, &r, &last)) {
        r = guard.real.cuIpcCloseMemHandle(pointer);
        last = !guard.real.cuMemGetAddressRange_v2 ||
               guard.real.cuMemGetAddressRange_v2(&base, &size, pointer) != CUDA_SUCCESS;
    }
    if (!r && known && !last) {
        track_not_freed(pointer);
        known = false;
    }
    return freed(r, known, pointer, TRACK_BY_IPC, DRIVER_cuIpcCloseMemHandle);
}

CUresult hook_cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    CUresult r = guard.real.cuMemPoolImportPointer(pointer, pool, data);
    return imported(r, TRACK_IMPORTED, DRIVER_cuMemPoolImportPointer, pointer);
}

CUresult hook_cuExternalMemoryGetMappedBuffer(CUdeviceptr *pointer, CUexternalMemory memory,
                                              const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    CUresult r = guard.real.cuExternalMemoryGetMappedBuffer(pointer, memory, desc);
    return made_elsewhere(r, TRACK_IMPORTED, DRIVER_cuExternalMemoryGetMappedBuffer, r ? 0 : *pointer,
                          r ? 0 : desc->size);
}

// Virtual memory: only mappings are tracked. One call may remove several of them.

CUresult hook_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *how,
                          unsigned long long flags)
{
    CUresult r = guard.real.cuMemCreate(handle, size, how, flags);
    return hook_reclaim(r) ? guard.real.cuMemCreate(handle, size, how, flags) : r;
}

CUresult hook_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags)
{
    CUresult r = guard.real.cuMemMap(pointer, size, offset, handle, flags);
    return made_elsewhere(r, TRACK_MAPPED, DRIVER_cuMemMap, pointer, size);
}

CUresult hook_cuMemUnmap(CUdeviceptr pointer, size_t size)
{
    uint64_t at = pointer;
    struct mode_answer answer;
    // The program takes it for plain memory, which cannot be unmapped.
    if (mode_ask(pointer, &answer) != MODE_NOT_OURS)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = guard.real.cuMemUnmap(pointer, size);
    while (!r && guard.watching && at - pointer < size) {
        unsigned section = epoch_enter();
        struct track_block *b = track_live(at);
        uint64_t end = b ? track_end(b) : 0;
        epoch_leave(section);
        if (!b || !track_freeing(at, TRACK_BY_MAP, DRIVER_cuMemUnmap))
            break;
        track_was_freed(at);
        at = end;
    }
    return r;
}
