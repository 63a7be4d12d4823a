// SPDX-License-Identifier: MIT
// User objects: objects of the application that graphs and executables keep alive. Their destructors are
// called when no lock is held.
#include <limits.h>

#include "cpu/graphs.h"

struct CUuserObject_st {
    _Alignas(16) void *pointer;
    CUhostFn destroy;
    uint64_t own, held;            // references of the application and of graphs
    struct CUuserObject_st *next;  // in the list of the dead
};

static struct CUuserObject_st *dead;

// Moves an object without references to the list of the dead.
static void retire_if_unused(struct CUuserObject_st *o)
{
    if (o->own || o->held)
        return;
    handle_remove(o);
    o->next = dead;
    dead = o;
}

void graph_object_reap(void)
{
    struct CUuserObject_st *o = dead;
    dead = NULL;
    capture_unlock();
    while (o) {
        struct CUuserObject_st *next = o->next;
        o->destroy(o->pointer);
        mem_free(o);
        o = next;
    }
}

// --- references of graphs ----------------------------------------------------------------------------------

static struct graph_object_hold *find(struct CUgraph_st *g, const struct CUuserObject_st *o)
{
    for (size_t i = 0; i < g->objects.len; i++) {
        if (g->objects.items[i].object == o)
            return &g->objects.items[i];
    }
    return NULL;
}

CUresult graph_object_copy(struct CUgraph_st *to, const struct CUgraph_st *from)
{
    if (vec_reserve(&to->objects, from->objects.len))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < from->objects.len; i++) {
        from->objects.items[i].object->held++;
        to->objects.items[to->objects.len++] = (struct graph_object_hold){from->objects.items[i].object, 1};
    }
    return CUDA_SUCCESS;
}

void graph_object_free(struct CUgraph_st *g)
{
    for (size_t i = 0; i < g->objects.len; i++) {
        g->objects.items[i].object->held -= g->objects.items[i].count;
        retire_if_unused(g->objects.items[i].object);
    }
    vec_free(&g->objects);
}

static bool any_below(const struct CUgraphNode_st *n)
{
    if (n->work.type == CU_GRAPH_NODE_TYPE_GRAPH)
        return graph_object_any(n->work.child);
    for (unsigned i = 0; n->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < n->work.choice.size; i++) {
        if (graph_object_any(n->work.choice.bodies[i]))
            return true;
    }
    return false;
}

bool graph_object_any(const struct CUgraph_st *g)
{
    if (g->objects.len)
        return true;
    for (const struct CUgraphNode_st *n = g->first; n; n = n->next) {
        if (any_below(n))
            return true;
    }
    return false;
}

// --- calls -------------------------------------------------------------------------------------------------

static bool good_count(unsigned count)
{
    return count && count <= INT_MAX;
}

CUresult cuUserObjectCreate(CUuserObject *out, void *pointer, CUhostFn destroy, unsigned int count,
                            unsigned int flags)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    struct CUuserObject_st *o = NULL;
    if (!out || !destroy || !good_count(count) || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (!(o = mem_zalloc(1, sizeof *o)) || handle_add(o, HANDLE_USER_OBJECT))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        mem_free(o);
    } else {
        o->pointer = pointer;
        o->destroy = destroy;
        o->own = count;
        *out = o;
    }
    graph_leave();
    return r;
}

static bool is(CUuserObject o)
{
    return handle_is(o, HANDLE_USER_OBJECT);
}

CUresult cuUserObjectRetain(CUuserObject o, unsigned int count)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!is(o) || !good_count(count))
        r = CUDA_ERROR_INVALID_VALUE;
    else
        o->own += count;
    graph_leave();
    return r;
}

CUresult cuUserObjectRelease(CUuserObject o, unsigned int count)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!is(o) || !good_count(count) || count > o->own) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        o->own -= count;
        retire_if_unused(o);
    }
    graph_leave();
    return r;
}

static void give_back(struct CUgraph_st *g, struct graph_object_hold *hold, unsigned count)
{
    struct CUuserObject_st *o = hold->object;
    hold->count -= count;
    if (!hold->count)
        *hold = g->objects.items[--g->objects.len];
    o->held -= count;
    retire_if_unused(o);
}

static CUresult retain(struct CUgraph_st *g, struct CUuserObject_st *o, unsigned count, bool move)
{
    struct graph_object_hold *hold = find(g, o);
    if (hold && hold->count > INT_MAX - count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!hold && vec_push(&g->objects, (struct graph_object_hold){o, 0}))
        return CUDA_ERROR_OUT_OF_MEMORY;
    hold = hold ? hold : &g->objects.items[g->objects.len - 1];
    hold->count += count;
    o->held += count;
    if (move)
        o->own -= count;
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph g, CUuserObject o, unsigned int count, unsigned int flags)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    if (!graph_is(g) || !is(o) || !good_count(count) || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (flags && count > o->own)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        r = retain(g, o, count, flags);
    graph_leave();
    return r;
}

// Releasing an object that the graph does not hold has no effect, as on an H200.
CUresult cuGraphReleaseUserObject(CUgraph g, CUuserObject o, unsigned int count)
{
    CUresult r = graph_enter();
    if (r)
        return r;
    bool good = graph_is(g) && is(o) && good_count(count);
    struct graph_object_hold *hold = good ? find(g, o) : NULL;
    if (!good)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (hold)
        give_back(g, hold, count < hold->count ? count : hold->count);
    graph_leave();
    return r;
}
