// SPDX-License-Identifier: MIT
#include "mode/mode.h"

#include "core/guard.h"

enum { MOST = 16 };

// The modes that are on, in the order of base/modes.def. Written once, by mode_start.
static const struct mode *active[MOST];
static unsigned count;
// The members that each launch calls, of those modes that have them; NULL ends the list.
static void (*launches[MOST + 1])(const struct launch_call *launch);
static void (*polls[MOST + 1])(void);
bool mode_any, mode_orders;

#define EACH(member, ...)                       \
    do {                                        \
        for (unsigned i = 0; i < count; i++)    \
            if (active[i]->member)              \
                active[i]->member(__VA_ARGS__); \
    } while (0)

// Returns true from the function as soon as the member of a mode returns true.
#define FIRST(member, ...)                                           \
    do {                                                             \
        for (unsigned i = 0; i < count; i++)                         \
            if (active[i]->member && active[i]->member(__VA_ARGS__)) \
                return true;                                         \
        return false;                                                \
    } while (0)

static void plan(const struct rewrite_origin *origin, struct rewrite_plan *plan)
{
    EACH(plan, origin, plan);
}

static void input_left(const struct rewrite_origin *origin)
{
    EACH(input_left, origin);
}

static void module_loaded(const struct rewrite_module *module)
{
    EACH(module_loaded, module);
}

static void module_left(const struct rewrite *r)
{
    EACH(module_left, r);
}

static bool any_plans(void)
{
    for (unsigned i = 0; i < count; i++)
        if (active[i]->plan)
            return true;
    return false;
}

void mode_start(const struct mode_row *rows, unsigned n)
{
    static const struct rewrite_client client = {plan, input_left, module_loaded, module_left};
    for (unsigned i = 0; guard.watching && i < n && count < MOST; i++)
        if (guard.options.mode >> rows[i].option & 1 && (!rows[i].mode->start || rows[i].mode->start()))
            active[count++] = rows[i].mode;
    mode_any = count;
    unsigned nlaunches = 0, npolls = 0;
    for (unsigned i = 0; i < count; i++) {
        mode_orders |= active[i]->order != NULL;
        if (active[i]->launch)
            launches[nlaunches++] = active[i]->launch;
        if (active[i]->poll)
            polls[npolls++] = active[i]->poll;
    }
    if (any_plans())
        rewrite_start(&client);
}

void mode_after_fork(void)
{
    modules_after_fork();
    EACH(after_fork);
}

void mode_aborts(void)
{
    EACH(aborts);
}

void mode_end(void)
{
    EACH(end);
}

bool mode_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    FIRST(alloc, a, pointer, r);
}

void mode_made_elsewhere(void)
{
    EACH(made_elsewhere);
}

bool mode_free(const struct mode_free *f, CUresult *r)
{
    FIRST(free, f, r);
}

enum mode_what mode_ask(uint64_t address, struct mode_answer *answer)
{
    *answer = (struct mode_answer){.mode = NULL};
    for (unsigned i = 0; i < count; i++) {
        enum mode_what what = active[i]->ask ? active[i]->ask(address, answer) : MODE_NOT_OURS;
        if (what != MODE_NOT_OURS) {
            answer->mode = active[i];
            return what;
        }
    }
    return MODE_NOT_OURS;
}

bool mode_reclaim(bool at_once)
{
    bool any = false;
    for (unsigned i = 0; i < count; i++)
        if (active[i]->reclaim)
            any |= active[i]->reclaim(at_once);
    return any;
}

uint64_t mode_held(void)
{
    uint64_t held = 0;
    for (unsigned i = 0; i < count; i++)
        if (active[i]->held)
            held += active[i]->held();
    return held;
}

bool mode_allocates(void)
{
    for (unsigned i = 0; i < count; i++)
        if (active[i]->alloc)
            return true;
    return false;
}

bool mode_can_pause(void)
{
    for (unsigned i = 0; i < count; i++)
        if (active[i]->plan && !active[i]->keeps_kernels)
            return false;
    return true;
}

bool mode_checks_kernels(void)
{
    for (unsigned i = 0; i < count; i++)
        if (active[i]->checks_kernels)
            return true;
    return false;
}

void mode_shares_plain(void)
{
    EACH(shares_plain);
}

void mode_peer(struct context *ctx, const CUmemAccessDesc *desc)
{
    EACH(peer, ctx, desc);
}

void mode_pool_made(CUmemoryPool pool, const CUmemPoolProps *props)
{
    EACH(pool_made, pool, props);
}

void mode_pool_ends(CUmemoryPool pool)
{
    EACH(pool_ends, pool);
}

void mode_pool_gone(CUmemoryPool pool)
{
    EACH(pool_gone, pool);
}

void mode_pool_opened(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t n)
{
    EACH(pool_opened, pool, desc, n);
}

void mode_context_last_look(CUcontext context)
{
    if (context)
        EACH(context_last_look, context);
}

void mode_context_ends(CUcontext context, enum driver_id call)
{
    if (context)
        EACH(context_ends, context, call);
}

void mode_context_stays(CUcontext context)
{
    if (context)
        EACH(context_stays, context);
}

void mode_context_gone(CUcontext context)
{
    if (!context)
        return;
    EACH(context_gone, context);
    modules_context_gone(context);
}

void mode_limit_set(CUlimit limit)
{
    EACH(limit_set, limit);
}

bool mode_limit(CUlimit limit, size_t *value)
{
    FIRST(limit, limit, value);
}

void mode_object(enum mode_object what, uint64_t handle, bool made)
{
    EACH(object, what, handle, made);
}

void mode_tensor(const CUtensorMap *map, const struct mode_tensor *tensor)
{
    EACH(tensor, map, tensor);
}

void mode_module_made(const void *handle)
{
    EACH(module_made, handle);
}

void mode_module_ends(const void *handle)
{
    EACH(module_ends, handle);
}

void mode_module_stays(const void *handle)
{
    EACH(module_stays, handle);
}

void mode_module_gone(const void *handle)
{
    EACH(module_gone, handle);
}

void mode_library_in_context(const void *library, CUmodule module)
{
    if (module)
        modules_alias(library, module);
    EACH(library_in_context, library, module);
}

void mode_function_found(const void *handle, const void *owner, const char *name)
{
    EACH(function_found, handle, owner, name);
}

void mode_function_of(CUfunction function, CUkernel kernel)
{
    EACH(function_of, function, kernel);
}

const void *mode_variant(const void *handle, unsigned n)
{
    const void *variant = NULL;
    for (unsigned i = 0; i < count && !variant; i++)
        variant = active[i]->variant ? active[i]->variant(handle, n) : NULL;
    return variant;
}

void mode_launch(const struct launch_call *launch)
{
    for (unsigned i = 0; launches[i]; i++)
        launches[i](launch);
}

void mode_node(const struct launch_call *node)
{
    EACH(node, node);
}

void mode_node_set(const struct launch_call *node)
{
    EACH(node_set, node);
}

void mode_node_ends(CUgraphNode node)
{
    EACH(node_ends, node);
}

void mode_graph_made(CUgraphExec exec, CUgraph graph, unsigned long long flags)
{
    EACH(graph_made, exec, graph, flags);
}

void mode_graph_updated(CUgraphExec exec, CUgraphNode child, CUgraph from)
{
    EACH(graph_updated, exec, child, from);
}

bool mode_graph_ends(CUgraph graph, CUresult *r)
{
    FIRST(graph_ends, graph, r);
}

CUgraph mode_exec_ends(CUgraphExec exec)
{
    CUgraph graph = NULL;
    for (unsigned i = 0; i < count && !graph; i++)
        graph = active[i]->exec_ends ? active[i]->exec_ends(exec) : NULL;
    return graph;
}

void mode_poll(void)
{
    for (unsigned i = 0; polls[i]; i++)
        polls[i]();
}

void mode_waited(enum driver_id call, uint64_t ended)
{
    EACH(waited, call, ended);
}

void mode_order_all(enum mode_order what)
{
    EACH(order, what);
}

void mode_summarise(void)
{
    EACH(summarise);
}
