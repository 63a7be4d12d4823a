// SPDX-License-Identifier: MIT
// Threads. Workers take ready operations and blocks of running grids. A host thread that waits does the same,
// as long as fewer than `limit` threads run work. One more thread runs the application's callbacks. Workers
// start when there is work for them, spin for SPIN_NS after the last of it (longer while others run), then
// sleep. A worker that has its runner never ends: at exit it is stopped wherever it is, so everything that
// workers touch is static or never freed.
//
// A worker goes round all running grids. It rests after a whole round in which every grid was empty, until
// `epoch` changes. A thread that leaves a grid with work in it increments epoch, so no block is left over
// while threads rest.
#include "cpu/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "base/mem.h"
#include "base/mutex.h"

enum {
    SPIN_NS = 20000,
    BUSY_SPIN_NS = 150000,  // while others run
    SLICE = 4,              // steps in one grid while there are others
    YIELDS = 64,            // rounds in which all blocks only waited, before a thread sleeps between rounds
    NAP_NS = 50000,         // length of that sleep: a store of the host wakes nobody
    SPARE_RUNNERS = 32,
};

struct queue {
    struct pool_op *first, *last;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done, callback;
    unsigned limit, cores;
    unsigned started;             // workers
    unsigned running;             // threads that hold a slot: workers and waiting host threads; <= limit
    unsigned spinning, sleeping;  // workers that spin for work; workers that sleep
    uint64_t naps;
    struct queue ready, callbacks, grids;
    uint64_t turns;
    bool callback_started;
    // Since the lock was taken: threads that new work can use, and whom to wake when the lock is released.
    unsigned need;
    bool wake_done, wake_callback;
    unsigned nspare;
    struct exec_runner *spare[SPARE_RUNNERS];
    // Written under the lock; read without it as hints, so relaxed: a thread takes the lock before it acts on
    // them.
    atomic_uint epoch, nready, ngrids;
    atomic_bool has_idle;  // another thread could run work
    atomic_bool paused;    // no operation may begin
} pool = {
    .lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
    .work = PTHREAD_COND_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
    .callback = PTHREAD_COND_INITIALIZER,
};

// A thread that runs work.
struct runner {
    struct exec_runner *exec;
    const struct pool_op *target;  // of a host thread: the operation it waits for. NULL: a worker
    bool slot;
    bool grid_next;      // its last operation was no grid
    uint64_t turn;       // of the grid that it ran last
    unsigned fruitless;  // grids in a row that had nothing to do
    bool spun;           // a block of one of them waits for others
    unsigned rounds;     // rounds in a row with nothing but waiting blocks
    unsigned epoch;      // at the begin of the round
};

static _Thread_local bool in_callback;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct grid_clock pool_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (struct grid_clock){now(), (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec};
}

static unsigned peek(const atomic_uint *a)
{
    return atomic_load_explicit(a, memory_order_relaxed);
}

static void put(atomic_uint *a, unsigned value)
{
    atomic_store_explicit(a, value, memory_order_relaxed);
}

// The engine needs the default floating-point state, whatever that of the application's thread is.
static unsigned fp_default(void)
{
#if defined(__x86_64__)
    unsigned old = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80);
    return old;
#else
    return 0;
#endif
}

static void fp_restore(unsigned old)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(old);
#else
    (void)old;
#endif
}

static void queue_push(struct queue *q, struct pool_op *op)
{
    op->next = NULL;
    op->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = op;
    q->last = op;
}

static void queue_remove(struct queue *q, struct pool_op *op)
{
    *(op->prev ? &op->prev->next : &q->first) = op->next;
    *(op->next ? &op->next->prev : &q->last) = op->prev;
    op->next = op->prev = NULL;
}

// --- operations --------------------------------------------------------------------------------------------

struct pool_op *pool_op_new(enum pool_kind kind, struct CUctx_st *ctx)
{
    struct pool_op *op = mem_zalloc(1, sizeof *op);
    if (!op)
        return NULL;
    op->kind = kind;
    op->ctx = ctx;
    op->refs = 1;
    op->waits = 1;
    op->room = POOL_EDGES;
    op->edges = op->few;
    return op;
}

int pool_op_room(struct pool_op *op, unsigned n)
{
    assert(op->nedges == 0);
    if (n <= op->room)
        return 0;
    struct pool_edge *edges = mem_alloc(n * sizeof *edges);
    if (!edges)
        return -ENOMEM;
    if (op->edges != op->few)
        mem_free(op->edges);
    op->edges = edges;
    op->room = n;
    return 0;
}

void pool_op_discard(struct pool_op *op)
{
    if (op && op->edges != op->few)
        mem_free(op->edges);
    mem_free(op);
}

void pool_release(struct pool_op *op)
{
    if (!op || --op->refs)
        return;
    assert(pool_done(op) && !op->followers);
    pool_op_discard(op);
}

void pool_depend(struct pool_op *op, struct pool_op *on)
{
    if (!on || pool_done(on))
        return;
    assert(op->nedges < op->room && op->waits > 0 && op != on);
    struct pool_edge *e = &op->edges[op->nedges++];
    *e = (struct pool_edge){op, on->followers};
    on->followers = e;
    op->waits++;
}

static bool failed(const struct CUctx_st *ctx)
{
    // Pairs with the store in cpu_context_fail. An operation without a context never fails.
    return ctx && atomic_load_explicit(&ctx->error, memory_order_acquire) != 0;
}

static void bump(unsigned threads)
{
    put(&pool.epoch, peek(&pool.epoch) + 1);
    pool.need += threads;
}

static void make_ready(struct pool_op *op)
{
    if (op->kind == POOL_CALLBACK) {
        queue_push(&pool.callbacks, op);
        pool.wake_callback = true;
        return;
    }
    bool shared = op->kind == POOL_GRID || op->kind == POOL_POLL;
    op->dropped = shared && failed(op->ctx);
    if (!shared || op->dropped) {
        queue_push(&pool.ready, op);
        put(&pool.nready, peek(&pool.nready) + 1);
        bump(1);
        return;
    }
    op->turn = ++pool.turns;
    queue_push(&pool.grids, op);
    put(&pool.ngrids, peek(&pool.ngrids) + 1);
    unsigned threads = op->kind == POOL_GRID ? exec_grid_parallelism(op->grid) : 1;
    bump(threads ? threads : 1);
}

void pool_adopt(struct pool_op *parent, struct pool_op *op, struct pool_op *begin)
{
    assert(!pool_done(parent) && !op->parent);
    op->parent = parent;
    parent->children++;
    op->begin = begin;
    if (!begin)
        return;
    op->next = NULL;
    *(parent->tail ? &parent->tail_last->next : &parent->tail) = op;
    parent->tail_last = op;
    parent->ntail++;
}

// Begins the tail children of an operation that awaits its children, if only those are left.
static void begin_tail(struct pool_op *op)
{
    if (op->children != op->ntail)
        return;
    struct pool_op *tail = op->tail;
    op->ntail = 0;
    op->tail = NULL;
    // A submitted child may end at once, and the last one ends op.
    while (tail) {
        struct pool_op *next = tail;
        tail = next->next;
        pool_submit(next->begin);
    }
}

// Ends an operation and all marks that become ready by that. Not recursive: a chain of marks may be long.
static void finish(struct pool_op *first)
{
    struct pool_op *ended = first;
    ended->next = NULL;
    while (ended) {
        struct pool_op *op = ended;
        ended = op->next;
        if (op->children) {
            op->awaits_children = true;
            begin_tail(op);
            continue;
        }
        struct pool_op *parent = op->parent;
        if (op->timed)
            op->time = now();
        pool.wake_done |= op->slept_on;
        // Pairs with pool_done.
        atomic_store_explicit(&op->done, true, memory_order_release);
        for (struct pool_edge *e = op->followers; e;) {
            struct pool_op *w = e->waiter;
            e = e->next;
            if (--w->waits)
                continue;
            if (w->kind != POOL_MARK) {
                make_ready(w);
                continue;
            }
            w->next = ended;
            ended = w;
        }
        op->followers = NULL;
        if (op->ended)
            op->ended(op);
        pool_release(op);
        if (!parent)
            continue;
        parent->children--;
        if (parent->awaits_children && parent->children) {
            begin_tail(parent);
        } else if (parent->awaits_children) {
            parent->next = ended;
            ended = parent;
        }
    }
}

void pool_submit(struct pool_op *op)
{
    assert(op->waits > 0);
    if (--op->waits)
        return;
    if (op->kind == POOL_MARK)
        finish(op);
    else
        make_ready(op);
}

// --- threads -----------------------------------------------------------------------------------------------

static void *work(void *unused);

// Starts a detached thread that blocks all signals except those its own code causes: the application's
// handlers run in the application's threads.
static int start_thread(void *(*entry)(void *))
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t set, old;
    sigfillset(&set);
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&set, own[i]);
    pthread_sigmask(SIG_SETMASK, &set, &old);
    pthread_t id;
    int rc = pthread_create(&id, NULL, entry, NULL);
    if (!rc)
        pthread_detach(id);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

static void count_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    pool.cores = n > 0 ? (unsigned)n : 1;
}

// No cancellation point comes while it is held, but in threads that are not cancelled: here a launch counts
// nanoseconds.
void pool_lock(void)
{
    pthread_mutex_lock(&pool.lock);
    if (pool.limit)
        return;
    count_cores();
    pool.limit = pool.cores;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

void pool_unlock(void)
{
    // Spinning threads take new work first: waking more threads than there are slots only moves work between
    // cores.
    unsigned want = least(pool.need, pool.limit > pool.running ? pool.limit - pool.running : 0);
    want -= least(want, pool.spinning);
    unsigned wake = least(want, pool.sleeping);
    unsigned start = least(want - wake, pool.limit > pool.started ? pool.limit - pool.started : 0);
    bool wake_done = pool.wake_done, wake_callback = pool.wake_callback;
    pool.started += start;
    pool.need = 0;
    pool.wake_done = pool.wake_callback = false;
    atomic_store_explicit(&pool.has_idle,
                          pool.running < pool.limit &&
                              (pool.spinning || pool.sleeping || pool.started < pool.limit),
                          memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);

    while (wake--)
        pthread_cond_signal(&pool.work);
    if (wake_done)
        pthread_cond_broadcast(&pool.done);
    if (wake_callback)
        pthread_cond_signal(&pool.callback);
    while (start--) {
        if (!start_thread(work))
            continue;
        // Waiting host threads do the work then.
        pthread_mutex_lock(&pool.lock);
        pool.started--;
        pthread_mutex_unlock(&pool.lock);
    }
}

void pool_limit(unsigned n)
{
    pool_lock();
    pool.limit = n ? n : pool.cores ? pool.cores : 1;
    if (pool.ready.first || pool.grids.first)
        bump(pool.limit);
    pool_unlock();
}

unsigned pool_width(void)
{
    pool_lock();
    unsigned n = pool.limit;
    pool_unlock();
    return n;
}

struct pool_counts pool_counts(void)
{
    pool_lock();
    struct pool_counts c = {pool.running, pool.naps};
    pool_unlock();
    return c;
}

// --- running -----------------------------------------------------------------------------------------------

// Returns whether the thread may run a whole operation. A host thread runs blocks of any grid, but whole
// operations only of the stream or context that it waits for, or if there are no workers: another stream's
// copy may take much longer.
static bool may_run(const struct runner *me, const struct pool_op *op)
{
    const struct pool_op *target = me->target;
    if (!target || !pool.started)
        return true;
    return target->stream ? target->stream == op->stream : target->ctx == op->ctx;
}

static struct pool_op *take_ready(const struct runner *me)
{
    struct pool_op *op = pool.ready.first;
    while (op && !may_run(me, op))
        op = op->next;
    if (!op)
        return NULL;
    queue_remove(&pool.ready, op);
    put(&pool.nready, peek(&pool.nready) - 1);
    return op;
}

static struct pool_op *take_grid(struct runner *me)
{
    struct pool_op *found = NULL;
    for (struct pool_op *op = pool.grids.first; op; op = op->next) {
        if (op->kind == POOL_POLL && op->users)
            continue;
        if (!found || op->turn > me->turn)
            found = op;
        if (op->turn > me->turn)
            break;
    }
    if (!found)
        return NULL;
    if (found->began && !found->began->wall)
        *found->began = pool_clock();
    found->users++;
    me->turn = found->turn;
    return found;
}

// Returns whether there is work that no thread runs.
static bool work_left(void)
{
    const struct pool_op *op = pool.grids.first;
    while (op && op->users)
        op = op->next;
    return op || pool.ready.first;
}

static struct pool_op *take(struct runner *me)
{
    if (atomic_load_explicit(&pool.paused, memory_order_relaxed) || (!me->slot && pool.running >= pool.limit))
        return NULL;
    // Grids and operations take turns, so that neither delays the other.
    bool grids = me->fruitless < peek(&pool.ngrids);
    struct pool_op *op = grids && me->grid_next ? take_grid(me) : NULL;
    me->grid_next = false;
    if (!op && (op = take_ready(me)))
        me->grid_next = true;
    if (!op && grids)
        op = take_grid(me);
    if (!op)
        return NULL;
    if (!me->slot)
        pool.running++;
    me->slot = true;
    // A spinning thread may have been counted for two pieces of work that became ready one after the other.
    if (pool.need)
        pool.need--;
    if (!pool.need && work_left())
        pool.need = 1;
    return op;
}

static void drop_slot(struct runner *me)
{
    if (me->slot)
        pool.running--;
    me->slot = false;
}

// A waiting block may wait for another block of the grid, which will get its turn: only when all of them wait
// should the thread give up its core.
static enum exec_step step_once(struct pool_op *op, struct runner *me)
{
    enum exec_step s = exec_grid_step(op->grid, me->exec);
    if (s == EXEC_RAN && peek(&op->spins))
        put(&op->spins, 0);
    if (s != EXEC_SPUN)
        return s;
    unsigned spins = peek(&op->spins) + 1;
    put(&op->spins, spins);
    if (spins == 1)
        put(&op->patience, 2 * exec_grid_parallelism(op->grid));
    return spins < peek(&op->patience) ? EXEC_RAN : EXEC_SPUN;
}

static enum exec_step step_grid(struct pool_op *op, struct runner *me)
{
    for (unsigned n = 1;; n++) {
        enum exec_step s = step_once(op, me);
        if (s != EXEC_RAN || (me->target && pool_done(me->target)) ||
            atomic_load_explicit(&pool.paused, memory_order_relaxed))
            return s;
        if (atomic_load_explicit(&pool.has_idle, memory_order_relaxed) && exec_grid_parallelism(op->grid)) {
            pool_lock();
            bump(1);
            pool_unlock();
        }
        if ((!me->target && peek(&pool.nready)) || (n >= SLICE && peek(&pool.ngrids) > 1))
            return s;
    }
}

// All other grids of the context are cancelled too: they may wait for something that will not come.
void pool_fail(struct CUctx_st *ctx, const struct exec_fault *fault)
{
    cpu_context_fail(ctx, fault);
    pool_lock();
    for (struct pool_op *op = pool.grids.first; op; op = op->next) {
        if (op->kind == POOL_GRID && op->ctx == ctx)
            exec_grid_cancel(op->grid, fault->kind);
    }
    bump(1);
    pool_unlock();
}

static void end_shared(struct pool_op *op)
{
    if (op->kind == POOL_POLL) {
        op->release(op->arg, !op->dropped && !failed(op->ctx));
        return;
    }
    const struct exec_fault *fault = op->dropped ? NULL : exec_grid_fault(op->grid);
    if (fault && fault->kind != EXEC_NO_FAULT)
        pool_fail(op->ctx, fault);
    op->grid_done(op->arg, op->grid);
}

static void note_step(struct runner *me, enum exec_step s)
{
    if (s == EXEC_RAN || s == EXEC_DONE) {
        me->fruitless = me->rounds = 0;
        me->spun = false;
        bump(0);
        me->epoch = peek(&pool.epoch);
    } else {
        me->fruitless++;
        me->spun |= s == EXEC_SPUN;
    }
}

static void run_shared(struct pool_op *op, struct runner *me)
{
    pool_unlock();
    enum exec_step s;
    if (op->kind == POOL_GRID)
        s = step_grid(op, me);
    else
        s = failed(op->ctx) || op->poll(op->arg) ? EXEC_DONE : EXEC_SPUN;
    pool_lock();
    op->users--;
    // The grid is empty and yet no thread is in it: a thread must look at it again.
    if (s == EXEC_EMPTY && !op->users)
        s = EXEC_SPUN;
    note_step(me, s);
    if (s == EXEC_DONE && !op->over) {
        op->over = true;
        queue_remove(&pool.grids, op);
        put(&pool.ngrids, peek(&pool.ngrids) - 1);
    }
    if (!op->over || op->users)
        return;
    pool_unlock();
    end_shared(op);
    pool_lock();
    finish(op);
}

// Runs an operation. The lock is held, and released meanwhile.
static void run(struct pool_op *op, struct runner *me)
{
    if (op->kind != POOL_WORK && !op->dropped) {
        run_shared(op, me);
        return;
    }
    pool_unlock();
    if (op->kind == POOL_WORK)
        op->fn(op->arg, !failed(op->ctx));
    else
        end_shared(op);
    pool_lock();
    note_step(me, EXEC_DONE);
    finish(op);
}

// --- resting -----------------------------------------------------------------------------------------------

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Spins until something changes or the time is over. The lock must not be held.
static void spin(const struct runner *me, uint64_t ns)
{
    uint64_t end = now() + ns;
    do {
        for (int i = 0; i < 16; i++) {
            if (peek(&pool.epoch) != me->epoch || (me->target && pool_done(me->target)))
                return;
            relax();
        }
    } while (now() < end);
}

static void begin_round(struct runner *me)
{
    me->epoch = peek(&pool.epoch);
    me->fruitless = 0;
    me->spun = false;
}

static void nap(pthread_cond_t *cond)
{
    uint64_t end = now() + NAP_NS;
    pool.naps++;
    struct timespec t = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    pthread_cond_clockwait(cond, &pool.lock, CLOCK_MONOTONIC, &t);
}

// Called when all blocks wait: for each other, or for memory that the host will write.
static void back_off(struct runner *me)
{
    if (me->rounds++ < YIELDS) {
        pool_unlock();
        sched_yield();
        pool_lock();
    } else {
        pool.sleeping++;
        pool_unlock();
        pthread_mutex_lock(&pool.lock);
        nap(&pool.work);
        pool.sleeping--;
    }
    begin_round(me);
}

static void rest(struct runner *me)
{
    bool was_running = me->slot;
    drop_slot(me);
    if (me->spun) {
        back_off(me);
        return;
    }
    if (was_running && peek(&pool.epoch) != me->epoch) {
        begin_round(me);
        return;
    }
    me->epoch = peek(&pool.epoch);
    // While a block runs, the next grid may be near, and waking a thread takes long. Not on a core that
    // another thread needs.
    bool busy = pool.running && pool.running + pool.spinning < pool.cores;
    pool.spinning++;
    pool_unlock();
    if (pool.cores > 1)
        spin(me, busy ? BUSY_SPIN_NS : SPIN_NS);
    pool_lock();
    pool.spinning--;
    if (peek(&pool.epoch) == me->epoch) {
        pool.sleeping++;
        // Nothing has become ready since pool_unlock, so no thread has to be woken.
        pthread_cond_wait(&pool.work, &pool.lock);
        pool.sleeping--;
    }
    begin_round(me);
}

static void *work(void *unused)
{
    (void)unused;
    mutex_hold();  // for good
    fp_default();
    struct runner me = {.exec = exec_runner_new()};
    pool_lock();
    if (!me.exec) {
        pool.started--;
        pool_unlock();
        return NULL;
    }
    begin_round(&me);
    for (;;) {
        struct pool_op *op = take(&me);
        if (op)
            run(op, &me);
        else
            rest(&me);
    }
}

// --- waiting -----------------------------------------------------------------------------------------------

// The lock must be held.
static struct exec_runner *borrow_runner(void)
{
    if (pool.nspare)
        return pool.spare[--pool.nspare];
    pool_unlock();
    struct exec_runner *r = exec_runner_new();
    pool_lock();
    return r;
}

static void return_runner(struct exec_runner *r)
{
    if (r && pool.nspare < SPARE_RUNNERS) {
        pool.spare[pool.nspare++] = r;
        return;
    }
    pool_unlock();
    exec_runner_free(r);
    pool_lock();
}

// Called when a waiting thread has nothing to do. It spins for a moment, then leaves the rest to the workers.
static void idle_wait(struct runner *me, struct pool_op *op)
{
    drop_slot(me);
    if (me->spun && me->rounds++ < YIELDS) {
        pool_unlock();
        sched_yield();
        pool_lock();
        begin_round(me);
        return;
    }
    pool_unlock();
    if (pool.cores > 1 && !me->spun)
        spin(me, SPIN_NS);
    pool_lock();
    if (pool_done(op) || (!me->spun && peek(&pool.epoch) != me->epoch)) {
        begin_round(me);
        return;
    }
    op->slept_on = true;
    if (pool.grids.first || pool.ready.first)
        bump(1);
    pool_unlock();
    pthread_mutex_lock(&pool.lock);
    if (!pool.started)
        nap(&pool.done);
    else if (!pool_done(op))
        pthread_cond_wait(&pool.done, &pool.lock);
    begin_round(me);
}

void pool_wait(struct pool_op *op)
{
    if (pool_done(op))
        return;
    mutex_hold();
    unsigned fp = fp_default();
    pool_lock();
    struct runner me = {.target = op};
    begin_round(&me);
    while (!pool_done(op)) {
        if (!me.exec)
            me.exec = borrow_runner();
        struct pool_op *other = me.exec ? take(&me) : NULL;
        if (other)
            run(other, &me);
        else
            idle_wait(&me, op);
    }
    drop_slot(&me);
    if (pool.grids.first || pool.ready.first)
        bump(1);
    return_runner(me.exec);
    pool_unlock();
    fp_restore(fp);
    mutex_release();
}

void pool_pause(void)
{
    pool_lock();
    atomic_store_explicit(&pool.paused, true, memory_order_relaxed);
    while (pool.running) {
        pool_unlock();
        sched_yield();
        pool_lock();
    }
    pool_unlock();
}

void pool_resume(void)
{
    pool_lock();
    atomic_store_explicit(&pool.paused, false, memory_order_relaxed);
    bump(pool.limit);
    pool_unlock();
}

// --- callbacks ---------------------------------------------------------------------------------------------

bool pool_in_callback(void)
{
    return in_callback;
}

// There is one callback thread, as on a GPU: callbacks never run concurrently. It may block for as long as it
// likes.
static void *call_back(void *unused)
{
    (void)unused;
    fp_default();
    in_callback = true;
    pool_lock();
    for (;;) {
        struct pool_op *op = pool.callbacks.first;
        if (!op) {
            pthread_cond_wait(&pool.callback, &pool.lock);
            continue;
        }
        queue_remove(&pool.callbacks, op);
        pool_unlock();
        op->fn(op->arg, !failed(op->ctx));
        pool_lock();
        finish(op);
        pool_unlock();
        pool_lock();
    }
    return NULL;
}

int pool_start_callbacks(void)
{
    pool_lock();
    int rc = pool.callback_started ? 0 : start_thread(call_back);
    pool.callback_started |= !rc;
    pool_unlock();
    return rc;
}
