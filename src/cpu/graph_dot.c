// SPDX-License-Identifier: MIT
// Prints a graph in the language of Graphviz.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/out.h"
#include "cpu/graphs.h"

static const char *const type_names[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = "kernel",
    [CU_GRAPH_NODE_TYPE_MEMCPY] = "memcpy",
    [CU_GRAPH_NODE_TYPE_MEMSET] = "memset",
    [CU_GRAPH_NODE_TYPE_HOST] = "host",
    [CU_GRAPH_NODE_TYPE_GRAPH] = "graph",
    [CU_GRAPH_NODE_TYPE_EMPTY] = "empty",
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "wait for event",
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "record event",
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "allocate",
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = "free",
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "memory words",
    [CU_GRAPH_NODE_TYPE_CONDITIONAL] = "conditional",
};

static bool wants(unsigned flags, unsigned what)
{
    return flags & (what | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

static void kernel(struct out *o, const struct graph_kernel *k, unsigned flags)
{
    const char *name = graph_kernel_name(k);
    out_lit(o, "\\n");
    out_cstr(o, name ? name : "(gone)");
    if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        out_fmt(o, "\\n<<<(%u,%u,%u), (%u,%u,%u), %u>>>", k->grid[0], k->grid[1], k->grid[2], k->block[0],
                k->block[1], k->block[2], k->shared);
}

static void details(struct out *o, const struct graph_work *w, unsigned flags)
{
    switch ((int)w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: kernel(o, &w->kernel, flags); break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
            out_fmt(o, "\\n0x%llx from 0x%llx, %zu x %zu x %zu bytes", (unsigned long long)w->copy.job.dst.at,
                    (unsigned long long)w->copy.job.src.at, w->copy.job.width, w->copy.job.height,
                    w->copy.job.depth);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
            out_fmt(o, "\\n0x%llx = 0x%x, %zu x %zu of %u bytes", (unsigned long long)w->fill.params.dst,
                    w->fill.params.value, w->fill.params.width, w->fill.params.height,
                    w->fill.params.elementSize);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
            out_fmt(o, "\\n0x%llx, %zu bytes", w->alloc.params.dptr, w->alloc.params.bytesize);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
            out_fmt(o, "\\n0x%llx", (unsigned long long)w->freed->node.base);
        break;
    default: break;
    }
}

static void node(struct out *o, const struct CUgraphNode_st *n, unsigned flags)
{
    out_fmt(o, "    n%llu [label=\"%llu %s", (unsigned long long)n->id, (unsigned long long)n->index,
            type_names[n->work.type]);
    if (wants(flags, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        out_fmt(o, "\\n%p", (const void *)n);
    details(o, &n->work, flags);
    out_lit(o, "\"];\n");
    for (size_t i = 0; i < n->out.len; i++)
        out_fmt(o, "    n%llu -> n%llu%s;\n", (unsigned long long)n->id,
                (unsigned long long)n->out.items[i].node->id,
                n->out.items[i].data.type ? " [style=dashed]" : "");
}

static void cluster(struct out *o, struct CUgraph_st *g, unsigned flags)
{
    graph_order_number(g);
    out_fmt(o, "    subgraph cluster_%llu {\n    label=\"graph %llu\";\n", (unsigned long long)g->id,
            (unsigned long long)g->id);
    for (const struct CUgraphNode_st *n = g->first; n; n = n->next)
        node(o, n, flags);
    out_lit(o, "    }\n");
    for (const struct CUgraphNode_st *n = g->first; n; n = n->next) {
        if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
            cluster(o, n->work.child, flags);
        for (unsigned i = 0; n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < n->work.choice.size; i++)
            cluster(o, n->work.choice.bodies[i], flags);
    }
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

static CUresult write_file(const char *path, const struct out *o)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    bool good = write_all(fd, o->buf, o->len);
    return close(fd) || !good ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph g, const char *path, unsigned int flags)
{
    struct out o;
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_is(g) || !path)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (out_to_memory(&o))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r) {
        out_lit(&o, "digraph {\n    node [shape=box];\n");
        cluster(&o, g, flags);
        out_lit(&o, "}\n");
    }
    graph_leave();
    if (r)
        return r;
    r = o.error ? CUDA_ERROR_OUT_OF_MEMORY : write_file(path, &o);
    out_close(&o);
    return r;
}
