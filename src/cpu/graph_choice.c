// SPDX-License-Identifier: MIT
// Conditional nodes and the words that decide.
//
// The word lies in device memory, so that the store of a kernel is seen by all work behind it. The
// executables of a graph share its words: kernels have their addresses as parameters.
#include "cpu/graphs.h"
#include "exec/space.h"

enum { WORD = 16, MOST_BODIES = 1 << 16 };

static uint32_t *word(const struct graph_condition *c)
{
    return (uint32_t *)(void *)space_host(c->word);
}

void graph_choice_drop(struct graph_condition *c)
{
    if (--c->refs)
        return;
    memory_internal_free(c->word);
    mem_free(c);
}

static struct graph_condition *find(const struct CUgraph_st *g, CUgraphConditionalHandle handle)
{
    for (size_t i = 0; i < g->conditions.len; i++) {
        if (g->conditions.items[i]->word == handle)
            return g->conditions.items[i];
    }
    return NULL;
}

static CUresult add(struct CUgraph_st *g, struct CUctx_st *ctx, unsigned initial, unsigned flags,
                    CUgraphConditionalHandle *out)
{
    struct graph_condition *c = mem_zalloc(1, sizeof *c);
    if (c)
        c->word = memory_internal_alloc(WORD, WORD);
    if (!c || !c->word || vec_push(&g->conditions, c)) {
        if (c && c->word)
            memory_internal_free(c->word);
        mem_free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->initial = initial;
    c->flags = flags;
    c->ctx = ctx;
    c->refs = 1;
    c->graph = g->id;
    *out = c->word;
    return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph g, CUcontext named,
                                        unsigned int initial, unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!out || !graph_is(g) || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = graph_work_context(named, &ctx);
    if (!r)
        r = add(g, ctx, initial, flags, out);
    graph_leave();
    return r;
}

// --- nodes -------------------------------------------------------------------------------------------------

static CUresult make_bodies(struct graph_choice *c)
{
    c->bodies = mem_zalloc(c->size, sizeof *c->bodies);
    if (!c->bodies)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < c->size; i++) {
        c->bodies[i] = graph_make_new(false);
        if (!c->bodies[i])
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static void free_bodies(struct graph_choice *c)
{
    for (unsigned i = 0; c->bodies && i < c->size; i++)
        graph_make_free(c->bodies[i]);
    mem_free(c->bodies);
}

static bool good_size(CUgraphConditionalNodeType type, unsigned size)
{
    switch ((int)type) {
    case CU_GRAPH_COND_TYPE_IF: return size == 1 || size == 2;
    case CU_GRAPH_COND_TYPE_WHILE: return size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH: return size && size <= MOST_BODIES;
    default: return false;
    }
}

CUresult graph_choice_make(struct graph_choice *c, const struct CUgraph_st *g,
                           CUDA_CONDITIONAL_NODE_PARAMS *p)
{
    struct graph_condition *found = NULL;
    for (; g && !found; g = g->owner ? g->owner->graph : NULL)
        found = find(g, p->handle);
    if (!found || found->used || !good_size(p->type, p->size))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *ctx;
    CUresult r = graph_work_context(p->ctx, &ctx);
    if (!r && ctx != found->ctx)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    *c = (struct graph_choice){.condition = found, .type = p->type, .ctx = ctx, .size = p->size};
    r = make_bodies(c);
    if (r) {
        free_bodies(c);
        return r;
    }
    found->refs++;
    found->used = true;
    p->phGraph_out = c->bodies;
    return CUDA_SUCCESS;
}

CUresult graph_choice_copy(struct graph_choice *to, const struct graph_choice *from, bool of_exec)
{
    *to = *from;
    to->bodies = mem_zalloc(to->size, sizeof *to->bodies);
    CUresult r = to->bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < to->size && !r; i++)
        r = graph_make_copy(from->bodies[i], of_exec, &to->bodies[i]);
    if (r)
        free_bodies(to);
    else
        to->condition->refs++;
    return r;
}

void graph_choice_free(struct graph_choice *c)
{
    free_bodies(c);
    graph_choice_drop(c->condition);
}

// --- at run time -------------------------------------------------------------------------------------------

// Pairs with the kernels' own accesses.
void graph_choice_begin(const struct CUgraph_st *g)
{
    for (size_t i = 0; i < g->conditions.len; i++) {
        const struct graph_condition *c = g->conditions.items[i];
        if (c->flags & CU_GRAPH_COND_ASSIGN_DEFAULT)
            __atomic_store_n(word(c), c->initial, __ATOMIC_SEQ_CST);
    }
}

int graph_choice_body(const struct graph_choice *c)
{
    uint32_t value = __atomic_load_n(word(c->condition), __ATOMIC_ACQUIRE);
    switch (c->type) {
    case CU_GRAPH_COND_TYPE_IF: return value ? 0 : c->size == 2 ? 1 : -1;
    case CU_GRAPH_COND_TYPE_WHILE: return value ? 0 : -1;
    default: return value < c->size ? (int)value : -1;
    }
}
