// SPDX-License-Identifier: MIT
// Which kernels a launched graph is reported to run, over a fake driver with small graphs; and which kernel a
// fault is blamed on.
#include "launch/graph_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/fork_testing.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "hook/hook.h"
#include "launch/kernel_fault.h"
#include "launch/launch_ring.h"
#include "context/kernels.h"
#include "context/names.h"

enum { NODES = 5000, MOST = 16, PAIRS = 100 };

struct CUgraphNode_st {
    CUgraphNodeType type;
    CUfunction function;
    CUkernel kernel;
    CUgraph child;
};

struct CUgraph_st {
    struct CUgraphNode_st nodes[NODES];
    size_t count;
};

// Not functions: only their addresses are used.
static char functions[2 * PAIRS];
#define FUNCTION(n) ((CUfunction)&functions[n])
#define KERNEL(n) ((CUkernel)&functions[PAIRS + (n)])
#define EXEC(n) ((CUgraphExec)(uintptr_t)(0x1000 + (n)*16))

static struct CUgraph_st graph, child;
static CUgraphExec next_exec = EXEC(0);
static CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static int calls_left = -1;  // until one fails; < 0: none fails
static char blamed[600], note[2000];

void guard_report_finding(const struct guard_finding *f)
{
    snprintf(blamed, sizeof blamed, "%s", f->fault ? f->fault->kernel : "nobody");
    snprintf(note, sizeof note, "%s", f->note);
}

void guard_report_note(const char *fmt, ...)
{
}

// --- the driver -------------------------------------------------------------------------------------------

// Queries must be allowed during any capture.
static CUresult asked(void)
{
    assert_int_equal(capture_mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    return calls_left >= 0 && calls_left-- == 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode old = capture_mode;
    capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

static CUresult get_nodes(CUgraph g, CUgraphNode *nodes, size_t *count)
{
    for (size_t i = 0; nodes && i < *count && i < g->count; i++)
        nodes[i] = &g->nodes[i];
    *count = g->count;
    return asked();
}

static CUresult get_type(CUgraphNode node, CUgraphNodeType *type)
{
    *type = node->type;
    return asked();
}

static CUresult get_params(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p)
{
    *p = (CUDA_KERNEL_NODE_PARAMS){.func = node->function, .kern = node->kernel};
    return asked();
}

static CUresult get_graph(CUgraphNode node, CUgraph *g)
{
    *g = node->child;
    return asked();
}

static CUresult get_function_name(const char **name, CUfunction f)
{
    *name = f == FUNCTION(4) ? "four" : "nameless";
    return f == FUNCTION(4) ? asked() : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_kernel_name(const char **name, CUkernel k)
{
    *name = k == KERNEL(5) ? "five" : "nameless";
    return k == KERNEL(5) ? asked() : CUDA_ERROR_INVALID_VALUE;
}

static CUresult instantiate(CUgraphExec *e, CUgraph g, unsigned long long flags)
{
    *e = next_exec;
    return CUDA_SUCCESS;
}

static CUresult instantiate_by(CUgraphExec *e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    return instantiate(e, g, 0);
}

static CUresult instantiate_old(CUgraphExec *e, CUgraph g, CUgraphNode *node, char *log, size_t n)
{
    return instantiate(e, g, 0);
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphNode *node, CUgraphExecUpdateResult *result)
{
    return g ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult update_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *result)
{
    return update(e, g, NULL, NULL);
}

static CUresult set_kernel(CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    return p->func || p->kern ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_kernel_old(CUgraphExec e, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    return CUDA_SUCCESS;
}

static CUresult set_graph(CUgraphExec e, CUgraphNode node, CUgraph g)
{
    return CUDA_SUCCESS;
}

static CUresult set_node(CUgraphExec e, CUgraphNode node, CUgraphNodeParams *p)
{
    return CUDA_SUCCESS;
}

static CUresult destroy(CUgraphExec e)
{
    return CUDA_SUCCESS;
}

static int setup(void **state)
{
    struct driver *d = &guard.real;
    static const char *const names[] = {"zero", "one", "two", "three"};
    *d = (struct driver){.handle = NULL};
    d->cuThreadExchangeStreamCaptureMode = exchange;
    d->cuGraphGetNodes = get_nodes;
    d->cuGraphNodeGetType = get_type;
    d->cuGraphKernelNodeGetParams_v2 = get_params;
    d->cuGraphChildGraphNodeGetGraph = get_graph;
    d->cuFuncGetName = get_function_name;
    d->cuKernelGetName = get_kernel_name;
    d->cuGraphInstantiate = d->cuGraphInstantiate_v2 = instantiate_old;
    d->cuGraphInstantiateWithFlags = instantiate;
    d->cuGraphInstantiateWithParams = d->cuGraphInstantiateWithParams_ptsz = instantiate_by;
    d->cuGraphExecUpdate = update;
    d->cuGraphExecUpdate_v2 = update_v2;
    d->cuGraphExecKernelNodeSetParams = set_kernel_old;
    d->cuGraphExecKernelNodeSetParams_v2 = set_kernel;
    d->cuGraphExecChildGraphNodeSetParams = set_graph;
    d->cuGraphExecNodeSetParams = set_node;
    d->cuGraphExecDestroy = destroy;
    for (unsigned i = 0; i < 4; i++)
        kernels_found(FUNCTION(i), KERNELS_UNKNOWN, NULL, names[i]);
    kernels_found(KERNEL(2), KERNELS_UNKNOWN, NULL, "two");
    guard.watching = true;
    calls_left = -1;
    graph.count = child.count = 0;
    graph_names_forget(EXEC(0));
    memset(&launch_ring, 0, sizeof launch_ring);
    return 0;
}

static void add_node(CUgraph g, CUgraphNodeType type, CUfunction f, CUkernel k, CUgraph inside)
{
    g->nodes[g->count++] = (struct CUgraphNode_st){type, f, k, inside};
}

static void add_function(CUgraph g, unsigned n)
{
    add_node(g, CU_GRAPH_NODE_TYPE_KERNEL, FUNCTION(n), NULL, NULL);
}

static CUgraphExec make(void)
{
    CUgraphExec e;
    assert_int_equal(hook_cuGraphInstantiateWithFlags(&e, &graph, 0), 0);
    assert_int_equal(capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return e;
}

// --- what is listed ---------------------------------------------------------------------------------------

static void assert_listed(const char *expected)
{
    const char *names[MOST];
    char text[1000] = "";
    launch_ring_print(text, sizeof text, 0, ":", names, launch_ring_recent(names, MOST));
    assert_string_equal(text, expected);
}

// As the only launch.
static void assert_runs(CUgraphExec e, const char *expected)
{
    memset(&launch_ring, 0, sizeof launch_ring);
    launch_ring_note_graph(graph_names_of(e));
    assert_listed(expected);
}

static void lists_kernels(void **state)
{
    CUgraphExec e;
    add_function(&child, 3);
    add_function(&child, 0);
    add_function(&graph, 1);
    add_node(&graph, CU_GRAPH_NODE_TYPE_MEMCPY, NULL, NULL, NULL);
    add_function(&graph, 1);
    add_node(&graph, CU_GRAPH_NODE_TYPE_KERNEL, NULL, KERNEL(2), NULL);
    add_node(&graph, CU_GRAPH_NODE_TYPE_GRAPH, NULL, NULL, &child);
    assert_runs(EXEC(0), ": unknown ones");
    assert_int_equal(hook_cuGraphInstantiate(&e, &graph, NULL, NULL, 0), 0);
    assert_runs(e, ": one, two, three, zero");
    next_exec = EXEC(1);
    assert_int_equal(hook_cuGraphInstantiate_v2(&e, &graph, NULL, NULL, 0), 0);
    assert_runs(e, ": one, two, three, zero");
    assert_ptr_equal(graph_names_of(e), graph_names_of(EXEC(0)));
    next_exec = EXEC(2);
    assert_int_equal(hook_cuGraphInstantiateWithParams(&e, &graph, NULL), 0);
    assert_runs(e, ": one, two, three, zero");
    next_exec = EXEC(3);
    assert_int_equal(hook_cuGraphInstantiateWithParams_ptsz(&e, &graph, NULL), 0);
    assert_runs(e, ": one, two, three, zero");
    next_exec = EXEC(0);
    launch_ring_note(FUNCTION(3));
    assert_listed(": three, one, two, zero");
    const char *names[2];
    assert_int_equal(launch_ring_since(0, names, 2), 2);
    assert_int_equal(launch_ring_since(1, names, 2), 1);
}

static void assert_certain(uint64_t since, bool expected)
{
    const char *names[MOST];
    assert_int_equal(launch_ring_is_certain(names, launch_ring_since(since, names, MOST)), expected);
}

// If an unnamed kernel, or one no longer kept, may have been the cause, no kernel is certain.
static void lists_what_has_no_name(void **state)
{
    memset(&launch_ring, 0, sizeof launch_ring);
    launch_ring_note(FUNCTION(99));
    assert_listed(": unknown ones");
    assert_certain(0, false);
    launch_ring_note(FUNCTION(3));
    assert_listed(": three, unknown ones");
    assert_certain(0, false);
    assert_certain(1, true);
    for (unsigned i = 1; i < LAUNCH_RING_KEPT; i++)
        launch_ring_note(FUNCTION(3));
    assert_listed(": three");
    assert_certain(0, false);
    assert_certain(1, true);
    assert_certain(LAUNCH_RING_KEPT + 1, false);
    memset(&launch_ring, 0, sizeof launch_ring);
    for (unsigned i = 0; i < 2 * LAUNCH_RING_KEPT; i++)
        launch_ring_note(FUNCTION(3));
    assert_certain(0, true);
}

// A wait during a launch does not cover that launch.
static void counts_what_the_driver_has(void **state)
{
    memset(&launch_ring, 0, sizeof launch_ring);
    launch_ring_note(FUNCTION(1));
    assert_int_equal(launch_ring_all_made(), 0);
    launch_ring_made();
    assert_int_equal(launch_ring_all_made(), 1);
    launch_ring_note_graph(NULL);
    launch_ring_note(FUNCTION(2));
    launch_ring_made();
    assert_int_equal(launch_ring_all_made(), 0);
    launch_ring_made();
    assert_int_equal(launch_ring_all_made(), 3);
}

static void has_a_place_for_what_has_no_name(void **state)
{
    const char *names[2];
    memset(&launch_ring, 0, sizeof launch_ring);
    launch_ring_note(FUNCTION(99));
    launch_ring_note(FUNCTION(1));
    launch_ring_note(FUNCTION(2));
    assert_int_equal(launch_ring_since(0, names, 2), 2);
    assert_string_equal(names[0], "two");
    assert_ptr_equal(names[1], launch_ring_unknown);
}

// The driver knows names that the program has never requested.
static void asks_for_names(void **state)
{
    add_function(&graph, 4);
    add_node(&graph, CU_GRAPH_NODE_TYPE_KERNEL, NULL, KERNEL(5), NULL);
    assert_runs(make(), ": four, five");
    add_function(&graph, 6);
    assert_runs(make(), ": four, five, unknown ones");
    guard.real.cuFuncGetName = NULL;
    guard.real.cuKernelGetName = NULL;
    assert_runs(make(), ": unknown ones");
}

static void runs_no_kernel(void **state)
{
    assert_runs(make(), "");
    add_node(&graph, CU_GRAPH_NODE_TYPE_MEMSET, NULL, NULL, NULL);
    assert_runs(make(), "");
}

static void bounds_names(void **state)
{
    char text[16];
    for (unsigned i = 10; i < 10 + GRAPH_NAMES_MOST; i++) {
        snprintf(text, sizeof text, "k%u", i);
        kernels_found(FUNCTION(i), KERNELS_UNKNOWN, NULL, text);
        add_function(&graph, i);
    }
    assert_runs(make(), ": k10, k11, k12, k13, k14, k15, k16, k17");
    add_function(&graph, 1);
    assert_runs(make(), ": k10, k11, k12, k13, k14, k15, k16, k17, unknown ones");
}

static void bounds_walks(void **state)
{
    add_function(&graph, 1);
    add_node(&graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, NULL, NULL, NULL);
    assert_runs(make(), ": one, unknown ones");
    graph.nodes[1] = (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = &graph};
    assert_runs(make(), ": one, unknown ones");
    graph.count = 0;
    while (graph.count < NODES)
        add_function(&graph, 1);
    assert_runs(make(), ": unknown ones");
    graph.count = NODES / 2;
    assert_runs(make(), ": one");
}

// Any of the calls may fail: then fewer names are known, and no kernel is certain.
static void asks_in_vain(void **state)
{
    const char *names[MOST];
    int failures = 0;
    kernels_found(FUNCTION(7), KERNELS_UNKNOWN, NULL, "seven");
    add_function(&graph, 7);
    add_function(&child, 7);
    add_node(&graph, CU_GRAPH_NODE_TYPE_GRAPH, NULL, NULL, &child);
    for (bool failed = true; failed; failures++) {
        calls_left = failures;
        launch_ring_note_graph(graph_names_of(make()));
        failed = calls_left < 0;
        assert_int_equal(launch_ring_is_certain(names, launch_ring_since((uint64_t)failures, names, MOST)),
                         !failed);
    }
    assert_int_equal(failures, 10 + 1);
    calls_left = -1;
    driver_function *calls[] = {
        (driver_function *)&guard.real.cuGraphGetNodes,
        (driver_function *)&guard.real.cuGraphNodeGetType,
        (driver_function *)&guard.real.cuGraphKernelNodeGetParams_v2,
        (driver_function *)&guard.real.cuGraphChildGraphNodeGetGraph,
    };
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        driver_function kept = *calls[i];
        *calls[i] = NULL;
        assert_runs(make(), ": unknown ones");
        *calls[i] = kept;
    }
    assert_runs(make(), ": seven");
}

static void follows_changes(void **state)
{
    CUDA_KERNEL_NODE_PARAMS none = {.func = NULL}, kernel = {.kern = KERNEL(2)};
    CUDA_KERNEL_NODE_PARAMS_v1 function = {.func = FUNCTION(3)};
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = {.func = FUNCTION(0)}};
    add_function(&graph, 1);
    add_function(&child, 4);
    CUgraphExec e = make();
    assert_int_equal(hook_cuGraphExecKernelNodeSetParams_v2(e, NULL, &none), CUDA_ERROR_INVALID_VALUE);
    assert_runs(e, ": one");
    assert_int_equal(hook_cuGraphExecKernelNodeSetParams_v2(e, NULL, &kernel), 0);
    assert_runs(e, ": one, two");
    assert_int_equal(hook_cuGraphExecKernelNodeSetParams(e, NULL, &function), 0);
    assert_runs(e, ": one, two, three");
    assert_int_equal(hook_cuGraphExecNodeSetParams(e, NULL, &node), 0);
    assert_runs(e, ": one, two, three, zero");
    assert_int_equal(hook_cuGraphExecChildGraphNodeSetParams(e, NULL, &child), 0);
    assert_runs(e, ": one, two, three, zero, four");
    assert_int_equal(hook_cuGraphExecUpdate_v2(e, NULL, NULL), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_runs(e, ": one, two, three, zero, four");
    assert_int_equal(hook_cuGraphExecUpdate(e, &child, NULL, NULL), 0);
    assert_runs(e, ": four");
    assert_int_equal(hook_cuGraphExecUpdate_v2(e, &graph, NULL), 0);
    assert_runs(e, ": one");
    node = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = &child}};
    assert_int_equal(hook_cuGraphExecNodeSetParams(e, NULL, &node), 0);
    assert_runs(e, ": one, four");
    assert_int_equal(capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

// The names of a launch are those at that time, even if the graph is destroyed and its handle reused.
static void outlives_graph(void **state)
{
    add_function(&graph, 1);
    CUgraphExec e = make();
    launch_ring_note_graph(graph_names_of(e));
    assert_int_equal(hook_cuGraphExecDestroy(e), 0);
    assert_ptr_not_equal(graph_names_of(e), graph_names_from(launch_ring.function[0]));
    assert_listed(": one");
    graph.count = 0;
    add_function(&graph, 2);
    assert_ptr_equal(make(), e);
    launch_ring_note_graph(graph_names_of(e));
    assert_listed(": two, one");
}

// --- what is blamed ---------------------------------------------------------------------------------------

static bool blames(const char *whom, const char *list)
{
    kernel_fault_report(CUDA_ERROR_ILLEGAL_ADDRESS);
    const char *last = strstr(note, "launched last");
    return strcmp(blamed, whom) == 0 && last && strcmp(last, list) == 0;
}

static bool blames_one(void)
{
    return blames("one", "launched last: one");
}

static bool blames_one_of_two(void)
{
    return blames("nobody", "launched last: one, two");
}

static bool blames_nobody(void)
{
    return blames("nobody", "launched last: one");
}

static bool blames_unknown(void)
{
    return blames("nobody", "launched last: unknown ones");
}

// One report per process.
static void blames_graphs(void **state)
{
    add_function(&graph, 1);
    launch_ring_note_graph(graph_names_of(make()));
    fork_testing_child(blames_one);
    memset(&launch_ring, 0, sizeof launch_ring);
    launch_ring_note(FUNCTION(2));
    launch_ring_note_graph(graph_names_of(make()));
    fork_testing_child(blames_one_of_two);
    memset(&launch_ring, 0, sizeof launch_ring);
    launch_ring_note_graph(graph_names_of(EXEC(99)));
    fork_testing_child(blames_unknown);
    // Earlier launches are not kept, and one of them may have been the cause.
    launch_ring_note(FUNCTION(2));
    for (unsigned i = 0; i < LAUNCH_RING_KEPT; i++)
        launch_ring_note(FUNCTION(1));
    fork_testing_child(blames_nobody);
}

static bool goes_on(void)
{
    graph_names_after_fork();
    const struct graph_names *one = graph_names_of(EXEC(0));
    add_function(&graph, 2);
    const struct graph_names *two = graph_names_of(make());
    return one->count == 1 && !one->others && two->count == 2 && !two->others;
}

static void forks(void **state)
{
    add_function(&graph, 1);
    make();
    fork_testing_child(goes_on);
}

// Runs last: when there is no more room, new graphs are unknown, and known ones stay.
static void runs_full(void **state)
{
    unsigned unknown = 0;
    char text[16];
    add_function(&graph, 1);
    next_exec = EXEC(1);
    CUgraphExec e = make();
    next_exec = EXEC(0);
    for (unsigned i = 0; i < PAIRS; i++) {
        snprintf(text, sizeof text, "pair%u", i);
        kernels_found(FUNCTION(i), KERNELS_UNKNOWN, NULL, text);
    }
    for (unsigned i = 0; i < PAIRS * PAIRS; i++) {
        graph.count = 0;
        add_function(&graph, i / PAIRS);
        add_function(&graph, i % PAIRS);
        const struct graph_names *names = graph_names_of(make());
        assert_ptr_equal(graph_names_from(names), names);
        unknown += names->others;
    }
    assert_in_range(unknown, 1, PAIRS * PAIRS / 4);
    assert_runs(EXEC(0), ": unknown ones");
    assert_runs(e, ": one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lists_kernels, setup),
        cmocka_unit_test_setup(asks_for_names, setup),
        cmocka_unit_test_setup(lists_what_has_no_name, setup),
        cmocka_unit_test_setup(counts_what_the_driver_has, setup),
        cmocka_unit_test_setup(has_a_place_for_what_has_no_name, setup),
        cmocka_unit_test_setup(runs_no_kernel, setup),
        cmocka_unit_test_setup(bounds_names, setup),
        cmocka_unit_test_setup(bounds_walks, setup),
        cmocka_unit_test_setup(asks_in_vain, setup),
        cmocka_unit_test_setup(follows_changes, setup),
        cmocka_unit_test_setup(outlives_graph, setup),
        cmocka_unit_test_setup(blames_graphs, setup),
        cmocka_unit_test_setup(forks, setup),
        cmocka_unit_test_setup(runs_full, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
