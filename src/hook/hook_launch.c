// SPDX-License-Identifier: MIT
// Launches, and calls that wait for kernels or query them and so return their faults.
#include <string.h>

#include "base/cancel.h"
#include "context/green.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "hook/hook_context.h"
#include "launch/kernel_fault.h"
#include "launch/launch_call.h"
#include "launch/launch_ring.h"

static void refused(unsigned launches)
{
    guard_add(GUARD_LAUNCHES_REFUSED, launches);
    mode_order(MODE_ORDER_ALL);
}

// Passes the result of a launch on. A refused launch has run no kernel.
static CUresult launched(CUresult r, unsigned launches)
{
    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        refused(launches);
    return kernel_fault_launched(r);
}

// The fast path if no mode is on.
#define WITHOUT_MODES(symbol, arguments)          \
    if (__builtin_expect(!mode_any, 1)) {         \
        launch_ring_note(f);                      \
        CUresult r = guard.real.symbol arguments; \
        launch_ring_made();                       \
        return launched(r, 1);                    \
    }
// Shows a launch to the modes. The arguments after `arguments` fill the rest of the struct launch_call. The
// ring comes first: its atomic operation would wait for the stores into the struct.
#define WITH_MODES(symbol, arguments, ...)                              \
    launch_ring_note(f);                                                \
    _Alignas(16) char room[LAUNCH_CALL_ROOM];                           \
    struct launch_change change;                                        \
    const struct launch_call l = {.call = DRIVER_##symbol,              \
                                  .function = f,                        \
                                  .graph = NULL,                        \
                                  .node = NULL,                         \
                                  .change = &change,                    \
                                  __VA_ARGS__};                         \
    launch_change_start(&change, room);                                 \
    cancel_hold();                                                      \
    mode_launch(&l);                                                    \
    mode_poll();                                                        \
    CUresult r = LAUNCH_CALL_GO(&l, guard.real.symbol arguments);       \
    HOOK_TRY_AGAIN(r, LAUNCH_CALL_GO(&l, guard.real.symbol arguments)); \
    launch_ring_made();                                                 \
    r = launched(r, 1);                                                 \
    cancel_release();                                                   \
    return r
// A separate function, so that a launch that no mode sees needs no stack for the parameters' bytes.
#define LAUNCH(symbol, parameters, arguments, ...)                      \
    __attribute__((noinline)) static CUresult shown_##symbol parameters \
    {                                                                   \
        WITH_MODES(symbol, arguments, __VA_ARGS__);                     \
    }                                                                   \
    CUresult hook_##symbol parameters                                   \
    {                                                                   \
        WITHOUT_MODES(symbol, arguments)                                \
        return shown_##symbol arguments;                                \
    }
#define LAUNCHES(symbol, parameters, arguments, ...)   \
    LAUNCH(symbol, parameters, arguments, __VA_ARGS__) \
    LAUNCH(symbol##_ptsz, parameters, arguments, __VA_ARGS__)

LAUNCHES(cuLaunchKernel,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
          unsigned shared, CUstream q, void **arguments, void **extra),
         (f, gx, gy, gz, bx, by, bz, shared, q, arguments, extra), .grid = {gx, gy, gz},
         .block = {bx, by, bz}, .shared = shared, .stream = q, .parameters = arguments, .extra = extra,
         .config = NULL, .old = NULL)
LAUNCHES(cuLaunchCooperativeKernel,
         (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
          unsigned shared, CUstream q, void **arguments),
         (f, gx, gy, gz, bx, by, bz, shared, q, arguments), .grid = {gx, gy, gz}, .block = {bx, by, bz},
         .shared = shared, .stream = q, .parameters = arguments, .extra = NULL, .config = NULL, .old = NULL)

// Read if the configuration is NULL; the driver refuses such a launch.
static const CUlaunchConfig none;
#define EX(c) ((c) ? (c) : &none)
LAUNCHES(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra),
         (c, f, arguments, extra), .grid = {EX(c)->gridDimX, EX(c)->gridDimY, EX(c)->gridDimZ},
         .block = {EX(c)->blockDimX, EX(c)->blockDimY, EX(c)->blockDimZ}, .shared = EX(c)->sharedMemBytes,
         .stream = EX(c)->hStream, .config = c, .parameters = arguments, .extra = extra, .old = NULL)

// --- the oldest way: shape and parameters are set in the function, one call after the other ----------------

// Returns NULL if there is no room.
static struct kernels_old *old_of(CUfunction f)
{
    return guard.watching ? kernels_old(kernels_get(f)) : NULL;
}

#define OLD(symbol, x, y, q, parameters, arguments)                                                         \
    __attribute__((noinline)) static CUresult shown_##symbol parameters                                     \
    {                                                                                                       \
        static const struct kernels_old unset = {.block = {1, 1, 1}};                                       \
        const struct kernels_old *o = old_of(f), *is = o ? o : &unset;                                      \
        WITH_MODES(symbol, arguments, .old = o, .grid = {(unsigned)(x), (unsigned)(y), 1},                  \
                   .block = {is->block[0], is->block[1], is->block[2]}, .shared = is->shared, .stream = q); \
    }                                                                                                       \
    CUresult hook_##symbol parameters                                                                       \
    {                                                                                                       \
        WITHOUT_MODES(symbol, arguments)                                                                    \
        return shown_##symbol arguments;                                                                    \
    }
OLD(cuLaunch, 1, 1, NULL, (CUfunction f), (f))
OLD(cuLaunchGrid, gx, gy, NULL, (CUfunction f, int gx, int gy), (f, gx, gy))
OLD(cuLaunchGridAsync, gx, gy, q, (CUfunction f, int gx, int gy, CUstream q), (f, gx, gy, q))

#define SET(symbol, set, parameters, arguments)       \
    CUresult hook_##symbol parameters                 \
    {                                                 \
        CUresult r = guard.real.symbol arguments;     \
        struct kernels_old *o = r ? NULL : old_of(f); \
        if (o)                                        \
            set;                                      \
        return r;                                     \
    }

static void set_block(struct kernels_old *o, int x, int y, int z)
{
    o->block[0] = (unsigned)x;
    o->block[1] = (unsigned)y;
    o->block[2] = (unsigned)z;
}

static void set_bytes(struct kernels_old *o, int offset, const void *from, size_t n)
{
    if (offset >= 0 && offset <= KERNELS_OLD_BYTES && n <= (size_t)(KERNELS_OLD_BYTES - offset) && n)
        memcpy(o->bytes + offset, from, n);
}

SET(cuFuncSetBlockShape, set_block(o, x, y, z), (CUfunction f, int x, int y, int z), (f, x, y, z))
SET(cuFuncSetSharedSize, o->shared = bytes, (CUfunction f, unsigned bytes), (f, bytes))
SET(cuParamSetSize, o->size = bytes < KERNELS_OLD_BYTES ? bytes : KERNELS_OLD_BYTES,
    (CUfunction f, unsigned bytes), (f, bytes))
SET(cuParamSeti, set_bytes(o, offset, &value, sizeof value), (CUfunction f, int offset, unsigned value),
    (f, offset, value))
SET(cuParamSetf, set_bytes(o, offset, &value, sizeof value), (CUfunction f, int offset, float value),
    (f, offset, value))
SET(cuParamSetv, set_bytes(o, offset, from, n), (CUfunction f, int offset, void *from, unsigned n),
    (f, offset, from, n))

// --- several devices by one call ---------------------------------------------------------------------------

enum { DEVICES = 16, POINTERS = 256 };  // longer lists are launched unchanged

// The list as modes have changed it.
struct devices {
    CUDA_LAUNCH_PARAMS list[DEVICES];
    struct launch_change changes[DEVICES];
    void *pointers[POINTERS];
    size_t used;
    bool changed;
    CUresult refused;
};

static void show_device(struct devices *d, unsigned i, const CUDA_LAUNCH_PARAMS *p)
{
    _Alignas(16) char room[LAUNCH_CALL_ROOM];
    const struct launch_call l = {
        .call = DRIVER_cuLaunchCooperativeKernelMultiDevice,
        .function = p->function,
        .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
        .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
        .shared = p->sharedMemBytes,
        .stream = p->hStream,
        .parameters = p->kernelParams,
        .change = &d->changes[i],
    };
    launch_change_start(l.change, room);
    mode_launch(&l);
    d->list[i] = *p;
    d->refused = d->refused ? d->refused : l.change->refused;
    if (!launch_call_is_changed(&l))
        return;
    void **to = d->pointers + d->used;
    int n = l.change->count ? launch_call_pointers(&l, to, POINTERS - d->used) : 0;
    if (n < 0) {
        launch_call_leave(&l);
        return;
    }
    d->used += (size_t)n;
    d->list[i].kernelParams = n ? to : p->kernelParams;
    d->list[i].function = l.change->function ? (CUfunction)l.change->function : p->function;
    d->changed = true;
}

__attribute__((noinline)) static CUresult launch_devices(CUDA_LAUNCH_PARAMS *list, unsigned count,
                                                         unsigned flags)
{
    struct devices d;
    d.used = 0;
    d.changed = false;
    d.refused = CUDA_SUCCESS;
    for (unsigned i = 0; i < count; i++)
        show_device(&d, i, &list[i]);
    mode_poll();
    if (d.refused)
        return d.refused;
    CUDA_LAUNCH_PARAMS *to = d.changed ? d.list : list;
    CUresult r = guard.real.cuLaunchCooperativeKernelMultiDevice(to, count, flags);
    HOOK_TRY_AGAIN(r, guard.real.cuLaunchCooperativeKernelMultiDevice(to, count, flags));
    return r;
}

// Reads nothing of the list that the driver would not read: it refuses more launches than there are devices.
CUresult hook_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned count, unsigned flags)
{
    int devices = 0;
    bool right = list && guard.real.cuDeviceGetCount && !guard.real.cuDeviceGetCount(&devices) &&
                 count <= (unsigned)devices;
    bool shown = right && mode_any && count <= DEVICES;
    if (right && mode_any && !shown)
        guard_add(GUARD_LAUNCHES_LEFT, count);
    for (unsigned i = 0; right && i < count; i++)
        launch_ring_note(list[i].function);
    CUresult r = shown ? launch_devices(list, count, flags)
                       : guard.real.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
    for (unsigned i = 0; right && i < count; i++)
        launch_ring_made();
    return launched(r, right ? count : 0);
}

// --- waits, and graphs -------------------------------------------------------------------------------------

#define ASK(symbol, order, parameters, arguments) \
    CUresult hook_##symbol parameters             \
    {                                             \
        CUresult r = guard.real.symbol arguments; \
        mode_poll();                              \
        if (r != CUDA_ERROR_NOT_READY)            \
            mode_order(order);                    \
        return kernel_fault_seen(r);              \
    }
// all: the call waits for every kernel launched before.
#define WAIT(symbol, all, parameters, arguments)                  \
    CUresult hook_##symbol parameters                             \
    {                                                             \
        uint64_t launches = launch_ring_all_made();               \
        CUresult r = guard.real.symbol arguments;                 \
        mode_poll();                                              \
        mode_order(waited_for(!r && (all) && launches));          \
        mode_waited(DRIVER_##symbol, (all) && !r ? launches : 0); \
        return kernel_fault_seen(r);                              \
    }

// Returns whether the program has had only one context. Every context, green ones too, waits only for its own
// work.
static bool is_alone(void)
{
    return !atomic_load_explicit(&green_used, memory_order_relaxed) && context_only_one();
}

static enum mode_order waited_for(bool everything)
{
    return everything ? MODE_ORDER_ENDED : MODE_ORDER_ALL;
}

WAIT(cuCtxSynchronize, is_alone(), (void), ())
WAIT(cuCtxSynchronize_v2, is_alone(), (CUcontext c), (c))
WAIT(cuStreamSynchronize, false, (CUstream q), (q))
WAIT(cuStreamSynchronize_ptsz, false, (CUstream q), (q))
WAIT(cuEventSynchronize, false, (CUevent e), (e))
ASK(cuStreamQuery, MODE_ORDER_ALL, (CUstream q), (q))
ASK(cuStreamQuery_ptsz, MODE_ORDER_ALL, (CUstream q), (q))
ASK(cuEventQuery, MODE_ORDER_EVENT, (CUevent e), (e))

// PyTorch makes this call before each copy, which therefore often returns a fault first.
#define SEE(symbol, parameters, arguments)                     \
    CUresult hook_##symbol parameters                          \
    {                                                          \
        return kernel_fault_seen(guard.real.symbol arguments); \
    }
SEE(cuStreamIsCapturing, (CUstream q, CUstreamCaptureStatus *status), (q, status))
SEE(cuStreamIsCapturing_ptsz, (CUstream q, CUstreamCaptureStatus *status), (q, status))

#define LAUNCH_GRAPH(symbol)                                                                  \
    CUresult hook_##symbol(CUgraphExec g, CUstream q)                                         \
    {                                                                                         \
        launch_ring_note_graph(graph_names_of(g));                                            \
        mode_launch(&(struct launch_call){.call = DRIVER_##symbol, .graph = g, .stream = q}); \
        mode_poll();                                                                          \
        CUresult r = guard.real.symbol(g, q);                                                 \
        HOOK_TRY_AGAIN(r, guard.real.symbol(g, q));                                           \
        launch_ring_made();                                                                   \
        return kernel_fault_seen(r);                                                          \
    }
LAUNCH_GRAPH(cuGraphLaunch)
LAUNCH_GRAPH(cuGraphLaunch_ptsz)
