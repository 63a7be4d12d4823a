// SPDX-License-Identifier: MIT
#include "guard/launch_ring.h"

#include <stdio.h>
#include <string.h>

#include "guard/names.h"

struct launch_ring launch_ring;

static unsigned add(const char **names, unsigned found, unsigned most, const char *name)
{
    bool known = !name || found == most;
    for (unsigned j = 0; j < found; j++)
        known |= names[j] == name;
    if (!known)
        names[found++] = name;
    return found;
}

unsigned launch_ring_since(uint64_t from, const char **names, unsigned most)
{
    uint64_t count = atomic_load_explicit(&launch_ring.count, memory_order_relaxed);
    unsigned found = 0;
    for (uint64_t i = 0; i + from < count && i < LAUNCH_RING_KEPT && found < most; i++) {
        const void *f = atomic_load_explicit(&launch_ring.function[(count - 1 - i) % LAUNCH_RING_KEPT],
                                             memory_order_acquire);
        const struct graph_names *graph = graph_names_from(f);
        if (!graph)
            found = add(names, found, most, names_of_function(f));
        for (unsigned j = 0; graph && j < graph->count; j++)
            found = add(names, found, most, graph->name[j]);
        if (graph && graph->others)
            found = add(names, found, most, graph_names_unknown);
    }
    return found;
}

unsigned launch_ring_recent(const char **names, unsigned most)
{
    return launch_ring_since(0, names, most);
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
