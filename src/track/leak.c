// SPDX-License-Identifier: MIT
#include "track/leak.h"

#include <stdio.h>

#include "core/guard.h"
#include "track/guard_report.h"
#include "track/track.h"

// Blocks from one place in the program, of one client.
struct group {
    struct track_copy first;
    uint64_t blocks, bytes;
};

enum { GROUPS = 256 };

struct groups {
    const void *owner;  // NULL: any owner
    unsigned count;
    uint64_t blocks_left, bytes_left;  // blocks that found no group
    struct group group[GROUPS];
};

static struct group *group_of(struct groups *g, const struct track_block *b)
{
    for (unsigned i = 0; i < g->count; i++)
        if (g->group[i].first.facts.made_stack == b->facts.made_stack &&
            g->group[i].first.facts.made_by == b->facts.made_by &&
            g->group[i].first.facts.client == b->facts.client)
            return &g->group[i];
    if (g->count == GROUPS)
        return NULL;
    g->group[g->count].first = track_copy(b, false);
    return &g->group[g->count++];
}

static int add(struct index_item *item, void *context)
{
    const struct track_block *b = (const struct track_block *)item;
    struct groups *g = context;
    if (!track_families[b->facts.family].leaks || (g->owner && b->facts.owner != g->owner) ||
        b->facts.serial <= track_inherited())
        return 0;
    struct group *group = group_of(g, b);
    *(group ? &group->blocks : &g->blocks_left) += 1;
    *(group ? &group->bytes : &g->bytes_left) += b->facts.bytes;
    return 0;
}

static void report_group(const struct group *g)
{
    char note[120];
    snprintf(note, sizeof note, "%llu bytes in %llu buffer%s were never freed", (unsigned long long)g->bytes,
             (unsigned long long)g->blocks, g->blocks == 1 ? "" : "s");
    struct guard_finding f = {
        .type = REPORT_LEAK,
        .call = g->first.facts.made_by,
        .address = g->first.base,
        .bytes = g->bytes,
        .client_known = true,
        .client = g->first.facts.client,
        .nbuffers = 1,
        .buffers = {g->first},
        .note = note,
    };
    guard_report_finding(&f);
}

void leak_report(const void *owner)
{
    static struct groups groups;  // large, so static; of two contexts that end at once, only one is reported
    static _Atomic(int) busy;
    if (!guard.options.leak_check || atomic_exchange(&busy, 1))
        return;
    groups = (struct groups){.owner = owner};
    track_each(add, &groups);
    for (unsigned i = 0; i < groups.count; i++)
        report_group(&groups.group[i]);
    if (groups.blocks_left)
        guard_report_note("%llu bytes in %llu more buffers were never freed",
                          (unsigned long long)groups.bytes_left, (unsigned long long)groups.blocks_left);
    atomic_store(&busy, 0);
}
