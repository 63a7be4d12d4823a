// SPDX-License-Identifier: MIT
#include "check/check_graph.h"

#include <stdatomic.h>
#include <string.h>

#include <xxhash.h>

#include "base/mem.h"
#include "check/check_apart.h"
#include "check/check_graph_list.h"
#include "check/check_host.h"
#include "check/check_kernel.h"
#include "check/check_launch.h"
#include "context/context.h"
#include "context/kernels.h"
#include "core/guard.h"
#include "core/lock.h"
#include "track/guard_report.h"
#include "track/track.h"

enum {
    CHAINS = 256,
    MOST_CAPTURED = 4096,
};

// What a node runs.
enum runs { RUNS_FULL, RUNS_REST, RUNS_BARE, RUNS_COUNT };

// A kernel node of an executable graph. `set` is a hash of the kernel and the hidden parameter that the
// driver was given last, so that equal ones are not set again; 0: not known.
struct node {
    CUgraphNode handle;
    const struct kernel *own;  // the program's kernel
    const struct check_kernel *kernel;
    unsigned grid[3], block[3], shared;
    CUcontext context;
    uint64_t launch;  // kcheck_hidden.launch of the node's first setting
    uint64_t set;
    enum runs runs;
    bool failed;  // a proof has not held once
    bool rigid;   // its blocks run together
    size_t size;
    char *bytes;  // the program's parameters
};

// An executable graph that is kept up to date. All members are protected by the lock.
struct exec {
    struct exec *next;
    CUgraphExec handle;
    CUgraph graph;
    struct check_graph_list list;  // of the graph, when it was instantiated
    bool destroyed;                // the program has destroyed the graph
    uint64_t losses;               // of track.h: when all nodes were looked at
    uint64_t runs[RUNS_COUNT];
    size_t nnodes;
    struct node *nodes;
};

static struct lock lock = LOCK_INIT(CHECK_GRAPHS);
static struct exec *chains[CHAINS];
// Of executable graphs. Written under the lock; relaxed, since a thread that uses a graph got it from the one
// that made it.
static _Atomic size_t count;

void check_graph_after_fork(void)
{
    lock_after_fork(&lock);
}

// Requires the lock, as do all functions below that take a struct exec or struct node. Returns the place of
// an executable graph in its chain; NULL is there if it is not kept.
static struct exec **place_of(CUgraphExec handle)
{
    struct exec **at = &chains[(uintptr_t)handle / 16 * 0x9e3779b97f4a7c15u >> 56];
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static struct node *find_node(const struct exec *e, CUgraphNode handle)
{
    for (size_t i = 0; e && i < e->nnodes; i++)
        if (e->nodes[i].handle == handle)
            return &e->nodes[i];
    return NULL;
}

static void free_exec(struct exec *e)
{
    for (size_t i = 0; i < e->nnodes; i++)
        mem_free(e->nodes[i].bytes);
    check_graph_list_free(&e->list);
    mem_free(e->nodes);
    mem_free(e);
}

// --- setting a node ----------------------------------------------------------------------------------------

static struct launch_call call_of(const struct node *n)
{
    return (struct launch_call){.call = DRIVER_cuGraphExecKernelNodeSetParams_v2,
                                .grid = {n->grid[0], n->grid[1], n->grid[2]},
                                .block = {n->block[0], n->block[1], n->block[2]},
                                .shared = n->shared,
                                .function = (CUfunction)n->own->handle};
}

// What a node is set to.
struct choice {
    enum runs runs;
    const void *handle;
    const struct pass_check_variant *about;  // NULL: no hidden parameter
    struct check_hidden hidden;
};

static size_t hidden_size(const struct choice *c)
{
    return c->about ? KCHECK_HIDDEN + c->about->npairs * sizeof *c->hidden.pairs : 0;
}

static uint64_t hash_of(const struct choice *c)
{
    uint64_t hash = XXH3_64bits_withSeed(&c->hidden, hidden_size(c), (uintptr_t)c->handle);
    return hash ? hash : 1;
}

static void choose_variant(struct choice *c, struct node *n, enum runs runs, bool bounds)
{
    n->kernel = check_apart_want(n->own->handle, n->kernel, runs == RUNS_REST);
    const struct pass_check_kernel *checks = n->kernel->checks;
    c->runs = runs;
    c->handle = runs == RUNS_REST ? n->kernel->rest.handle : n->kernel->full.handle;
    c->about = runs == RUNS_REST ? &checks->rest : &checks->full;
    c->hidden.head = (struct kcheck_hidden){n->launch, 0};
    if (bounds)
        check_kernel_pairs(c->about, n->bytes, n->size, c->hidden.pairs);
    else
        memset(c->hidden.pairs, 0, c->about->npairs * sizeof *c->hidden.pairs);
}

// Chooses what the node has to run with the buffers as they are now.
static void choose(struct choice *c, struct node *n)
{
    const struct launch_call l = call_of(n);
    const struct check_kernel *k = n->kernel;
    bool both = guard.options.proofs == OPTION_PROOFS_CHECK;
    enum check_proved proved = check_kernel_proved(&l, k, n->bytes, n->size, NULL, NULL);
    n->failed |= proved == CHECK_PROVED_NOTHING;
    // An error of an earlier run, which was not proved, may not have been read yet.
    if (both)
        check_launch_set_proved(n->launch, k->prove, n->failed ? CHECK_PROVED_NOTHING : proved);
    if (proved == CHECK_PROVED_ALL && !both)
        *c = (struct choice){.runs = RUNS_BARE, .handle = n->own->handle};
    else if (proved && !both && !n->rigid && (k = check_apart_want(n->own->handle, k, true))->rest.handle &&
             check_kernel_fits(&l, &k->rest, k->checks->rest.npairs))
        choose_variant(c, n, RUNS_REST, true);
    else
        choose_variant(c, n, RUNS_FULL, true);
}

// Sets the node in the driver. Returns false if it refused.
static bool set_node(const struct exec *e, struct node *n, struct choice *c)
{
    void *pointers[KERNELS_PARAMETERS + 1];
    const struct pass_check_kernel *checks = n->kernel->checks;
    bool kernel = atomic_load_explicit(&n->own->kind, memory_order_acquire) == KERNELS_KERNEL;
    for (uint32_t i = 0; i < checks->nparams; i++)
        pointers[i] = n->bytes + checks->params[i].offset;
    pointers[checks->nparams] = c->about ? &c->hidden : NULL;
    const CUDA_KERNEL_NODE_PARAMS p = {
        .func = kernel ? NULL : (CUfunction)c->handle,
        .kern = kernel ? (CUkernel)c->handle : NULL,
        .ctx = n->context,
        .gridDimX = n->grid[0],
        .gridDimY = n->grid[1],
        .gridDimZ = n->grid[2],
        .blockDimX = n->block[0],
        .blockDimY = n->block[1],
        .blockDimZ = n->block[2],
        .sharedMemBytes = n->shared,
        .kernelParams = pointers,
    };
    if (guard.real.cuGraphExecKernelNodeSetParams_v2(e->handle, n->handle, &p))
        return false;
    n->runs = c->runs;
    n->set = hash_of(c);
    return true;
}

static void count_runs(struct exec *e)
{
    memset(e->runs, 0, sizeof e->runs);
    for (size_t i = 0; i < e->nnodes; i++)
        e->runs[e->nodes[i].runs]++;
}

// A node that cannot be set keeps what it had, which may miss an access of a freed buffer.
static void note_refused(const struct node *n)
{
    static _Atomic bool noted;
    const char *name = kernels_name(n->own->handle);
    guard_count(GUARD_CHECK_UNFIT);
    // Relaxed: the note itself is all that is shared.
    if (!atomic_exchange_explicit(&noted, true, memory_order_relaxed))
        guard_report_note("check: the driver refuses to exchange kernel %s in a graph: some of its errors "
                          "may be missed",
                          name ? name : "(no name)");
}

// Sets what holds whatever happens.
static void make_safe(const struct exec *e, struct node *n)
{
    struct choice c;
    choose_variant(&c, n, RUNS_FULL, false);
    check_launch_set_proved(n->launch, NULL, CHECK_PROVED_NOTHING);
    if (n->set != hash_of(&c) && !set_node(e, n, &c))
        note_refused(n);
}

static void settle_node(const struct exec *e, struct node *n)
{
    struct choice c;
    choose(&c, n);
    // If the driver refuses, the node may have a proof, or bounds, that do not hold any more.
    if (n->set != hash_of(&c) && !set_node(e, n, &c))
        make_safe(e, n);
}

// Looks at all nodes, if a pointer has lost its buffer since the last time.
static void settle(struct exec *e)
{
    uint64_t now = track_losses();
    if (e->losses == now)
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    for (size_t i = 0; i < e->nnodes; i++)
        settle_node(e, &e->nodes[i]);
    context_capture_restore(mode);
    count_runs(e);
    e->losses = now;
}

// Stops keeping a node.
static void release_node(struct exec *e, struct node *n)
{
    make_safe(e, n);
    mem_free(n->bytes);
    *n = e->nodes[--e->nnodes];
    count_runs(e);
}

// --- captured kernels --------------------------------------------------------------------------------------

// The program's handles of kernels of libraries that were captured; protected by the lock. The driver names a
// captured one by a function of the context, which moat may not have seen.
static const void *captured[MOST_CAPTURED];
static size_t ncaptured;

void check_graph_captured(const void *kernel)
{
    lock_take(&lock);
    size_t i = 0;
    while (i < ncaptured && captured[i] != kernel)
        i++;
    if (i == ncaptured && i < MOST_CAPTURED)
        captured[ncaptured++] = kernel;
    lock_give(&lock);
}

// Returns the variant of the n-th captured kernel, NULL if its library was unloaded. Returns false if there
// are not so many.
static bool captured_variant(size_t n, const void **variant)
{
    lock_take(&lock);
    bool there = n < ncaptured;
    const void *handle = there ? captured[n] : NULL;
    lock_give(&lock);
    const struct kernel *k = handle ? kernels_find(handle) : NULL;
    const struct check_kernel *c = k ? check_kernel_of(handle) : NULL;
    *variant = c && atomic_load_explicit(&k->owner, memory_order_acquire) ? c->full.handle : NULL;
    return there;
}

// Returns the handle by which moat knows a node's kernel, or NULL.
static const void *handle_of(const CUDA_KERNEL_NODE_PARAMS *p)
{
    const void *variant;
    if (p->kern && kernels_find(p->kern))
        return p->kern;
    if (!p->func || kernels_find(p->func))
        return p->func;
    for (size_t i = 0; captured_variant(i, &variant); i++) {
        CUfunction function = NULL;
        if (variant && !guard.real.cuKernelGetFunction(&function, (CUkernel)variant) && function == p->func)
            return variant;
    }
    return NULL;
}

// --- instantiation -----------------------------------------------------------------------------------------

static bool has_attribute(CUgraphNode node, CUkernelNodeAttrID id)
{
    CUkernelNodeAttrValue v;
    memset(&v, 0, sizeof v);
    if (guard.real.cuGraphKernelNodeGetAttribute(node, id, &v))
        return id != CU_KERNEL_NODE_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;  // older drivers do not know it
    return id == CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE         ? v.cooperative != 0
           : id == CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION ? v.clusterDim.x != 0
                                                              : v.deviceUpdatableKernelNode.deviceUpdatable;
}

// Returns whether a node's blocks have to fit together.
static bool is_rigid(CUgraphNode node)
{
    return has_attribute(node, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE) ||
           has_attribute(node, CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION);
}

static size_t size_of(const struct pass_check_kernel *checks)
{
    const struct pass_check_param *end = checks->params + checks->nparams;
    return checks->nparams ? end[-1].offset + end[-1].size : 0;
}

// Fills a node of an executable graph from what the driver says of the node that it was made from, or updated
// from. Returns false if it is not to be kept.
static bool read_node(CUgraphNode handle, struct node *n)
{
    CUDA_KERNEL_NODE_PARAMS p = {.func = NULL};
    if (guard.real.cuGraphKernelNodeGetParams_v2(handle, &p) || !p.kernelParams ||
        has_attribute(handle, CU_KERNEL_NODE_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE))
        return false;
    const void *variant = handle_of(&p);
    const struct kernel *own = variant ? kernels_own(kernels_find(variant)) : NULL;
    const struct check_kernel *k = own ? check_kernel_of(own->handle) : NULL;
    if (!k || variant != k->full.handle || k->checks->nparams > KERNELS_PARAMETERS)
        return false;
    struct kcheck_hidden hidden;
    memcpy(&hidden, p.kernelParams[k->checks->nparams], sizeof hidden);
    size_t size = size_of(k->checks);
    char *bytes = mem_zalloc(1, size + 1);
    if (!bytes)
        return false;
    for (uint32_t i = 0; i < k->checks->nparams; i++)
        memcpy(bytes + k->checks->params[i].offset, p.kernelParams[i], k->checks->params[i].size);
    *n = (struct node){.handle = handle,
                       .own = own,
                       .kernel = k,
                       .grid = {p.gridDimX, p.gridDimY, p.gridDimZ},
                       .block = {p.blockDimX, p.blockDimY, p.blockDimZ},
                       .shared = p.sharedMemBytes,
                       .context = p.ctx,
                       .launch = hidden.launch,
                       .rigid = is_rigid(handle),
                       .size = size,
                       .bytes = bytes};
    struct choice c;
    choose_variant(&c, n, RUNS_FULL, false);
    n->set = hash_of(&c);
    return true;
}

// Returns the kernel nodes of a list that are to be kept, under the handles of an equal list, which are those
// of the executable graph. Returns NULL if out of memory.
static struct node *read_nodes(const struct check_graph_list *from, const struct check_graph_list *as,
                               size_t *kept)
{
    struct node *nodes = mem_zalloc(from->count + 1, sizeof *nodes);
    *kept = 0;
    for (size_t i = 0; nodes && i < from->count; i++)
        if (from->nodes[i].type == CU_GRAPH_NODE_TYPE_KERNEL &&
            read_node(from->nodes[i].handle, &nodes[*kept]))
            nodes[(*kept)++].handle = as->nodes[i].handle;
    return nodes;
}

// Makes a record of an executable graph. Returns NULL if there is nothing to keep, or out of memory.
static struct exec *read_graph(CUgraphExec handle, CUgraph graph)
{
    struct exec *e = mem_zalloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = (struct exec){.handle = handle, .graph = graph, .losses = UINT64_MAX};
    if (check_graph_list(graph, &e->list))
        e->nodes = read_nodes(&e->list, &e->list, &e->nnodes);
    if (e->nodes && e->nnodes)
        return e;
    free_exec(e);
    return NULL;
}

static bool driver_can(void)
{
    const struct driver *d = &guard.real;
    return d->cuGraphKernelNodeGetParams_v2 && d->cuGraphKernelNodeGetAttribute &&
           d->cuGraphExecKernelNodeSetParams_v2 && d->cuGraphDestroy;
}

// Requires the lock. Forgets an executable graph. Returns a graph that nobody needs any more, or NULL.
static CUgraph forget(CUgraphExec handle)
{
    struct exec **at = place_of(handle), *e = *at;
    if (!e)
        return NULL;
    *at = e->next;
    count--;
    CUgraph graph = e->destroyed ? e->graph : NULL;
    for (size_t i = 0; i < CHAINS && graph; i++)
        for (const struct exec *other = chains[i]; other; other = other->next)
            graph = other->graph == e->graph ? NULL : graph;
    free_exec(e);
    return graph;
}

void check_graph_made(CUgraphExec handle, CUgraph graph, unsigned long long flags)
{
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH || !driver_can())
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    struct exec *e = read_graph(handle, graph);
    context_capture_restore(mode);
    lock_take(&lock);
    CUgraph unneeded = forget(handle);
    if (e) {
        *place_of(handle) = e;
        count++;
        settle(e);
    }
    lock_give(&lock);
    if (unneeded)
        guard.real.cuGraphDestroy(unneeded);
}

// --- changes -----------------------------------------------------------------------------------------------

// What an update from a graph makes of an executable graph, or of the graph of one of its child nodes.
struct update {
    struct check_graph_list have, from;
    struct node *nodes;  // NULL: which node got which kernel is not known
    size_t count;
};

static void read_update(struct update *u, CUgraph graph, CUgraph from)
{
    if (check_graph_list(graph, &u->have) && check_graph_list(from, &u->from) &&
        check_graph_list_equal(&u->have, &u->from))
        u->nodes = read_nodes(&u->from, &u->have, &u->count);
}

static void free_update(struct update *u)
{
    for (size_t i = 0; i < u->count; i++)
        mem_free(u->nodes[i].bytes);
    mem_free(u->nodes);
    check_graph_list_free(&u->have);
    check_graph_list_free(&u->from);
}

// Returns the nodes of a child node's graph as they were when the executable graph was instantiated, of all
// of it for NULL. There are none if the child was no node of it.
static struct check_graph_list part_of(const struct exec *e, CUgraphNode child)
{
    size_t at = 0;
    if (!child)
        return e->list;
    while (at < e->list.count && e->list.nodes[at].handle != child)
        at++;
    return (struct check_graph_list){.count = at < e->list.count ? e->list.nodes[at].below : 0,
                                     .nodes = e->list.nodes + at + 1};
}

static bool has_handles_of(const struct check_graph_list *a, const struct check_graph_list *b)
{
    for (size_t i = 0; i < a->count && a->count == b->count; i++)
        if (a->nodes[i].handle != b->nodes[i].handle)
            return false;
    return a->count == b->count;
}

// Takes the nodes out that were updated, which the driver has set to what their new graph holds: the variants
// that check everything. Those whose kernels are known are kept again.
static void apply_update(struct exec *e, CUgraphNode child, struct update *u)
{
    struct check_graph_list part = part_of(e, child);
    for (size_t i = 0; i < part.count; i++) {
        struct node *n = find_node(e, part.nodes[i].handle);
        if (!n)
            continue;
        mem_free(n->bytes);
        *n = e->nodes[--e->nnodes];
    }
    if (u->nodes && has_handles_of(&part, &u->have)) {
        memcpy(e->nodes + e->nnodes, u->nodes, u->count * sizeof *u->nodes);
        e->nnodes += u->count;
        u->count = 0;
    }
    e->losses = UINT64_MAX;
    settle(e);
}

void check_graph_updated(CUgraphExec handle, CUgraphNode child, CUgraph from)
{
    struct update u = {.nodes = NULL};
    lock_take(&lock);
    const struct exec *kept = *place_of(handle);
    CUgraph graph = kept ? kept->graph : NULL;
    lock_give(&lock);
    if (!graph)
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    if (!child || !guard.real.cuGraphChildGraphNodeGetGraph(child, &graph))
        read_update(&u, graph, from);
    context_capture_restore(mode);
    lock_take(&lock);
    struct exec *e = *place_of(handle);
    if (e)
        apply_update(e, child, &u);
    lock_give(&lock);
    free_update(&u);
}

CUgraph check_graph_exec_ends(CUgraphExec handle)
{
    lock_take(&lock);
    CUgraph unneeded = forget(handle);
    lock_give(&lock);
    return unneeded;
}

bool check_graph_ends(CUgraph graph, CUresult *r)
{
    bool needed = false;
    *r = CUDA_SUCCESS;
    lock_take(&lock);
    for (size_t i = 0; i < CHAINS && count; i++)
        for (struct exec *e = chains[i]; e; e = e->next)
            if (e->graph == graph) {
                if (e->destroyed)
                    *r = CUDA_ERROR_INVALID_VALUE;  // the program destroys it for the second time
                e->destroyed = needed = true;
            }
    lock_give(&lock);
    return needed;
}

bool check_graph_keeps(CUgraphExec exec, CUgraphNode handle)
{
    lock_take(&lock);
    bool keeps = find_node(*place_of(exec), handle);
    lock_give(&lock);
    return keeps;
}

// Fills a node with what the program has set it to; bytes are the call's. Returns false if that cannot be
// kept: then the variant that checks everything was set, without bounds, or none fits.
static bool read_call(struct node *n, const struct launch_call *l)
{
    const struct check_kernel *k = check_kernel_of(l->function);
    const void *bytes;
    size_t size;
    if (!k || !launch_call_parameters(l, &bytes, &size) || size < size_of(k->checks) ||
        k->checks->nparams > KERNELS_PARAMETERS || !check_kernel_fits(l, &k->full, k->checks->full.npairs))
        return false;
    const struct launch_change *change = l->change;
    const void *variant = change->left ? NULL : change->function;
    *n = (struct node){.handle = l->node->node,
                       .own = kernels_find(l->function),
                       .kernel = k,
                       .grid = {l->grid[0], l->grid[1], l->grid[2]},
                       .block = {l->block[0], l->block[1], l->block[2]},
                       .shared = l->shared,
                       .context = n->context,
                       .launch = n->launch,
                       .runs = !variant                    ? RUNS_BARE
                               : variant == k->rest.handle ? RUNS_REST
                                                           : RUNS_FULL,
                       .size = size,
                       .bytes = (char *)bytes};
    if (variant)
        memcpy(&n->launch, change->more, sizeof n->launch);  // the head of the hidden parameter
    struct choice c = {.runs = n->runs, .handle = variant ? variant : n->own->handle};
    if (variant)
        c.about = n->runs == RUNS_REST ? &k->checks->rest : &k->checks->full;
    memcpy(&c.hidden, change->more, hidden_size(&c));
    n->set = hash_of(&c);
    return true;
}

void check_graph_node_set(const struct launch_call *l)
{
    if (!l->node->exec)
        return;
    lock_take(&lock);
    struct exec *e = *place_of(l->node->exec);
    struct node *n = find_node(e, l->node->node);
    char *old = n ? n->bytes : NULL;
    if (n && read_call(n, l)) {
        char *copy = mem_alloc(n->size + 1);
        if (copy) {
            // A buffer may have been lost since the proof was made.
            n->bytes = memcpy(copy, n->bytes, n->size);
            settle_node(e, n);
        } else {
            make_safe(e, n);
            *n = e->nodes[--e->nnodes];
        }
    } else if (n) {
        *n = e->nodes[--e->nnodes];
    }
    mem_free(old);
    if (n)
        count_runs(e);
    lock_give(&lock);
}

void check_graph_node_ends(CUgraphNode handle)
{
    lock_take(&lock);
    for (size_t i = 0; i < CHAINS && count; i++)
        for (struct exec *e = chains[i]; e; e = e->next) {
            struct node *n = find_node(e, handle);
            if (n)
                release_node(e, n);
        }
    lock_give(&lock);
}

void check_graph_launch(CUgraphExec handle)
{
    if (!atomic_load_explicit(&count, memory_order_relaxed))
        return;
    if (check_host_shadow)  // it may have moved since the last launch
        check_host_launch();
    lock_take(&lock);
    struct exec *e = *place_of(handle);
    if (e) {
        settle(e);
        guard_add(GUARD_CHECK_NODES_PROVED, e->runs[RUNS_BARE]);
        guard_add(GUARD_CHECK_NODES_PART, e->runs[RUNS_REST]);
        guard_add(GUARD_CHECK_NODES, e->runs[RUNS_FULL]);
    }
    lock_give(&lock);
}
