// SPDX-License-Identifier: MIT
// Kernel nodes. The kernel is looked up again at each launch, as its module may be unloaded.
#include <string.h>

#include "cpu/graphs.h"

static CUfunction handle_of(const struct graph_kernel *k)
{
    return k->kern ? (CUfunction)(void *)k->kern : k->func;
}

static CUresult find(const struct graph_kernel *k, struct launch_request *q)
{
    if (!atomic_load_explicit(&k->ctx->alive, memory_order_acquire))  // partner: cpu_context_start
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *q = (struct launch_request){
        .ctx = k->ctx,
        .grid = {k->grid[0], k->grid[1], k->grid[2]},
        .block = {k->block[0], k->block[1], k->block[2]},
        .shared = k->shared,
    };
    CUresult r = function_get(handle_of(k), k->ctx, true, &q->f);
    CUevent event;
    for (size_t i = 0; i < k->attributes.len && !r; i++)
        r = launch_attribute(q, &k->attributes.items[i], &event);
    return r ? r : launch_check(q);
}

// Copies the parameters; the bytes and the pointers to them are one allocation.
static CUresult keep_params(struct graph_kernel *k, const struct exec_kernel *e)
{
    k->nparams = e->nparams;
    k->size = e->param_size;
    size_t pointers = e->nparams * sizeof *k->pointers;
    k->pointers = mem_zalloc(1, pointers + k->size + 1);
    if (!k->pointers)
        return CUDA_ERROR_OUT_OF_MEMORY;
    k->bytes = (char *)k->pointers + pointers;
    for (uint32_t i = 0; i < e->nparams; i++)
        k->pointers[i] = k->bytes + e->params[i].offset;
    return CUDA_SUCCESS;
}

static CUresult take_attributes(struct graph_kernel *k, struct launch_request *q,
                                const CUlaunchAttribute *attributes, unsigned count)
{
    CUevent event;
    for (unsigned i = 0; i < count; i++) {
        CUresult r = launch_attribute(q, &attributes[i], &event);
        if (r)
            return r;
        if (vec_push(&k->attributes, attributes[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    k->cooperative = q->cooperative;
    return CUDA_SUCCESS;
}

CUresult graph_kernel_make(struct graph_kernel *k, const CUDA_KERNEL_NODE_PARAMS_v3 *p,
                           const CUlaunchAttribute *attributes, unsigned count)
{
    *k = (struct graph_kernel){
        .func = p->func,
        .kern = p->kern,
        .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
        .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
        .shared = p->sharedMemBytes,
    };
    CUcontext named = p->ctx;
    if (!named && handle_is(p->func, HANDLE_FUNCTION))
        named = p->func->module->ctx;
    struct launch_request q;
    CUresult r = graph_work_context(named, &k->ctx);
    if (!r)
        r = find(k, &q);
    if (r)
        return r;
    q.params = p->kernelParams;
    q.extra = p->extra;
    r = keep_params(k, q.f->kernel);
    if (!r)
        r = launch_pack(&q, k->bytes);
    if (!r)
        r = take_attributes(k, &q, attributes, count);
    if (r)
        graph_kernel_free(k);
    return r;
}

CUresult graph_kernel_copy(struct graph_kernel *to, const struct graph_kernel *from)
{
    *to = *from;
    memset(&to->attributes, 0, sizeof to->attributes);
    size_t pointers = from->nparams * sizeof *from->pointers;
    to->pointers = mem_alloc(pointers + from->size + 1);
    if (!to->pointers || vec_reserve(&to->attributes, from->attributes.len)) {
        mem_free(to->pointers);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    to->bytes = (char *)to->pointers + pointers;
    memcpy(to->bytes, from->bytes, from->size);
    for (uint32_t i = 0; i < from->nparams; i++)
        to->pointers[i] = to->bytes + ((char *)from->pointers[i] - from->bytes);
    for (size_t i = 0; i < from->attributes.len; i++)
        to->attributes.items[to->attributes.len++] = from->attributes.items[i];
    return CUDA_SUCCESS;
}

void graph_kernel_free(struct graph_kernel *k)
{
    mem_free(k->pointers);
    vec_free(&k->attributes);
}

void graph_kernel_params(const struct graph_kernel *k, CUDA_KERNEL_NODE_PARAMS_v3 *out)
{
    *out = (CUDA_KERNEL_NODE_PARAMS_v3){
        .func = k->func,
        .gridDimX = k->grid[0],
        .gridDimY = k->grid[1],
        .gridDimZ = k->grid[2],
        .blockDimX = k->block[0],
        .blockDimY = k->block[1],
        .blockDimZ = k->block[2],
        .sharedMemBytes = k->shared,
        .kernelParams = k->nparams ? k->pointers : NULL,
        .kern = k->kern,
        .ctx = k->ctx,
    };
}

CUresult graph_kernel_op(const struct graph_kernel *k, struct pool_op **out)
{
    struct launch_request q;
    CUresult r = find(k, &q);
    // Another kernel may have the same handle by now.
    if (!r && q.f->kernel->param_size != k->size)
        r = CUDA_ERROR_INVALID_HANDLE;
    q.packed = k->bytes;
    return r ? r : launch_op(&q, out);
}

const char *graph_kernel_name(const struct graph_kernel *k)
{
    const char *name = NULL;
    CUfunction f = handle_of(k);
    if (handle_is(f, HANDLE_FUNCTION))
        return f->name;
    return k->kern || handle_is(f, HANDLE_KERNEL) ? cuKernelGetName(&name, (CUkernel)(void *)f) ? NULL : name
                                                  : NULL;
}

// --- attributes --------------------------------------------------------------------------------------------

static CUresult enter(CUgraphNode n)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (graph_node_is(n) && n->work.type == CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_SUCCESS;
    graph_leave();
    return CUDA_ERROR_INVALID_VALUE;
}

static CUlaunchAttribute *find_attribute(struct graph_kernel *k, CUlaunchAttributeID id)
{
    for (size_t i = 0; i < k->attributes.len; i++) {
        if (k->attributes.items[i].id == id)
            return &k->attributes.items[i];
    }
    return NULL;
}

static CUresult set(struct graph_kernel *k, const CUlaunchAttribute *a)
{
    struct launch_request q = {.grid = {k->grid[0], k->grid[1], k->grid[2]}, .cooperative = k->cooperative};
    CUevent event = NULL;
    CUresult r = launch_attribute(&q, a, &event);
    if (r || event)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    CUlaunchAttribute *at = find_attribute(k, a->id);
    if (!at && vec_push(&k->attributes, *a))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (at)
        *at = *a;
    k->cooperative = q.cooperative;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue *value)
{
    CUresult r = enter(n);
    if (r)
        return r;
    CUlaunchAttribute a = {.id = id};
    if (value)
        a.value = *value;
    r = value ? set(&n->work.kernel, &a) : CUDA_ERROR_INVALID_VALUE;
    graph_leave();
    return r;
}

static CUresult get(struct graph_kernel *k, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    const CUlaunchAttribute *a = find_attribute(k, id);
    memset(value, 0, sizeof *value);
    if (a)
        *value = a->value;
    else if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        value->memSyncDomainMap.remote = 1;
    // An attribute that the node does not have is valid if another node could have it.
    struct launch_request q = {.grid = {1, 1, 1}};
    CUlaunchAttribute none = {.id = id};
    CUevent event;
    return a || launch_attribute(&q, &none, &event) != CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS
                                                                                : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    CUresult r = enter(n);
    if (r)
        return r;
    r = value ? get(&n->work.kernel, id, value) : CUDA_ERROR_INVALID_VALUE;
    graph_leave();
    return r;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
    CUresult r = enter(to);
    if (r)
        return r;
    if (!graph_node_is(from) || from->work.type != CU_GRAPH_NODE_TYPE_KERNEL)
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; !r && to != from && i < from->work.kernel.attributes.len; i++)
        r = set(&to->work.kernel, &from->work.kernel.attributes.items[i]);
    graph_leave();
    return r;
}
