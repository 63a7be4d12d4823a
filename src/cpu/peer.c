// SPDX-License-Identifier: MIT
// Peer access between devices. Any device can access any other, and none is a peer of itself. There is one
// address space: what a program enables is stored and reported, but no kernel needs it.
#include "cpu/cpu.h"

#include "base/mutex.h"

static CUresult check_pair(CUdevice a, CUdevice b)
{
    CUresult r = device_check(a);
    return r ? r : device_check(b);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult r = check_pair(device, peer);
    if (r || !can)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    CUresult r = check_pair(from, to);
    if (r || !value)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    switch ((int)attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: *value = 0; break;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = 1; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

// The capabilities are those within one device.
static unsigned capability(CUatomicOperation operation)
{
    unsigned scalar =
        CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
    switch ((int)operation) {
    case CU_ATOMIC_OPERATION_INTEGER_ADD:
    case CU_ATOMIC_OPERATION_INTEGER_MIN:
    case CU_ATOMIC_OPERATION_INTEGER_MAX:
        return scalar | CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED;
    case CU_ATOMIC_OPERATION_FLOAT_MIN:
    case CU_ATOMIC_OPERATION_FLOAT_MAX: return 0;
    case CU_ATOMIC_OPERATION_FLOAT_ADD: return scalar | CU_ATOMIC_CAPABILITY_SIGNED;
    default: return scalar | CU_ATOMIC_CAPABILITY_UNSIGNED;
    }
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                          unsigned int count, CUdevice from, CUdevice to)
{
    CUresult r = check_pair(from, to);
    if (r || !capabilities || !operations || !count)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    for (unsigned i = 0; i < count; i++) {
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        capabilities[i] = capability(operations[i]);
    }
    return CUDA_SUCCESS;
}

// --- between contexts --------------------------------------------------------------------------------------

// Finds the current context. *peer: the handle that the application passed; replaced by the context it names.
static CUresult find(CUcontext *peer, struct CUctx_st **ctx)
{
    CUresult r = cpu_context_current(ctx);
    if (r)
        return r;
    *peer = cpu_context_named(*peer);
    bool living = *peer && atomic_load(&(*peer)->alive);
    return living ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Returns the index of an id among the enabled peers; id 0: of a free entry. Returns PEER_MOST if there is
// none. The lock must be held.
static unsigned place_of(const struct CUctx_st *ctx, unsigned long long id)
{
    unsigned i = 0;
    while (i < PEER_MOST && ctx->peers[i] != id)
        i++;
    return i;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult r = find(&peer, &ctx);
    if (r || flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (peer->device == ctx->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    mutex_lock(&ctx->lock);
    unsigned room = place_of(ctx, 0);
    if (place_of(ctx, peer->id) < PEER_MOST)
        r = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    else if (room == PEER_MOST)
        r = CUDA_ERROR_TOO_MANY_PEERS;
    else
        ctx->peers[room] = peer->id;
    mutex_unlock(&ctx->lock);
    return r;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    struct CUctx_st *ctx;
    CUresult r = find(&peer, &ctx);
    if (r)
        return r;
    mutex_lock(&ctx->lock);
    unsigned at = place_of(ctx, peer->id);
    if (at < PEER_MOST)
        ctx->peers[at] = 0;
    mutex_unlock(&ctx->lock);
    return at < PEER_MOST ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
