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

// The buffer of a root, as the launch finds it, or as an earlier one has found it.
struct buffer {
    uint64_t launch;   // that it was looked at for last, by its number in struct found
    uint64_t version;  // track_changes() + 1 when it was looked up; 0: the next launch must look it up again
    uint64_t pointer;  // 0 for variables
    struct judge_buffer judged;
    // Of what is not known: enum kcheck_kind of every access by way of it; 0: there may be none. Then also
    // the buffer that was freed.
    uint32_t lost;
    uint64_t base;
};

// The buffers of a proof's roots: most launches are passed the pointers of the one before.
struct found {
    uint64_t launch;  // how many launches have asked so far
    struct buffer buffers[];
};

// Memory for one evaluation: the work area of proof_eval. The lock also protects what is remembered for the
// proofs that use the area. Several areas let launches of several threads go on side by side.
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

// Equal proofs, with equal sites, are one. The members never change; what `memo`, `found` and `worth` point
// to does.
struct check_prove {
    struct check_prove *next;
    uint64_t hash;
    struct proof proof;  // of the bytes that follow the struct
    struct pass_check_asked *asked;
    bool asks;                   // some access is asked for
    bool may_be_bare, has_rest;  // pass_check.h
    uint32_t naccesses;          // that are asked for
    // All three are protected by the area's lock.
    struct proof_memo *memo;
    struct found *found;
    struct worth *worth;
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

static size_t found_size(const struct proof *p)
{
    return round_up(sizeof(struct found) + p->head->nroots * sizeof(struct buffer));
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
           asked = round_up(asked_size(k)), worth = round_up(sizeof(struct worth)),
           found = found_size(&given);
    char *memory = mem_alloc(head + bytes + asked + worth + found + proof_memo_size(&given));
    struct area *area = &areas[hash / CHAINS % AREAS];
    if (!memory || !grow(area, proof_work_size(&given))) {
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
    row->found = memset(memory + head + bytes + asked + worth, 0, found);
    lock_take(&area->lock);
    row->memo = proof_memo_init(&row->proof, memory + head + bytes + asked + worth + found, area->memory);
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
    struct buffer found = {.pointer = pointer};
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

// What is asked of a launch: inside an epoch section from the first lookup on.
struct judging {
    const struct check_prove *p;
    const struct proof_launch *l;
    uint64_t version;  // as in struct buffer
    bool passes;       // a later launch must look up some buffer again
    bool inside;
    unsigned section;
};

// The version comes before all lookups: what they find is kept as of then.
static struct judging judging_start(const struct check_prove *p, const struct proof_launch *l)
{
    p->found->launch++;
    return (struct judging){.p = p, .l = l, .version = track_changes() + 1};
}

static void judging_end(struct judging *j)
{
    if (j->inside)
        epoch_leave(j->section);
}

static uint64_t pointer_of(const struct proof_root *root, const struct proof_launch *l)
{
    uint64_t pointer = 0;
    if (root->at <= l->params_size && l->params_size - root->at >= sizeof pointer)
        memcpy(&pointer, (const char *)l->params + root->at, sizeof pointer);
    return pointer;
}

// Finds the buffer that a pointer among the parameters points into.
static struct buffer find(const struct proof_root *root, uint64_t pointer)
{
    const struct track_block *b = pointer ? track_announced(pointer) : NULL;
    b = b || !pointer ? b : track_live(pointer);
    if (!b)
        return find_lost(root, pointer);
    // When memory of a graph is valid is unknown, and what a pool has not announced is not valid.
    if (b->facts.family == TRACK_GRAPH || atomic_load_explicit(&b->pooled, memory_order_relaxed))
        return (struct buffer){.pointer = pointer};
    return (struct buffer){
        .pointer = pointer,
        .judged = {.known = true, .size = b->range.size, .into = pointer - b->range.base},
        .base = b->range.base,
    };
}

static struct buffer look_up(struct judging *j, const struct proof_root *root, uint64_t pointer)
{
    if (root->kind != PROOF_ROOT_PARAM)
        return (struct buffer){.judged = judge_variable(root, j->l->dynamic_shared)};
    if (check_prove_buffer) {
        bool lasts = true;
        struct judge_buffer judged = check_prove_buffer(pointer, &lasts);
        j->passes |= !lasts;
        return (struct buffer){.pointer = pointer, .judged = judged};
    }
    if (!j->inside)
        j->section = epoch_enter();
    j->inside = true;
    struct buffer b = find(root, pointer);
    b.version = j->version;
    return b;
}

// Returns the buffer of a root. It is looked up if no launch has done so since buffers changed last, or if
// this one has another pointer.
static const struct buffer *buffer_of(struct judging *j, uint32_t number)
{
    struct buffer *b = &j->p->found->buffers[number];
    const struct proof_root *root = &j->p->proof.roots[number];
    if (b->launch == j->p->found->launch)
        return b;
    uint64_t pointer = root->kind == PROOF_ROOT_PARAM ? pointer_of(root, j->l) : 0;
    if (b->version != j->version || b->pointer != pointer)
        *b = look_up(j, root, pointer);
    b->launch = j->p->found->launch;
    return b;
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
static bool is_inside(struct judging *j, uint32_t access, const struct proof_bound *bound, uint32_t root)
{
    const struct check_prove *p = j->p;
    const struct buffer *b = buffer_of(j, root);
    return is_aligned(&p->asked[access], &p->proof.roots[root], bound, b->pointer) &&
           judge_bound(bound, &b->judged).verdict == JUDGE_INSIDE;
}

// Returns whether an access is right in every thread of the launch, from each root that it may start from.
static bool is_right(struct judging *j, uint32_t access, const struct proof_bound *bound)
{
    const struct check_prove *p = j->p;
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
        return is_inside(j, access, bound, bound->root);
    for (uint32_t i = 0; i < p->proof.head->nroots && right; i++)
        if (proof_root_may_be(&p->proof, bound->root, i))
            right = is_inside(j, access, bound, i);
    return right;
}

// Returns whether the access is checked by the root that its bound is relative to, and by no other.
static bool is_own_root(const struct check_prove *p, uint32_t access, const struct proof_bound *bound)
{
    const struct proof_root *root = &p->proof.roots[bound->root];
    uint32_t asked = p->asked[access].root;
    return root->kind == PROOF_ROOT_PARAM ? root->strong && asked == root->at : asked == PASS_CHECK_ANY_ROOT;
}

// Finds accesses that are certain to be wrong.
static void find_certain(struct judging *j, const struct proof_bound *bounds, struct check_certain *to)
{
    const struct check_prove *p = j->p;
    for (uint32_t i = 0; i < p->proof.head->naccesses && to->n < CHECK_CERTAIN; i++) {
        const struct proof_bound *b = &bounds[i];
        if (p->asked[i].site == PASS_CHECK_UNASKED || b->verdict != PROOF_BOUNDED || !b->exact ||
            b->root == PROOF_NONE)
            continue;
        const struct buffer *buffer = buffer_of(j, b->root);
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
static enum check_proved judge_all(struct judging *j, const struct proof_bound *bounds, bool *wide)
{
    const struct check_prove *p = j->p;
    bool all = p->may_be_bare, rest = p->has_rest;
    *wide = false;
    for (uint32_t i = 0; i < p->proof.head->naccesses && (all || rest); i++) {
        const struct pass_check_asked *asked = &p->asked[i];
        // Of the others nothing is to be known once some access is not right.
        if (asked->site == PASS_CHECK_UNASKED || (!asked->rest && !all))
            continue;
        if (is_right(j, i, &bounds[i]))
            continue;
        *wide |= bounds[i].verdict == PROOF_BOUNDED;
        all = false;
        rest &= !asked->rest;
    }
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

// Judges by bounds that only a closed form has to give, if the launches before were answered by one. Returns
// false if that proves less than the launch might. Requires the lock of the proof's area.
static bool judge_closed(struct judging *j, const struct proof_bound **bounds, enum check_proved *proved)
{
    bool wide;
    if (!proof_memo_closed(j->p->memo, j->l, bounds))
        return false;
    *proved = judge_all(j, *bounds, &wide);
    return !wide;
}

// Judges by bounds from wherever they come. Returns false if there are none. *untried: whether an evaluation
// that might prove more was not worth its time. Requires the lock of the proof's area.
static bool judge_any(struct judging *j, void *work, const struct proof_bound **bounds,
                      enum check_proved *proved, bool *untried)
{
    bool wide;
    if (bounds_of(j->p, j->l, work, bounds))
        return false;
    *proved = judge_all(j, *bounds, &wide);
    if (wide && renew(j->p, j->l, work, bounds, untried))
        *proved = judge_all(j, *bounds, &wide);
    return true;
}

// Requires the lock of the proof's area.
static enum check_proved evaluate(const struct check_prove *p, const struct proof_launch *l,
                                  struct check_certain *certain, bool *lasts)
{
    const struct proof_bound *bounds;
    enum check_proved proved;
    bool untried = false;
    struct judging j = judging_start(p, l);
    worth_settle(p->worth);
    bool judged =
        judge_closed(&j, &bounds, &proved) || judge_any(&j, p->area->memory, &bounds, &proved, &untried);
    if (!judged)
        proved = CHECK_PROVED_NOTHING;
    *lasts = judged && !untried && !j.passes;
    if (proved != CHECK_PROVED_NOTHING)
        worth_won(p->worth, threads_of(l->grid, l->block), p->naccesses);
    if (judged && proved != CHECK_PROVED_ALL && certain)
        find_certain(&j, bounds, certain);
    judging_end(&j);
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
