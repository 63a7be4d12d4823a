// SPDX-License-Identifier: MIT
// Grids and their blocks. A block runs warp by warp, each for one turn; after that it goes to the end of the
// grid's queue unless it has ended. So blocks that wait for one another all make progress, whatever thread
// runs them.
//
// The blocks of a cluster are handled as one: the first block is queued, counted and numbered, and it brings
// the others with it.
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "exec/cluster.h"
#include "exec/sched.h"
#include "exec/space.h"
#include "exec/stats.h"

enum {
    LOCAL_ALIGN = 64,
    MOST_TURNS = 256,
    STEP_TURNS = 8,  // turns of one block before its thread takes another
    RUN_MOST = 8,    // blocks in a run
    RUN_SHARE = 64,  // a run is at most this fraction of the blocks not started
};

static void grid_lock(struct exec_grid *g)
{
    // The lock is held for a few instructions only. Pairs with the release in grid_unlock.
    while (atomic_exchange_explicit(&g->lock, 1, memory_order_acquire))
        __builtin_ia32_pause();
}

static void grid_unlock(struct exec_grid *g)
{
    atomic_store_explicit(&g->lock, 0, memory_order_release);
}

static bool is_stopped(struct exec_grid *g)
{
    return atomic_load_explicit(&g->stop, memory_order_acquire) != GRID_RUNS;
}

// --- blocks ------------------------------------------------------------------------------------------------

static void one_free(struct exec_block *b)
{
    if (!b)
        return;
    frame_free_all(b);
    for (uint32_t k = 0; b->warps && k < b->nwarps; k++)
        mem_free(b->warps[k].local);
    mem_free(b->free_frames);
    mem_free(b->shared);
    mem_free(b->warps);
    mem_free(b);
}

static void block_free(struct exec_block *b)
{
    if (!b)
        return;
    struct exec_cluster *c = b->cluster;
    for (uint32_t r = c ? c->size : 0; r-- > 1;)
        one_free(c->blocks[r]);
    mem_free(c);
    one_free(b);
}

static void set_tids(struct exec_warp *w, const uint32_t size[3])
{
    for (uint32_t l = 0; l < EXEC_LANES; l++) {
        uint32_t t = w->index * EXEC_LANES + l;
        w->tid[0][l] = t % size[0];
        w->tid[1][l] = t / size[0] % size[1];
        w->tid[2][l] = t / size[0] / size[1];
    }
}

static struct exec_block *one_make(struct exec_grid *g)
{
    struct exec_block *b = mem_zalloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->grid = g;
    b->nwarps = g->nwarps;
    b->nthreads = g->nthreads;
    b->shared_size = g->shared_size;
    b->warps = mem_zalloc(g->nwarps, sizeof *b->warps);
    b->free_frames = mem_zalloc(g->func->program->nfuncs, sizeof(struct exec_frame *));
    b->shared = mem_zalloc(1, g->shared_size + 64);
    bool complete = b->warps && b->free_frames && b->shared;
    for (uint32_t k = 0; complete && k < g->nwarps; k++) {
        struct exec_warp *w = &b->warps[k];
        w->block = b;
        w->index = k;
        set_tids(w, g->launch.block);
        // Fresh memory is zeroed and costs nothing until it is used.
        w->local = mem_zalloc(EXEC_LANES, g->local_size + LOCAL_ALIGN);
        complete = w->local != NULL;
    }
    if (complete)
        return b;
    one_free(b);
    return NULL;
}

// Creates the blocks of a cluster and returns the first; a block without a cluster is a cluster of one.
// Returns NULL when out of memory.
static struct exec_block *block_make(struct exec_grid *g)
{
    struct exec_block *first = one_make(g);
    struct exec_cluster *c =
        first ? mem_zalloc(1, sizeof *c + g->cluster_size * sizeof(struct exec_block *)) : NULL;
    if (!c) {
        one_free(first);
        return NULL;
    }
    first->cluster = c;
    for (; c->size < g->cluster_size; c->size++) {
        struct exec_block *b = c->size ? one_make(g) : first;
        if (!b) {
            block_free(first);
            return NULL;
        }
        b->cluster = c;
        b->rank = c->size;
        b->shared_base = (uint32_t)cluster_address(0, b->rank);
        c->blocks[c->size] = b;
    }
    return first;
}

static bool warp_start(struct exec_warp *w, const struct exec_func *f)
{
    uint32_t left = w->block->nthreads - w->index * EXEC_LANES;
    w->frame = frame_new(w->block, f);
    if (!w->frame)
        return false;
    w->frame->caller = NULL;
    w->frame->depth = 0;
    w->frame->local_base = 0;
    w->frame->local_top = f->local_size;
    w->regs = w->frame->regs;
    w->alive = w->mask = left >= EXEC_LANES ? EXEC_ALL : ((uint32_t)1 << left) - 1;
    w->carry = 0;
    w->arrived = 0;
    w->nsplits = 0;
    w->pc = f->code;
    w->state = WARP_READY;
    w->fuel = SCHED_FUEL;
    w->spins = w->oldest_first = w->released = false;
    return true;
}

// Computes the coordinates of element n of a box of that size.
static void place_in(const uint32_t size[3], uint64_t n, uint32_t at[3])
{
    at[0] = (uint32_t)(n % size[0]);
    at[1] = (uint32_t)(n / size[0] % size[1]);
    at[2] = (uint32_t)(n / size[0] / size[1]);
}

static bool one_start(struct exec_block *b, uint64_t number)
{
    const struct exec_grid *g = b->grid;
    uint32_t own[3];
    b->number = number;
    place_in(g->nclusters, number, b->ctaid);
    place_in(g->cluster, b->rank, own);
    for (unsigned k = 0; k < 3; k++)
        b->ctaid[k] = b->ctaid[k] * g->cluster[k] + own[k];
    b->ended = 0;
    b->ready = b->nwarps == 32 ? UINT32_MAX : ((uint32_t)1 << b->nwarps) - 1;
    for (uint32_t k = 0; k < EXEC_BARRIERS; k++)
        b->barriers[k] = (struct exec_barrier){.all = 1};
    for (uint32_t k = 0; k < b->nwarps; k++)
        if (!warp_start(&b->warps[k], b->grid->func))
            return false;
    return true;
}

static bool block_start(struct exec_block *b, uint64_t number)
{
    bool started = true;
    b->cluster->arrived = 0;
    for (uint32_t r = 0; r < b->cluster->size; r++)
        started &= one_start(b->cluster->blocks[r], number);
    return started;
}

// Processors predict an indirect call's target from its address and the path to it. So each instruction of a
// straight stretch has a call site of its own, and a jump starts over at the first site. If the sites were
// used round-robin throughout, a loop's instructions would use other sites in each iteration, and could not
// be predicted from the one before.
static void run(struct exec_warp *w, const struct exec_insn *i)
{
    for (const struct exec_insn *next; i; i = next)
#pragma GCC unroll 32
        for (unsigned k = 0; k < 32; k++) {
            next = i->fn(w, i);
            if (next != i + 1)
                break;
            i = next;
        }
}

static void warp_run(struct exec_warp *w)
{
    w->spins = false;
    w->fuel = SCHED_FUEL;
    const struct exec_insn *i = w->mask ? w->pc : sched_next(w);
    if (w->block->grid->stats) {
        stats_run(w, i);
        return;
    }
    run(w, i);
}

enum block_state { BLOCK_RAN, BLOCK_SPUN, BLOCK_DONE, BLOCK_STARVED, BLOCK_STUCK };

// Gives each ready warp one turn.
static enum block_state one_run(struct exec_block *b)
{
    struct exec_grid *g = b->grid;
    bool spun = true, ran = false;
    for (uint32_t k = 0; k < b->nwarps; k++) {
        if (!(b->ready >> k & 1))
            continue;
        if (is_stopped(g))
            return BLOCK_DONE;
        struct exec_warp *w = &b->warps[k];
        warp_run(w);
        ran = true;
        spun &= w->spins;
        if (w->state == WARP_FAULT)
            return BLOCK_DONE;
        // A barrier may have opened after the warp began to wait: then it can still run.
        if (w->state != WARP_READY && !(w->state == WARP_WAITS && sched_can_run(w)))
            b->ready &= ~((uint32_t)1 << k);
    }
    if (b->ended == b->nthreads)
        return BLOCK_DONE;
    return !ran || !b->ready ? BLOCK_STUCK : spun ? BLOCK_SPUN : BLOCK_RAN;
}

// Raises a fault in a block that is deadlocked.
static void raise_deadlock(struct exec_block *b)
{
    struct exec_warp *w = b->warps;
    while (w->state == WARP_DONE)
        w++;
    const struct exec_insn *i = w->nsplits ? w->splits[0].pc : w->pc;
    if (w->nsplits)
        frame_enter(w, w->splits[0].frame);
    fault_raise(w, i, EXEC_LAUNCH_FAILED);
}

// Gives each block a turn. A block that is stuck may continue after another has run.
static enum block_state cluster_run(struct exec_cluster *c)
{
    bool spun = true;
    struct exec_block *stuck = NULL;
    for (uint32_t r = 0; r < c->size; r++) {
        struct exec_block *b = c->blocks[r];
        if (b->ended < b->nthreads && b->ready)
            spun &= one_run(b) == BLOCK_SPUN;
        if (is_stopped(b->grid))
            return BLOCK_DONE;
    }
    for (uint32_t r = 0; r < c->size; r++) {
        if (c->blocks[r]->ready)
            return spun ? BLOCK_SPUN : BLOCK_RAN;
        if (c->blocks[r]->ended < c->blocks[r]->nthreads)
            stuck = c->blocks[r];
    }
    if (stuck)
        raise_deadlock(stuck);
    return BLOCK_DONE;
}

static enum block_state block_run(struct exec_block *b)
{
    if (b->cluster->size > 1)
        return cluster_run(b->cluster);
    enum block_state state = one_run(b);
    if (state != BLOCK_STUCK)
        return state;
    raise_deadlock(b);
    return BLOCK_DONE;
}

// --- grids -------------------------------------------------------------------------------------------------

static uint32_t local_need(const struct exec_grid *g)
{
    const struct exec_func *f = g->func;
    uint64_t need = f->local_size;
    if (f->stack_size != UINT32_MAX && !f->kernel->recursive)
        need = f->stack_size;
    else
        need += (uint64_t)g->launch.stack_size + f->program->most_stack;
    need = (need + 15) & ~(uint64_t)15;
    return need > SPACE_WINDOW / 4 ? (uint32_t)(SPACE_WINDOW / 4) : (uint32_t)need;
}

struct exec_grid *exec_grid_new(const struct exec_launch *launch, struct exec_stats *stats)
{
    struct exec_grid *g = mem_zalloc(1, sizeof *g + 64);
    if (!g)
        return NULL;
    g->launch = *launch;
    g->skipped = launch->skipped ? mem_zalloc(GRID_SKIPPED, sizeof *g->skipped) : NULL;
    if (launch->skipped && !g->skipped) {
        mem_free(g);
        return NULL;
    }
    g->stats = stats;
    g->func = program_entry(launch->kernel);
    g->params = space_host(launch->params);
    g->nthreads = launch->block[0] * launch->block[1] * launch->block[2];
    g->nwarps = (g->nthreads + EXEC_LANES - 1) / EXEC_LANES;
    g->dynamic_base = EXEC_RESERVED_SHARED + ((launch->kernel->shared_size + 15) & ~15u);
    g->shared_size = g->dynamic_base + launch->dynamic_shared;
    g->cluster_size = 1;
    g->nblocks = 1;
    for (unsigned k = 0; k < 3; k++) {
        g->cluster[k] = launch->cluster[k] ? launch->cluster[k] : 1;
        g->nclusters[k] = launch->grid[k] / g->cluster[k];
        g->cluster_size *= g->cluster[k];
        g->nblocks *= g->nclusters[k];
    }
    uint32_t resident = launch->most_resident / g->cluster_size;
    g->launch.most_resident = resident ? resident : 1;
    g->local_size = local_need(g);
    g->suspended_end = &g->suspended;
    return g;
}

static void free_list(struct exec_block *b)
{
    for (struct exec_block *next; b; b = next) {
        next = b->next;
        block_free(b);
    }
}

void exec_grid_free(struct exec_grid *g)
{
    if (!g)
        return;
    free_list(g->suspended);
    free_list(g->free);
    free_list(g->starved);
    mem_free(g->skipped);
    mem_free(g);
}

// Returns a free block, preferably one that ran on this thread last, whose registers are in its cache; NULL
// if there is none.
static struct exec_block *take_free(struct exec_grid *g, const struct exec_runner *r)
{
    struct exec_block **at = &g->free;
    for (unsigned k = 0; k < 4 && *at && (*at)->runner != r; k++)
        at = &(*at)->next;
    if (!*at)
        at = &g->free;
    struct exec_block *b = *at;
    if (b)
        *at = b->next;
    return b;
}

// Returns the next blocks to start: one, or several for the same thread.
static struct grid_run take_run(struct exec_grid *g)
{
    if (g->nleft) {
        struct grid_run *left = &g->left[g->nleft - 1];
        struct grid_run one = {left->next, left->next + 1};
        g->nleft -= ++left->next == left->end;
        return one;
    }
    uint64_t n = (g->nblocks - g->started) / RUN_SHARE;
    n = n > RUN_MOST ? RUN_MOST : n;
    if (n < 2 || g->suspends || g->launch.cooperative || g->nruns == GRID_RUNS_MOST)
        n = 1;
    g->nruns += n > 1;
    g->started += n;
    return (struct grid_run){g->started - n, g->started};
}

// Returns a block to start, and in *run the numbers to start in it. Returns NULL when out of memory; the
// numbers are then left for a block that ends.
static struct exec_block *take_fresh(struct exec_grid *g, const struct exec_runner *r, struct grid_run *run)
{
    struct exec_block *b = take_free(g, r), *starved = g->starved;
    if (!b && !starved)
        b = block_make(g);
    if (!b)
        return NULL;
    if (starved) {
        *run = (struct grid_run){starved->number, starved->number + 1};
        g->starved = starved->next;
        block_free(starved);
    } else {
        *run = take_run(g);
    }
    g->resident++;
    g->spun = false;
    g->turns = 0;
    return b;
}

static struct exec_block *take_suspended(struct exec_grid *g)
{
    struct exec_block *b = g->suspended;
    if (!b)
        return NULL;
    g->suspended = b->next;
    if (!g->suspended)
        g->suspended_end = &g->suspended;
    return b;
}

// Returns the block to run next, NULL if there is none. *run: the numbers to start in it, empty if the block
// resumes. The lock must be held.
static struct exec_block *pick(struct exec_grid *g, const struct exec_runner *r, struct grid_run *run)
{
    uint64_t most = g->launch.cooperative ? UINT64_MAX : g->launch.most_resident;
    bool fresh = (g->started < g->nblocks || g->starved || g->nleft) && g->resident < most;
    // A block that only waits may be waiting for one that has not started.
    bool turn = g->launch.cooperative || g->spun || g->turns >= MOST_TURNS;
    struct exec_block *b = NULL;
    *run = (struct grid_run){0, 0};
    if (fresh && (turn || !g->suspended))
        b = take_fresh(g, r, run);
    // Blocks of a cooperative grid wait for all others: if memory does not suffice for all, resuming some is
    // pointless.
    if (!b && !(fresh && g->launch.cooperative))
        b = take_suspended(g);
    g->running += b != NULL;
    return b;
}

// The lock must be held.
static bool is_over(struct exec_grid *g)
{
    return g->running == 0 && (g->ended == g->nblocks || is_stopped(g));
}

struct turn_done {
    enum block_state state;
    uint64_t ended;  // blocks that ended
    uint32_t turns;  // turns of the last block
    bool had_run;    // more than one block was to start
    struct grid_run left;
};

static void put_back(struct exec_grid *g, struct exec_block *b, const struct turn_done *done)
{
    g->running--;
    g->ended += done->ended;
    g->nruns -= done->had_run;
    if (done->left.next < done->left.end) {
        g->left[g->nleft++] = done->left;
        g->suspends = true;
    }
    if (done->ended)
        g->turns = 0;
    if (done->state == BLOCK_STARVED) {
        g->resident--;
        b->next = g->starved;
        g->starved = b;
        return;
    }
    if (done->state == BLOCK_DONE) {
        g->resident--;
        b->next = g->free;
        g->free = b;
        return;
    }
    g->suspends = true;
    g->spun |= done->state == BLOCK_SPUN;
    g->turns += done->turns;
    b->next = NULL;
    *g->suspended_end = b;
    g->suspended_end = &b->next;
}

// Starts the blocks of the run in b one after the other, as long as each ends at once; with an empty run,
// resumes b.
static struct turn_done run_in(struct exec_block *b, struct grid_run run)
{
    // Blocks of a cooperative grid do little between two barriers, and others wait for it.
    const uint32_t most = b->grid->launch.cooperative ? 1 : STEP_TURNS;
    struct turn_done done = {.state = BLOCK_RAN, .had_run = run.end - run.next > 1, .left = run};
    do {
        if (run.end && !block_start(b, done.left.next++)) {
            for (uint32_t k = 0; k < b->cluster->size; k++)
                frame_free_all(b->cluster->blocks[k]);
            done.state = BLOCK_STARVED;
            break;
        }
        done.turns = 0;
        do {
            done.state = block_run(b);
        } while (done.state == BLOCK_RAN && ++done.turns < most);
        done.ended += done.state == BLOCK_DONE;
    } while (done.state == BLOCK_DONE && done.left.next < done.left.end && !is_stopped(b->grid));
    return done;
}

enum exec_step exec_grid_step(struct exec_grid *g, struct exec_runner *r)
{
    struct grid_run run;
    grid_lock(g);
    if (is_stopped(g) || g->ended == g->nblocks) {
        bool over = is_over(g);
        grid_unlock(g);
        return over ? EXEC_DONE : EXEC_EMPTY;
    }
    struct exec_block *b = pick(g, r, &run);
    bool starved = !b && !g->running && g->ended < g->nblocks;
    grid_unlock(g);
    if (!b) {
        if (starved)
            exec_grid_cancel(g, EXEC_OUT_OF_MEMORY);
        return starved ? EXEC_RAN : EXEC_EMPTY;
    }
    for (uint32_t k = 0; k < b->cluster->size; k++)
        b->cluster->blocks[k]->runner = r;
    struct turn_done done = run_in(b, run);
    grid_lock(g);
    put_back(g, b, &done);
    bool over = is_over(g);
    grid_unlock(g);
    return over ? EXEC_DONE : done.state == BLOCK_SPUN ? EXEC_SPUN : EXEC_RAN;
}

unsigned exec_grid_parallelism(struct exec_grid *g)
{
    grid_lock(g);
    uint64_t n = g->nblocks - g->started;
    for (struct exec_block *b = g->suspended; b && n < 1024; b = b->next)
        n++;
    grid_unlock(g);
    return n > 1024 ? 1024 : (unsigned)n;
}

const struct exec_fault *exec_grid_fault(const struct exec_grid *g)
{
    return &g->fault;
}

void exec_grid_cancel(struct exec_grid *g, enum exec_fault_kind kind)
{
    int expected = GRID_RUNS;
    // Pairs with the acquire in is_stopped.
    if (atomic_compare_exchange_strong_explicit(&g->stop, &expected, GRID_FAULTING, memory_order_acq_rel,
                                                memory_order_acquire)) {
        g->fault = (struct exec_fault){.kind = kind, .kernel = g->launch.kernel};
        atomic_store_explicit(&g->stop, GRID_STOPPED, memory_order_release);
    }
}

struct exec_runner *exec_runner_new(void)
{
    static _Atomic uint32_t count;
    struct exec_runner *r = mem_zalloc(1, sizeof *r);
    if (r)
        r->number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    return r;
}

void exec_runner_free(struct exec_runner *r)
{
    mem_free(r);
}
