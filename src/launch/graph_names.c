// SPDX-License-Identifier: MIT
#include "launch/graph_names.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "core/lock.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "context/context.h"
#include "core/index.h"
#include "context/kernels.h"
#include "context/names.h"
#include "core/slab_pool.h"

enum {
    SETS = 1 << 13,  // distinct sets; graphs that come later are unknown
    SLOTS = 2 * SETS,
    MOST_NODES = 4096,  // nodes that are visited, including those of child graphs
    MOST_DEPTH = 8,
};

// Each set is kept once, as names.c keeps texts; a table of their numbers finds it again.
static struct lock lock = LOCK_INIT(GRAPHS);  // a leaf
static struct graph_names sets[SETS];
static uint32_t used = 1;  // number 0 means none
static uint32_t slots[SLOTS];
static const struct graph_names unknown = {.others = true};

struct exec {
    struct index_item handle;
    _Atomic(const struct graph_names *) names;
};

static struct index execs = INDEX_INIT;
static struct slab_pool pool = SLAB_POOL(struct exec);

static bool are_same(const struct graph_names *a, const struct graph_names *b)
{
    return a->count == b->count && a->others == b->others &&
           memcmp(a->name, b->name, a->count * sizeof *a->name) == 0;
}

static uint32_t hash(const struct graph_names *set)
{
    uint64_t h = set->others;
    for (uint32_t i = 0; i < set->count; i++)
        h = (h ^ (uintptr_t)set->name[i]) * 0x9e3779b97f4a7c15;
    return (uint32_t)(h >> 32);
}

static const struct graph_names *keep(const struct graph_names *set)
{
    const struct graph_names *kept = &unknown;
    lock_take(&lock);
    uint32_t at = hash(set) % SLOTS;
    while (slots[at] && !are_same(&sets[slots[at]], set))
        at = (at + 1) % SLOTS;
    if (slots[at]) {
        kept = &sets[slots[at]];
    } else if (used < SETS) {
        sets[used] = *set;
        kept = &sets[used];
        slots[at] = used++;
    }
    lock_give(&lock);
    return kept;
}

static bool is_full(const struct graph_names *set)
{
    return set->count == GRAPH_NAMES_MOST && set->others;
}

static void add(struct graph_names *set, const char *name)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->name[i] == name)
            return;
    if (name && set->count < GRAPH_NAMES_MOST)
        set->name[set->count++] = name;
    else
        set->others = true;
}

// --- what a graph holds -----------------------------------------------------------------------------------

static const char *name_of(CUfunction function, CUkernel kernel)
{
    const char *name = kernels_name(function ? (const void *)function : (const void *)kernel);
    const char *text = NULL;
    if (name)
        return name;
    if (function && guard.real.cuFuncGetName && !guard.real.cuFuncGetName(&text, function))
        return names_keep(text);
    if (!function && kernel && guard.real.cuKernelGetName && !guard.real.cuKernelGetName(&text, kernel))
        return names_keep(text);
    return NULL;
}

struct walk {
    struct graph_names *set;
    size_t nodes_left;
};

static void walk_graph(struct walk *w, CUgraph graph, unsigned depth);

static void walk_node(struct walk *w, CUgraphNode node, unsigned depth)
{
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_KERNEL_NODE_PARAMS p = {.func = NULL};
    CUgraph child = NULL;
    bool failed = guard.real.cuGraphNodeGetType(node, &type);
    if (failed || type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        w->set->others = true;  // the bodies of a conditional node cannot be listed
    else if (type == CU_GRAPH_NODE_TYPE_KERNEL)
        add(w->set, guard.real.cuGraphKernelNodeGetParams_v2(node, &p) ? NULL : name_of(p.func, p.kern));
    else if (type != CU_GRAPH_NODE_TYPE_GRAPH)
        return;
    else if (guard.real.cuGraphChildGraphNodeGetGraph(node, &child))
        w->set->others = true;
    else
        walk_graph(w, child, depth + 1);
}

// The driver can only list all nodes at once.
static void walk_graph(struct walk *w, CUgraph graph, unsigned depth)
{
    size_t count = 0;
    if (depth > MOST_DEPTH || guard.real.cuGraphGetNodes(graph, NULL, &count) || count > w->nodes_left) {
        w->set->others = true;
        return;
    }
    if (!count)
        return;
    w->nodes_left -= count;
    size_t bytes = count * sizeof(CUgraphNode);
    CUgraphNode *nodes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED) {
        w->set->others = true;
        return;
    }
    if (guard.real.cuGraphGetNodes(graph, nodes, &count))
        w->set->others = true;
    else
        for (size_t i = 0; i < count && !is_full(w->set); i++)
            walk_node(w, nodes[i], depth);
    munmap(nodes, bytes);
}

static void add_graph(struct graph_names *set, CUgraph graph)
{
    const struct driver *d = &guard.real;
    struct walk w = {set, MOST_NODES};
    if (!d->cuGraphGetNodes || !d->cuGraphNodeGetType || !d->cuGraphKernelNodeGetParams_v2 ||
        !d->cuGraphChildGraphNodeGetGraph) {
        set->others = true;
        return;
    }
    CUstreamCaptureMode mode = context_capture_relax();
    walk_graph(&w, graph, 0);
    context_capture_restore(mode);
}

// --- executable graphs ------------------------------------------------------------------------------------

static void release(struct epoch_node *node)
{
    slab_pool_put(&pool, (char *)node - offsetof(struct exec, handle.retired));
}

// Sets the names of an executable graph; a handle that is reused has an entry already.
static void set_names(CUgraphExec handle, const struct graph_names *names)
{
    unsigned section = epoch_enter();
    struct exec *e = (struct exec *)index_find(&execs, (uintptr_t)handle);
    // Release: pairs with the acquire in graph_names_of, so that a thread that sees the set sees its
    // contents.
    if (e)
        atomic_store_explicit(&e->names, names, memory_order_release);
    epoch_leave(section);
    if (e || !(e = slab_pool_get(&pool)))
        return;
    e->handle = (struct index_item){.base = (uintptr_t)handle};
    atomic_init(&e->names, names);
    if (index_insert(&execs, &e->handle))
        slab_pool_put(&pool, e);
}

void graph_names_made(CUgraphExec exec, CUgraph graph)
{
    struct graph_names set = {.count = 0};
    add_graph(&set, graph);
    set_names(exec, keep(&set));
}

void graph_names_add_kernel(CUgraphExec exec, CUfunction function, CUkernel kernel)
{
    const struct graph_names *old = graph_names_of(exec);
    struct graph_names set = *old;
    CUstreamCaptureMode mode = context_capture_relax();
    add(&set, name_of(function, kernel));
    context_capture_restore(mode);
    if (!are_same(&set, old))
        set_names(exec, keep(&set));
}

void graph_names_add_graph(CUgraphExec exec, CUgraph graph)
{
    const struct graph_names *old = graph_names_of(exec);
    struct graph_names set = *old;
    add_graph(&set, graph);
    if (!are_same(&set, old))
        set_names(exec, keep(&set));
}

void graph_names_forget(CUgraphExec exec)
{
    struct index_item *old = index_remove(&execs, (uintptr_t)exec);
    if (old)
        epoch_retire(&old->retired, release);
}

const struct graph_names *graph_names_of(CUgraphExec exec)
{
    unsigned section = epoch_enter();
    struct exec *e = (struct exec *)index_find(&execs, (uintptr_t)exec);
    const struct graph_names *names = e ? atomic_load_explicit(&e->names, memory_order_acquire) : &unknown;
    epoch_leave(section);
    return names;
}

const struct graph_names *graph_names_from(const void *p)
{
    uintptr_t at = (uintptr_t)p;
    return p == &unknown || (at >= (uintptr_t)sets && at < (uintptr_t)(sets + SETS)) ? p : NULL;
}

void graph_names_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
    index_after_fork(&execs);
}
