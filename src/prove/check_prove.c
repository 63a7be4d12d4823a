// SPDX-License-Identifier: MIT
#include "prove/check_prove.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <xxhash.h>

#include "base/mem.h"
#include "core/epoch.h"
#include "core/guard.h"
#include "core/lock.h"
#include "flow/judge.h"
#include "flow/proof_memo.h"
#include "kcheck/kcheck.h"
#include "launch/launch_call.h"
#include "prove/worth.h"
#include "track/track.h"

// The buffer of a root, as the launch finds it.
struct buffer {
    bool looked_up;
    bool passes;       // a later launch must look it up again
    uint64_t pointer;  // 0 for variables
    struct judge_buffer judged;
    // Of what is not known: enum kcheck_kind of every access by way of it; 0: there may be none. Then also
    // the buffer that was freed.
    uint32_t lost;
    uint64_t base;
};

// Memory for one evaluation: the buffers, and the work area of proof_eval. The lock also protects the memos
// of the proofs that use the area. Several areas let launches of several threads go on side by side.
struct area {
    struct lock lock;
    char *memory;
    size_t size;  // enough for each of its proofs
};
enum { AREAS = 4 };
static struct area areas[AREAS] = {{.lock = LOCK_INIT(CHECK_PROVE)},
                                   {.lock = LOCK_INIT(CHECK_PROVE)},
                                   {.lock = LOCK_INIT(CHECK_PROVE)},
                                   {.lock = LOCK_INIT(CHECK_PROVE)}};

// Equal proofs, with equal sites, are one. The members never change; what `memo` and `worth` point to does.
struct check_prove {
    struct check_prove *next;
    uint64_t hash;
    struct proof proof;  // of the bytes that follow the struct
    struct pass_check_asked *asked;
    bool asks;                   // some access is asked for
    bool may_be_bare, has_rest;  // pass_check.h
    uint32_t naccesses;          // that are asked for
    struct proof_memo *memo;
    struct worth *worth;  // protected by the area's lock, as what the memo holds
    struct area *area;
};
enum { CHAINS = 256 };
// Rows are added at the head of a chain, under the lock, and never change or leave it; so they are read
// without the lock.
static _Atomic(struct check_prove *) chains[CHAINS];
static struct lock adding = LOCK_INIT(CHECK_PROVE_ADD);

void check_prove_after_fork(void)
{
    lock_after_fork(&adding);
    for (unsigned i = 0; i < AREAS; i++)
        lock_after_fork(&areas[i].lock);
}

// --- proofs that are known ---------------------------------------------------------------------------------

static size_t round_up(size_t size)
{
    return (size + 15) / 16 * 16;
}

static size_t buffers_size(const struct proof *p)
{
    return round_up(p->head->nroots * sizeof(struct buffer));
}

static size_t asked_size(const struct pass_check_kernel *k)
{
    return k->naccesses * sizeof *k->asked;
}

static uint64_t hash_of(const struct pass_check_kernel *k)
{
    return XXH3_64bits_withSeed(k->asked, asked_size(k), XXH3_64bits(k->proof.ptr, k->proof.len) + k->proved);
}

static struct check_prove *find_row(const struct pass_check_kernel *k, uint64_t hash)
{
    // Acquire: pairs with the release in add_row.
    struct check_prove *row = atomic_load_explicit(&chains[hash % CHAINS], memory_order_acquire);
    while (row && (row->hash != hash || row->may_be_bare != pass_check_may_be_bare(k->proved) ||
                   row->has_rest != pass_check_has_rest(k->proved) || row->proof.head->size != k->proof.len ||
                   memcmp(row->proof.head, k->proof.ptr, k->proof.len) != 0 ||
                   memcmp(row->asked, k->asked, asked_size(k)) != 0))
        row = row->next;
    return row;
}

// Makes an area large enough. Returns false if out of memory.
static bool grow(struct area *a, size_t size)
{
    lock_take(&a->lock);
    char *memory = a->size < size ? mem_alloc(size) : NULL;
    if (memory) {
        mem_free(a->memory);
        a->memory = memory;
        a->size = size;
    }
    bool enough = a->size >= size;
    lock_give(&a->lock);
    return enough;
}

// Requires the lock. Returns NULL if out of memory.
static struct check_prove *add_row(const struct pass_check_kernel *k, uint64_t hash)
{
    struct proof given;
    if (proof_read(k->proof.ptr, k->proof.len, &given))
        return NULL;
    size_t head = round_up(sizeof(struct check_prove)), bytes = round_up(k->proof.len),
           asked = round_up(asked_size(k)), worth = round_up(sizeof(struct worth));
    char *memory = mem_alloc(head + bytes + asked + worth + proof_memo_size(&given));
    struct area *area = &areas[hash / CHAINS % AREAS];
    if (!memory || !grow(area, buffers_size(&given) + proof_work_size(&given))) {
        mem_free(memory);
        return NULL;
    }
    struct check_prove *row = (struct check_prove *)memory;
    *row = (struct check_prove){.hash = hash,
                                .area = area,
                                .may_be_bare = pass_check_may_be_bare(k->proved),
                                .has_rest = pass_check_has_rest(k->proved)};
    memcpy(memory + head, k->proof.ptr, k->proof.len);
    row->asked = memcpy(memory + head + bytes, k->asked, asked_size(k));
    proof_read(memory + head, k->proof.len, &row->proof);
    for (uint32_t i = 0; i < k->naccesses; i++)
        row->naccesses += k->asked[i].site != PASS_CHECK_UNASKED;
    row->asks = row->naccesses;
    row->worth = (struct worth *)(memory + head + bytes + asked);
    *row->worth = worth_first();
    lock_take(&area->lock);
    row->memo = proof_memo_init(&row->proof, memory + head + bytes + asked + worth,
                                area->memory + buffers_size(&row->proof));
    lock_give(&area->lock);
    row->next = atomic_load_explicit(&chains[hash % CHAINS], memory_order_relaxed);
    // Release: pairs with the acquire in find_row.
    atomic_store_explicit(&chains[hash % CHAINS], row, memory_order_release);
    return row;
}

const struct check_prove *check_prove_found(const struct pass_check_kernel *kernel)
{
    if (kernel->proved == PASS_CHECK_FULL)
        return NULL;
    uint64_t hash = hash_of(kernel);
    struct check_prove *row = find_row(kernel, hash);
    if (row)
        return row;
    lock_take(&adding);
    row = find_row(kernel, hash);
    row = row ? row : add_row(kernel, hash);
    lock_give(&adding);
    return row;
}

struct judge_buffer (*check_prove_buffer)(uint64_t pointer, bool *lasts);

// --- launches ----------------------------------------------------------------------------------------------

bool check_prove_has_end(enum track_family family)
{
    switch (family) {
    case TRACK_PLAIN:
    case TRACK_PITCH:
    case TRACK_MANAGED:
    case TRACK_POOL:
    case TRACK_PINNED:
    case TRACK_ANNOUNCED: return true;
    default: return false;
    }
}

// Says what is known of a pointer that is in no live buffer. Blocks that are freed in the order of a stream
// may be used by kernels of others.
static struct buffer find_lost(const struct proof_root *root, uint64_t pointer)
{
    struct buffer found = {.looked_up = true, .pointer = pointer};
    const struct track_block *b = pointer ? track_freed(pointer) : NULL;
    if (!pointer)
        found.lost = root->strong ? KCHECK_NULL : 0;
    if (!b || !check_prove_has_end(b->facts.family) || b->facts.family == TRACK_POOL ||
        track_live(pointer - 1))
        return found;
    found.lost = KCHECK_USE_FREED;
    found.base = b->range.base;
    found.judged.size = b->range.size;
    return found;
}

// Finds the buffer of a root. Call it inside an epoch section.
static struct buffer find(const struct proof_root *root, const struct proof_launch *l)
{
    uint64_t pointer = 0;
    if (root->kind != PROOF_ROOT_PARAM)
        return (struct buffer){.looked_up = true, .judged = judge_variable(root, l->dynamic_shared)};
    if (root->at <= l->params_size && l->params_size - root->at >= sizeof pointer)
        memcpy(&pointer, (const char *)l->params + root->at, sizeof pointer);
    if (check_prove_buffer) {
        bool lasts = true;
        struct judge_buffer judged = check_prove_buffer(pointer, &lasts);
        return (struct buffer){.looked_up = true, .passes = !lasts, .pointer = pointer, .judged = judged};
    }
    const struct track_block *b = pointer ? track_announced(pointer) : NULL;
    b = b || !pointer ? b : track_live(pointer);
    if (!b)
        return find_lost(root, pointer);
    // When memory of a graph is valid is unknown, and what a pool has not announced is not valid.
    if (b->facts.family == TRACK_GRAPH || atomic_load_explicit(&b->pooled, memory_order_relaxed))
        return (struct buffer){.looked_up = true, .pointer = pointer};
    return (struct buffer){
        .looked_up = true,
        .pointer = pointer,
        .judged = {.known = true, .size = b->range.size, .into = pointer - b->range.base},
        .base = b->range.base,
    };
}

// pointer: the root's value, 0 for variables.
static bool is_aligned(const struct pass_check_asked *asked, const struct proof_root *root,
                       const struct proof_bound *bound, uint64_t pointer)
{
    uint64_t wrong = asked->align - 1;
    if (asked->follows)
        return !(pointer & wrong);
    bool known = asked->align <= 1u << bound->power &&
                 (root->kind == PROOF_ROOT_PARAM || asked->align <= 1u << root->power);
    return known && !((pointer + bound->residue) & wrong);
}

// Returns whether an access is right that starts from a root.
static bool is_inside(const struct check_prove *p, const struct proof_launch *l, uint32_t access,
                      const struct proof_bound *bound, uint32_t root, struct buffer *buffers)
{
    struct buffer *b = &buffers[root];
    if (!b->looked_up)
        *b = find(&p->proof.roots[root], l);
    return is_aligned(&p->asked[access], &p->proof.roots[root], bound, b->pointer) &&
           judge_bound(bound, &b->judged).verdict == JUDGE_INSIDE;
}

// Returns whether an access is right in every thread of the launch, from each root that it may start from.
static bool is_right(const struct check_prove *p, const struct proof_launch *l, uint32_t access,
                     const struct proof_bound *bound, struct buffer *buffers)
{
    uint32_t asked = p->asked[access].root;
    if (bound->verdict == PROOF_UNREACHABLE)
        return true;
    if (bound->verdict != PROOF_BOUNDED || bound->root == PROOF_NONE)
        return false;
    const struct proof_root *root = &p->proof.roots[bound->root];
    if (asked != PASS_CHECK_ANY_ROOT && (root->kind != PROOF_ROOT_PARAM || root->at != asked))
        return false;
    bool right = true;
    if (root->kind != PROOF_ROOT_CHOICE)
        return is_inside(p, l, access, bound, bound->root, buffers);
    for (uint32_t i = 0; i < p->proof.head->nroots && right; i++)
        if (proof_root_may_be(&p->proof, bound->root, i))
            right = is_inside(p, l, access, bound, i, buffers);
    return right;
}

// Returns whether the access is checked by the root that its bound is relative to, and by no other.
static bool is_own_root(const struct check_prove *p, uint32_t access, const struct proof_bound *bound)
{
    const struct proof_root *root = &p->proof.roots[bound->root];
    uint32_t asked = p->asked[access].root;
    return root->kind == PROOF_ROOT_PARAM ? root->strong && asked == root->at : asked == PASS_CHECK_ANY_ROOT;
}

// Finds accesses that are certain to be wrong. Call it inside an epoch section.
static void find_certain(const struct check_prove *p, const struct proof_launch *l,
                         const struct proof_bound *bounds, struct buffer *buffers, struct check_certain *to)
{
    for (uint32_t i = 0; i < p->proof.head->naccesses && to->n < CHECK_CERTAIN; i++) {
        const struct proof_bound *b = &bounds[i];
        if (p->asked[i].site == PASS_CHECK_UNASKED || b->verdict != PROOF_BOUNDED || !b->exact ||
            b->root == PROOF_NONE)
            continue;
        struct buffer *buffer = &buffers[b->root];
        if (!buffer->looked_up)
            *buffer = find(&p->proof.roots[b->root], l);
        struct judge_answer a = judge_bound(b, &buffer->judged);
        if (a.verdict != JUDGE_OUTSIDE && !buffer->lost)
            continue;
        to->at[to->n++] = (struct check_certain_row){
            .site = p->asked[i].site,
            .access = is_own_root(p, i, b) ? i : PROOF_NONE,
            .kind = buffer->lost   ? buffer->lost
                    : buffer->base ? KCHECK_LEFT
                                   : KCHECK_OUTSIDE_VARIABLE,
            .before = buffer->lost ? 0 : a.before,
            .needs = buffer->lost ? 0 : a.needs,
            .base = buffer->base,
            .size = buffer->judged.size,
            .pointer = buffer->pointer,
            .bound = *b,
        };
    }
}

// What the bounds of a launch prove. *wide: whether narrower ones might prove more.
static enum check_proved judge_all(const struct check_prove *p, const struct proof_launch *l,
                                   const struct proof_bound *bounds, struct buffer *buffers, bool *wide)
{
    bool all = p->may_be_bare, rest = p->has_rest;
    unsigned section = epoch_enter();
    *wide = false;
    for (uint32_t i = 0; i < p->proof.head->naccesses && (all || rest); i++) {
        const struct pass_check_asked *asked = &p->asked[i];
        // Of the others nothing is to be known once some access is not right.
        if (asked->site == PASS_CHECK_UNASKED || (!asked->rest && !all))
            continue;
        if (is_right(p, l, i, &bounds[i], buffers))
            continue;
        *wide |= bounds[i].verdict == PROOF_BOUNDED;
        all = false;
        rest &= !asked->rest;
    }
    epoch_leave(section);
    return all ? CHECK_PROVED_ALL : rest ? CHECK_PROVED_REST : CHECK_PROVED_NOTHING;
}

static uint64_t threads_of(const uint32_t grid[3], const uint32_t block[3])
{
    uint64_t n = (uint64_t)block[0] * block[1] * block[2] * grid[0];
    return __builtin_mul_overflow(n, (uint64_t)grid[1] * grid[2], &n) ? UINT64_MAX : n;
}

// Finds the bounds of a launch, by an evaluation if these are worth their time. Requires the lock of the
// proof's area.
static int bounds_of(const struct check_prove *p, const struct proof_launch *l, void *work,
                     const struct proof_bound **bounds)
{
    bool remembered;
    if (!worth_evaluating(p->worth)) {
        int err = proof_memo_find(p->memo, l, work, bounds);
        if (err == -EAGAIN) {
            worth_refused(p->worth);
            guard_count(GUARD_CHECK_UNTRIED);
        }
        return err;
    }
    int err = proof_memo_eval(p->memo, l, work, bounds, &remembered);
    if (!err && !remembered && !proof_memo_is_closed(p->memo))
        worth_spent(p->worth, p->proof.head->ninsns);
    return err;
}

// Evaluates a launch of which a closed form gave bounds that prove too little. Returns false if that cannot
// help, or is not worth its time; *untried is set to true then.
static bool renew(const struct check_prove *p, const struct proof_launch *l, void *work,
                  const struct proof_bound **bounds, bool *untried)
{
    if (!proof_memo_is_closed(p->memo))
        return false;
    *untried = !worth_evaluating(p->worth);
    if (*untried) {
        worth_refused(p->worth);
        guard_count(GUARD_CHECK_UNTRIED);
        return false;
    }
    worth_spent(p->worth, p->proof.head->ninsns);
    return proof_memo_renew(p->memo, l, work, bounds);
}

// Requires the lock of the proof's area.
static enum check_proved evaluate(const struct check_prove *p, const struct proof_launch *l,
                                  struct check_certain *certain, bool *lasts)
{
    struct buffer *buffers = (struct buffer *)p->area->memory;
    char *work = p->area->memory + buffers_size(&p->proof);
    const struct proof_bound *bounds;
    bool wide, untried = false;
    *lasts = false;
    worth_settle(p->worth);
    if (bounds_of(p, l, work, &bounds))
        return CHECK_PROVED_NOTHING;
    memset(buffers, 0, buffers_size(&p->proof));
    enum check_proved proved = judge_all(p, l, bounds, buffers, &wide);
    if (wide && renew(p, l, work, &bounds, &untried))
        proved = judge_all(p, l, bounds, buffers, &wide);
    *lasts = !untried;
    for (uint32_t i = 0; i < p->proof.head->nroots; i++)
        *lasts &= !buffers[i].passes;
    if (proved != CHECK_PROVED_NOTHING)
        worth_won(p->worth, threads_of(l->grid, l->block), p->naccesses);
    if (proved != CHECK_PROVED_ALL && certain) {
        unsigned section = epoch_enter();
        find_certain(p, l, bounds, buffers, certain);
        epoch_leave(section);
    }
    return proved;
}

bool check_prove_is_idle(const struct check_prove *p)
{
    return !p->asks;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Returns how many evaluations the next one stands for in the sum of their times; 0: it is not timed. The
// first ones of a thread are timed each, later ones by a sample, since the clock takes as long as a
// remembered answer.
static unsigned is_timed(void)
{
    enum { EACH = 64, SAMPLE = 16 };
    static __thread unsigned n __attribute__((tls_model("initial-exec")));
    unsigned i = n++;
    return i < EACH ? 1 : i % SAMPLE ? 0 : SAMPLE;
}

enum check_proved check_prove_holds(const struct check_prove *p, const struct launch_call *l,
                                    const void *bytes, size_t size, struct check_certain *certain,
                                    bool *lasts)
{
    struct proof_launch launch = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                                  .block = {l->block[0], l->block[1], l->block[2]},
                                  .dynamic_shared = l->shared,
                                  .params_size = (uint32_t)size,
                                  .params = bytes};
    bool unwanted;
    lasts = lasts ? lasts : &unwanted;
    *lasts = true;
    if (certain)
        certain->n = 0;
    if (!p->asks)  // the kernel accesses nothing that is checked
        return CHECK_PROVED_ALL;
    unsigned timed = is_timed();
    uint64_t start = timed ? now() : 0;
    lock_take(&p->area->lock);
    enum check_proved proved = evaluate(p, &launch, certain, lasts);
    lock_give(&p->area->lock);
    if (timed)
        guard_add(GUARD_CHECK_PROVING, timed * (now() - start));
    return proved;
}

void check_prove_again(const struct check_prove *p, const struct launch_call *l)
{
    worth_won_aside(p->worth, threads_of(l->grid, l->block), p->naccesses);
}

bool check_prove_says(const struct check_prove *p, enum check_proved proved, uint32_t site)
{
    for (uint32_t i = 0; i < p->proof.head->naccesses; i++)
        if (p->asked[i].site == site && (proved == CHECK_PROVED_ALL || p->asked[i].rest))
            return proved != CHECK_PROVED_NOTHING;
    return false;
}

const struct proof *check_prove_proof(const struct check_prove *p)
{
    return &p->proof;
}
