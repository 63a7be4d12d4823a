// SPDX-License-Identifier: MIT
#include "launch/launch_ring.h"

#include <stdio.h>
#include <string.h>

#include "context/kernels.h"

struct launch_ring launch_ring;

const char launch_ring_unknown[] = "unknown ones";

// All relaxed: nothing changes meanwhile.
bool launch_ring_valid(void)
{
    const struct launch_ring *r = &launch_ring;
    uint64_t made = atomic_load_explicit(&r->made, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&r->count, memory_order_relaxed);
    const void *first = atomic_load_explicit(&r->only.first, memory_order_relaxed);
    for (uint64_t i = 0; i < count && i < LAUNCH_RING_KEPT && one_or_many_one(&r->only); i++) {
        const void *kept = atomic_load_explicit(&r->function[i], memory_order_relaxed);
        if (kept && kept != first)  // launches of a NULL function are not noted in only
            return false;
    }
    return made == count && atomic_load_explicit(&r->graphs, memory_order_relaxed) <= count;
}

bool launch_ring_has_all_since(uint64_t from)
{
    uint64_t count = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    return count <= from || count - from <= LAUNCH_RING_KEPT || one_or_many_one(&launch_ring.only);
}

struct list {
    const char **names;
    unsigned found, most;
    bool others;
};

static void add(struct list *l, const char *name)
{
    bool known = l->found == l->most;
    for (unsigned j = 0; j < l->found; j++)
        known |= l->names[j] == name;
    if (!known)
        l->names[l->found++] = name;
}

static void add_launch(struct list *l, const void *function)
{
    const struct graph_names *graph = graph_names_from(function);
    const char *name = graph ? NULL : kernels_name(function);
    for (unsigned j = 0; graph && j < graph->count; j++)
        add(l, graph->name[j]);
    if (name)
        add(l, name);
    l->others |= graph ? graph->others : !name;
}

static unsigned list_from(uint64_t from, uint64_t count, struct list *l)
{
    for (uint64_t i = count; i > from && count - i < LAUNCH_RING_KEPT; i--)
        add_launch(
            l, atomic_load_explicit(&launch_ring.function[(i - 1) % LAUNCH_RING_KEPT], memory_order_acquire));
    // The last place is for launch_ring_unknown if the list is full.
    l->found -= l->others && l->found == l->most;
    if (l->others)
        add(l, launch_ring_unknown);
    return l->found;
}

unsigned launch_ring_since(uint64_t from, const char **names, unsigned most)
{
    uint64_t count = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    struct list l = {names, .most = most, .others = !launch_ring_has_all_since(from)};
    return list_from(from, count, &l);
}

unsigned launch_ring_recent(const char **names, unsigned most)
{
    uint64_t count = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    return list_from(0, count, &(struct list){names, .most = most});
}

size_t launch_ring_print(char *text, size_t size, size_t used, const char *introduction,
                         const char *const *names, unsigned count)
{
    if (!count || used + strlen(introduction) + 1 >= size)
        return used;
    used += (size_t)snprintf(text + used, size - used, "%s", introduction);
    for (unsigned i = 0; i < count && used + strlen(names[i]) + 3 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %s", i ? "," : "", names[i]);
    return used;
}
