// SPDX-License-Identifier: MIT
#include "check/check_prove.h"

#include <string.h>

#include "base/mem.h"
#include "core/epoch.h"
#include "core/lock.h"
#include "flow/judge.h"
#include "launch/launch_call.h"
#include "track/track.h"

// Memory for one evaluation: the bounds, the buffers and the work area of proof_eval, in this order. There
// are few areas, since launches of several threads seldom meet here; each is as large as the largest proof
// needs.
struct area {
    struct lock lock;
    char *memory;
    size_t size;
};
enum { AREAS = 4 };
static struct area areas[AREAS] = {{.lock = LOCK_INIT(CHECK_PROVE)},
                                   {.lock = LOCK_INIT(CHECK_PROVE)},
                                   {.lock = LOCK_INIT(CHECK_PROVE)},
                                   {.lock = LOCK_INIT(CHECK_PROVE)}};

// The buffer of a root, as the launch finds it.
struct buffer {
    bool looked_up;
    struct judge_buffer judged;
};

static size_t bounds_size(const struct proof *p)
{
    return (p->head->naccesses * sizeof(struct proof_bound) + 15) / 16 * 16;
}

static size_t buffers_size(const struct proof *p)
{
    return (p->head->nroots * sizeof(struct buffer) + 15) / 16 * 16;
}

static size_t area_size(const struct proof *p)
{
    return bounds_size(p) + buffers_size(p) + proof_work_size(p);
}

void check_prove_after_fork(void)
{
    for (unsigned i = 0; i < AREAS; i++)
        lock_after_fork(&areas[i].lock);
}

// Makes an area large enough. Its content does not matter. If out of memory it stays as it is.
static void grow(struct area *a, size_t size)
{
    lock_take(&a->lock);
    if (a->size < size) {
        char *memory = mem_alloc(size);
        if (memory) {
            mem_free(a->memory);
            a->memory = memory;
            a->size = size;
        }
    }
    lock_give(&a->lock);
}

void check_prove_found(struct check_prove *p, const struct pass_check_kernel *kernel)
{
    p->kernel = NULL;
    if (kernel->proved == PASS_CHECK_FULL || proof_read(kernel->proof.ptr, kernel->proof.len, &p->proof))
        return;
    for (unsigned i = 0; i < AREAS; i++)
        grow(&areas[i], area_size(&p->proof));
    p->kernel = kernel;
}

// Takes an area that is free, or waits for the first one.
static struct area *take(void)
{
    for (unsigned i = 0; i < AREAS; i++)
        if (lock_try(&areas[i].lock))
            return &areas[i];
    lock_take(&areas[0].lock);
    return &areas[0];
}

// Finds the buffer of a root. Call it inside an epoch section.
static struct judge_buffer find(const struct proof_root *root, const struct proof_launch *l)
{
    uint64_t pointer = 0;
    if (root->kind != PROOF_ROOT_PARAM)
        return judge_variable(root, l->dynamic_shared);
    if (root->at <= l->params_size && l->params_size - root->at >= sizeof pointer)
        memcpy(&pointer, (const char *)l->params + root->at, sizeof pointer);
    const struct track_block *b = pointer ? track_announced(pointer) : NULL;
    b = b || !pointer ? b : track_live(pointer);
    // When memory of a graph is valid is unknown.
    if (!b || b->facts.family == TRACK_GRAPH)
        return (struct judge_buffer){.known = false};
    return (struct judge_buffer){.known = true, .size = b->range.size, .into = pointer - b->range.base};
}

// Returns whether an access is right in every thread of the launch.
static bool is_right(const struct check_prove *p, const struct proof_launch *l, uint32_t access,
                     const struct proof_bound *bound, struct buffer *buffers)
{
    const struct pass_check_asked *asked = &p->kernel->asked[access];
    if (bound->verdict == PROOF_UNREACHABLE)
        return true;
    if (bound->verdict != PROOF_BOUNDED || bound->root == PROOF_NONE)
        return false;
    const struct proof_root *root = &p->proof.roots[bound->root];
    if (asked->root != PASS_CHECK_ANY_ROOT && (root->kind != PROOF_ROOT_PARAM || root->at != asked->root))
        return false;
    struct buffer *b = &buffers[bound->root];
    if (!b->looked_up)
        *b = (struct buffer){true, find(root, l)};
    return judge_bound(bound, &b->judged).verdict == JUDGE_INSIDE;
}

static bool all_right(const struct check_prove *p, const struct proof_launch *l, struct area *a)
{
    const struct proof *proof = &p->proof;
    struct proof_bound *bounds = (struct proof_bound *)a->memory;
    struct buffer *buffers = (struct buffer *)(a->memory + bounds_size(proof));
    void *work = a->memory + bounds_size(proof) + buffers_size(proof);
    if (a->size < area_size(proof) || proof_eval(proof, l, work, bounds, NULL))
        return false;
    memset(buffers, 0, buffers_size(proof));
    unsigned section = epoch_enter();
    bool right = true;
    for (uint32_t i = 0; i < proof->head->naccesses && right; i++)
        right = p->kernel->asked[i].site == PASS_CHECK_UNASKED || is_right(p, l, i, &bounds[i], buffers);
    epoch_leave(section);
    return right;
}

bool check_prove_holds(const struct check_prove *p, const struct launch_call *l, const void *bytes,
                       size_t size)
{
    struct proof_launch launch = {
        .dynamic_shared = l->shared, .params_size = (uint32_t)size, .params = bytes};
    if (!p->kernel)
        return false;
    memcpy(launch.grid, l->grid, sizeof launch.grid);
    memcpy(launch.block, l->block, sizeof launch.block);
    struct area *a = take();
    bool holds = all_right(p, &launch, a);
    lock_give(&a->lock);
    return holds;
}

bool check_prove_says(const struct pass_check_kernel *kernel, uint32_t site)
{
    for (uint32_t i = 0; i < kernel->naccesses; i++)
        if (kernel->asked[i].site == site)
            return true;
    return false;
}
