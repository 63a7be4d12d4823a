// SPDX-License-Identifier: MIT
#include "launch/launch_call.h"

#include <string.h>

#include "context/capture_rule.h"
#include "core/guard.h"

// --- what the program said ---------------------------------------------------------------------------------

const CUlaunchAttributeValue *launch_call_attribute(const struct launch_call *l, CUlaunchAttributeID id)
{
    const CUlaunchAttribute *found = NULL;
    for (unsigned i = 0; l->config && l->config->attrs && i < l->config->numAttrs; i++)
        if (l->config->attrs[i].id == id)
            found = &l->config->attrs[i];
    return found ? &found->value : NULL;
}

bool launch_call_is_cooperative(const struct launch_call *l)
{
    const CUlaunchAttributeValue *v = launch_call_attribute(l, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    return (v && v->cooperative) || l->call == DRIVER_cuLaunchCooperativeKernel ||
           l->call == DRIVER_cuLaunchCooperativeKernel_ptsz ||
           l->call == DRIVER_cuLaunchCooperativeKernelMultiDevice;
}

bool launch_call_fits_together(const struct launch_call *l, const void *variant)
{
    const struct driver *d = &guard.real;
    CUdevice device;
    int blocks = 0, processors = 0;
    unsigned threads = l->block[0] * l->block[1] * l->block[2];
    if (!d->cuOccupancyMaxActiveBlocksPerMultiprocessor || d->cuCtxGetDevice(&device) ||
        d->cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) ||
        d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)variant, (int)threads, l->shared))
        return false;
    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] <= (uint64_t)blocks * (uint64_t)processors;
}

bool launch_call_cluster(const struct launch_call *l, unsigned cluster[3])
{
    const CUlaunchAttributeValue *v = launch_call_attribute(l, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    cluster[0] = v ? v->clusterDim.x : 0;
    cluster[1] = v ? v->clusterDim.y : 0;
    cluster[2] = v ? v->clusterDim.z : 0;
    return v;
}

bool launch_call_is_captured(const struct launch_call *l)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    __typeof__(cuStreamIsCapturing) *ask =
        launch_call_per_thread(l) ? guard.real.cuStreamIsCapturing_ptsz : guard.real.cuStreamIsCapturing;
    if (l->node || !ask || !atomic_load_explicit(&capture_rule_any, memory_order_relaxed))
        return false;
    // A launch into the legacy stream beside one that captures is refused, and captures nothing.
    return !ask(l->stream, &status) && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool is_old(const struct launch_call *l)
{
    return l->call == DRIVER_cuLaunch || l->call == DRIVER_cuLaunchGrid ||
           l->call == DRIVER_cuLaunchGridAsync;
}

static const struct kernels_layout *layout_of(const struct launch_call *l)
{
    return kernels_layout(kernels_get(l->function));
}

// A list that ends at once counts as none.
static bool has_list(const struct launch_call *l)
{
    return l->extra && *l->extra != CU_LAUNCH_PARAM_END;
}

// Finds the parameter buffer that `extra` names. Returns false if there is none, or if the driver will refuse
// the list.
static bool read_extra(void **extra, const void **bytes, size_t *size)
{
    const size_t *given = NULL;
    *bytes = NULL;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *bytes = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            given = extra[1];
        else
            return false;
    }
    *size = given ? *given : 0;
    return *bytes && given;
}

// Most parameters are pointers and integers, which take no call.
static void copy_parameter(char *to, const void *from, size_t size)
{
    if (size == 8)
        memcpy(to, from, 8);
    else if (size == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, size);
}

static bool gather(const struct launch_call *l, const struct kernels_layout *layout)
{
    if (layout->size > LAUNCH_CALL_ROOM || (layout->count && !l->parameters))
        return false;
    char *room = l->change->room;
    size_t end = 0;  // all bytes before it are set
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct kernels_parameter *p = &layout->parameter[i];
        if (!l->parameters[i])
            return false;
        if (p->offset > end)
            memset(room + end, 0, p->offset - end);
        copy_parameter(room + p->offset, l->parameters[i], p->size);
        if (end < (size_t)p->offset + p->size)
            end = (size_t)p->offset + p->size;
    }
    l->change->gathered = true;
    return true;
}

static bool find_bytes(const struct launch_call *l, const void **bytes, size_t *size)
{
    if (is_old(l)) {
        *bytes = l->old ? l->old->bytes : NULL;
        *size = l->old ? l->old->size : 0;
        return l->old;
    }
    if (has_list(l))
        return read_extra(l->extra, bytes, size) && !l->parameters;
    const struct kernels_layout *layout = layout_of(l);
    if (!layout || (!l->change->gathered && !gather(l, layout)))
        return false;
    *bytes = l->change->room;
    *size = layout->size;
    return true;
}

// Counts each launch once.
static void count(const struct launch_call *l)
{
    if (!l->change->counted)
        guard_count(GUARD_LAUNCHES_LEFT);
    l->change->counted = true;
}

bool launch_call_parameters(const struct launch_call *l, const void **bytes, size_t *size)
{
    if (l->change && find_bytes(l, bytes, size))
        return true;
    *bytes = NULL;
    *size = 0;
    if (l->change)
        count(l);
    return false;
}

bool launch_call_word(const struct launch_call *l, const struct kernels_layout *layout, uint32_t i,
                      uint64_t *value)
{
    const struct kernels_parameter *p = &layout->parameter[i];
    const void *bytes;
    size_t size;
    if (!is_old(l) && !has_list(l)) {
        if (!l->parameters || !l->parameters[i])
            return false;
        memcpy(value, l->parameters[i], sizeof *value);
        return true;
    }
    if (!find_bytes(l, &bytes, &size) || size < sizeof *value || p->offset > size - sizeof *value)
        return false;
    memcpy(value, (const char *)bytes + p->offset, sizeof *value);
    return true;
}

// --- what modes make of it ---------------------------------------------------------------------------------

void launch_call_leave(const struct launch_call *l)
{
    count(l);
    l->change->left = true;
}

bool launch_call_replace(const struct launch_call *l, const void *function)
{
    if (!l->change || l->change->left)
        return false;
    struct kernel *instead = kernels_get(function);
    // Most replacements have been made before.
    bool known = instead && instead->handle != l->function && kernels_own(instead)->handle == l->function;
    struct kernel *own = known ? NULL : kernels_get(l->function);
    if ((!known && (!instead || !own)) || (is_old(l) && !l->old)) {
        launch_call_leave(l);
        return false;
    }
    if (!known)
        kernels_stands_for(instead, own);
    l->change->function = function;
    return true;
}

static size_t align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

// Computes where the program's parameters end in a buffer of that size: where the kernel's layout ends,
// because a program may round up. Returns false if the size is so different that the driver must judge it.
static bool own_end(const struct launch_call *l, size_t size, size_t *end)
{
    const struct kernels_layout *layout = layout_of(l);
    *end = layout ? layout->size : size;
    return size + 3 >= *end && size <= align_up(*end, 16);
}

// Computes how many pointers or bytes precede appended parameters. Returns false if that is unknown, or if
// there is no room.
static bool find_own(const struct launch_call *l, uint32_t *own)
{
    const struct kernels_layout *layout = layout_of(l);
    const void *bytes;
    size_t size, end;
    if (!is_old(l) && !has_list(l)) {
        *own = layout ? layout->count : 0;
        return layout ? l->parameters || !layout->count : !l->parameters;
    }
    if (!find_bytes(l, &bytes, &size) || !own_end(l, size, &end) ||
        end > LAUNCH_CALL_ROOM - LAUNCH_CALL_MORE_BYTES)
        return false;
    *own = (uint32_t)end;
    return true;
}

bool launch_call_append(const struct launch_call *l, const void *bytes, size_t size, size_t align)
{
    struct launch_change *c = l->change;
    if (!c || c->left)
        return false;
    size_t at = c->count ? c->at[c->count - 1] + c->size[c->count - 1] : 0;
    at = align_up(at, align);
    // 16 bytes are kept for padding before the first one.
    if (c->count == LAUNCH_CALL_MORE || size > LAUNCH_CALL_MORE_BYTES ||
        at + size > LAUNCH_CALL_MORE_BYTES - 16 || align > 16 || (!c->count && !find_own(l, &c->own))) {
        launch_call_leave(l);
        return false;
    }
    memcpy(c->more + at, bytes, size);
    c->at[c->count] = (uint16_t)at;
    c->size[c->count] = (uint16_t)size;
    c->align[c->count++] = (uint16_t)align;
    return true;
}

// --- the driver's call -------------------------------------------------------------------------------------

struct passed {
    CUfunction function;
    void **parameters, **extra;
    size_t size;
    void *list[5];
    void *pointers[KERNELS_PARAMETERS + LAUNCH_CALL_MORE];
};

int launch_call_pointers(const struct launch_call *l, void **to, size_t most)
{
    const struct launch_change *c = l->change;
    if (c->own + c->count > most)
        return -1;
    if (c->own)
        memcpy(to, l->parameters, c->own * sizeof *to);
    for (uint32_t i = 0; i < c->count; i++)
        to[c->own + i] = (char *)c->more + c->at[i];
    return (int)(c->own + c->count);
}

// Writes the program's bytes, followed by the appended parameters, into the room.
static void fill_room(const struct launch_call *l, struct passed *p)
{
    const struct launch_change *c = l->change;
    const void *bytes;
    size_t size;
    find_bytes(l, &bytes, &size);
    size_t end = c->count ? c->own : size, copied = size < end ? size : end;
    memcpy(c->room, bytes, copied);
    if (c->count)
        memset(c->room + copied, 0, end - copied + c->at[c->count - 1] + c->size[c->count - 1] + 16);
    for (unsigned i = 0; i < c->count; i++) {
        end = align_up(end, c->align[i]);
        memcpy(c->room + end, c->more + c->at[i], c->size[i]);
        end += c->size[i];
    }
    p->size = end;
    p->list[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    p->list[1] = c->room;
    p->list[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    p->list[3] = &p->size;
    p->list[4] = CU_LAUNCH_PARAM_END;
    p->parameters = NULL;
    p->extra = end ? p->list : NULL;
}

static void prepare(const struct launch_call *l, struct passed *p)
{
    const struct launch_change *c = l->change;
    p->function = c->function ? (CUfunction)c->function : l->function;
    p->parameters = l->parameters;
    p->extra = l->extra;
    if (is_old(l) || (c->count && has_list(l)))
        fill_room(l, p);
    else if (c->count && launch_call_pointers(l, p->pointers, sizeof p->pointers / sizeof *p->pointers) >= 0)
        p->parameters = p->pointers;
}

// Members that all versions of the struct have.
#define CHANGE(to, p)                         \
    do {                                      \
        (to)->kernelParams = (p)->parameters; \
        (to)->extra = (p)->extra;             \
    } while (0)

static void change_v1(const struct launch_call *l, const struct passed *p, CUDA_KERNEL_NODE_PARAMS_v1 *to)
{
    to->func = p->function;
    CHANGE(to, p);
}

// A kernel of a library has a member of its own.
static bool is_kernel(const struct launch_call *l)
{
    const struct kernel *k = kernels_find(l->change->function);
    return k && atomic_load_explicit(&k->kind, memory_order_acquire) == KERNELS_KERNEL;
}

static void change_v2(const struct launch_call *l, const struct passed *p, CUDA_KERNEL_NODE_PARAMS_v2 *to)
{
    bool kernel = is_kernel(l);
    if (l->change->function) {
        to->func = kernel ? NULL : p->function;
        to->kern = kernel ? (CUkernel)p->function : NULL;
    }
    CHANGE(to, p);
}

static void change_v3(const struct launch_call *l, const struct passed *p, CUDA_KERNEL_NODE_PARAMS_v3 *to)
{
    bool kernel = is_kernel(l);
    if (l->change->function) {
        to->func = kernel ? NULL : p->function;
        to->kern = kernel ? (CUkernel)p->function : NULL;
    }
    CHANGE(to, p);
}

static CUresult go_node(const struct launch_call *l, const struct passed *p)
{
    const struct driver *d = &guard.real;
    const struct launch_node *n = l->node;
    union {
        CUDA_KERNEL_NODE_PARAMS_v1 v1;
        CUDA_KERNEL_NODE_PARAMS_v2 v2;
        CUgraphNodeParams any;
    } u;
    switch (l->call) {
    case DRIVER_cuGraphAddKernelNode:
    case DRIVER_cuGraphKernelNodeSetParams:
    case DRIVER_cuGraphExecKernelNodeSetParams:
        memcpy(&u.v1, n->params, sizeof u.v1);
        change_v1(l, p, &u.v1);
        return n->made   ? d->cuGraphAddKernelNode(n->made, n->graph, n->after, n->count, &u.v1)
               : n->exec ? d->cuGraphExecKernelNodeSetParams(n->exec, n->node, &u.v1)
                         : d->cuGraphKernelNodeSetParams(n->node, &u.v1);
    case DRIVER_cuGraphAddKernelNode_v2:
    case DRIVER_cuGraphKernelNodeSetParams_v2:
    case DRIVER_cuGraphExecKernelNodeSetParams_v2:
        memcpy(&u.v2, n->params, sizeof u.v2);
        change_v2(l, p, &u.v2);
        return n->made   ? d->cuGraphAddKernelNode_v2(n->made, n->graph, n->after, n->count, &u.v2)
               : n->exec ? d->cuGraphExecKernelNodeSetParams_v2(n->exec, n->node, &u.v2)
                         : d->cuGraphKernelNodeSetParams_v2(n->node, &u.v2);
    default: break;
    }
    memcpy(&u.any, n->params, sizeof u.any);
    change_v3(l, p, &u.any.kernel);
    switch (l->call) {
    case DRIVER_cuGraphAddNode: return d->cuGraphAddNode(n->made, n->graph, n->after, n->count, &u.any);
    case DRIVER_cuGraphAddNode_v2:
        return d->cuGraphAddNode_v2(n->made, n->graph, n->after, n->edges, n->count, &u.any);
    case DRIVER_cuGraphNodeSetParams: return d->cuGraphNodeSetParams(n->node, &u.any);
    default: return d->cuGraphExecNodeSetParams(n->exec, n->node, &u.any);
    }
}

void launch_call_refuse(const struct launch_call *l, CUresult r)
{
    if (l->change && !l->change->refused)
        l->change->refused = r;
}

CUresult launch_call_go(const struct launch_call *l)
{
    const struct driver *d = &guard.real;
    struct passed p;
    if (l->change->refused)
        return l->change->refused;
    prepare(l, &p);
    if (l->node)
        return go_node(l, &p);
    const unsigned *g = l->grid, *b = l->block;
    switch (l->call) {
    case DRIVER_cuLaunchKernelEx: return d->cuLaunchKernelEx(l->config, p.function, p.parameters, p.extra);
    case DRIVER_cuLaunchKernelEx_ptsz:
        return d->cuLaunchKernelEx_ptsz(l->config, p.function, p.parameters, p.extra);
    case DRIVER_cuLaunchCooperativeKernel:
        return d->cuLaunchCooperativeKernel(p.function, g[0], g[1], g[2], b[0], b[1], b[2], l->shared,
                                            l->stream, p.parameters);
    case DRIVER_cuLaunchCooperativeKernel_ptsz:
        return d->cuLaunchCooperativeKernel_ptsz(p.function, g[0], g[1], g[2], b[0], b[1], b[2], l->shared,
                                                 l->stream, p.parameters);
    case DRIVER_cuLaunchKernel_ptsz:
        return d->cuLaunchKernel_ptsz(p.function, g[0], g[1], g[2], b[0], b[1], b[2], l->shared, l->stream,
                                      p.parameters, p.extra);
    default:
        return d->cuLaunchKernel(p.function, g[0], g[1], g[2], b[0], b[1], b[2], l->shared, l->stream,
                                 p.parameters, p.extra);
    }
}

bool launch_call_own(const void **handle, enum kernels_kind *kind)
{
    const struct kernel *k = kernels_find(*handle), *own = kernels_own(k);
    if (k == own)
        return false;
    *handle = own->handle;
    *kind = atomic_load_explicit(&own->kind, memory_order_acquire);
    return true;
}
