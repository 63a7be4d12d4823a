// SPDX-License-Identifier: MIT
// Orders and paths in graphs.
#include "cpu/graphs.h"

void graph_order_number(struct CUgraph_st *g)
{
    size_t i = 0;
    for (struct CUgraphNode_st *n = g->first; n; n = n->next)
        n->index = i++;
}

// order[0 .. ready) are in order; the edges of order[done .. ready) have not been walked yet.
CUresult graph_order_make(struct CUgraph_st *g, struct CUgraphNode_st **bad)
{
    struct CUgraphNode_st **order = mem_zalloc(g->count + 1, sizeof *order);
    size_t ready = 0;
    if (!order)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (struct CUgraphNode_st *n = g->first; n; n = n->next) {
        n->waits = n->in.len;
        if (!n->waits)
            order[ready++] = n;
    }
    for (size_t done = 0; done < ready; done++) {
        const struct CUgraphNode_st *n = order[done];
        for (size_t i = 0; i < n->out.len; i++) {
            if (!--n->out.items[i].node->waits)
                order[ready++] = n->out.items[i].node;
        }
    }
    if (ready < g->count) {
        for (struct CUgraphNode_st *n = g->first; n; n = n->next)
            *bad = n->waits ? n : *bad;
        mem_free(order);
        return CUDA_ERROR_INVALID_VALUE;
    }
    mem_free(g->order);
    g->order = order;
    return CUDA_SUCCESS;
}

CUresult graph_order_mark(struct CUgraphNode_st *n, uint64_t mark)
{
    VEC(struct CUgraphNode_st *) todo = {0};
    if (vec_push(&todo, n))
        return CUDA_ERROR_OUT_OF_MEMORY;
    n->mark = mark;
    while (todo.len) {
        n = todo.items[--todo.len];
        if (vec_reserve(&todo, n->in.len)) {
            vec_free(&todo);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        for (size_t i = 0; i < n->in.len; i++) {
            struct CUgraphNode_st *from = n->in.items[i].node;
            if (from->mark != mark)
                todo.items[todo.len++] = from;
            from->mark = mark;
        }
    }
    vec_free(&todo);
    return CUDA_SUCCESS;
}
