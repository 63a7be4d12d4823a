// SPDX-License-Identifier: MIT
#include "track/track.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "context/green.h"
#include "core/lock.h"
#include "core/guard.h"
#include "core/slab_pool.h"
#include "track/stack.h"

const struct track_family_row track_families[TRACK_FAMILIES] = {
#define FAMILY(id, text, way, host, leaks, of_context) {text, TRACK_BY_##way, host, leaks, of_context},
#include "track/families.def"
#undef FAMILY
};

enum { SPARES = 32, RETIRE_BATCH = 16 };

// Live and freed blocks are in one index: freeing a block marks it, and a new block at the same base replaces
// it. The members that most calls need lie together, because the driver evicts them from the nearer caches.
static struct {
    _Alignas(64) struct lock lock;  // protects all changes to what follows; no other work is done under it
    uint64_t serial;
    uint64_t queue_first;         // queue_last - queue_first <= TRACK_FREED
    _Atomic uint64_t queue_last;  // relaxed: only the holder of the lock writes it; see track_frees
    struct index memory;
    struct index announced, handles;
    bool any_announced;  // ever
    // Blocks removed from an index, to be retired together.
    unsigned removed;
    struct epoch_node *first_removed, *last_removed;
    // Blocks taken from the pool in advance. A fork leaves the child with one too few, never with one that is
    // in use: the stores are ordered as in slab_pool.c, and the memory orders are for the fork alone.
    _Atomic unsigned spares;
    struct track_block *spare[SPARES];
} registry = {
    .lock = LOCK_INIT(TRACK),
    .memory = INDEX_INIT,
    .announced = INDEX_INIT,
    .handles = INDEX_INIT,
};
// Freed blocks in the order of their frees. A block that is removed earlier leaves NULL. Protected by the
// lock.
static struct track_block *queue[TRACK_FREED];
static struct slab_pool blocks = SLAB_POOL(struct track_block);
static const struct track_listener *listener;  // NULL: none
static uint64_t inherited;                     // changes in track_after_fork only
static _Atomic uint64_t losses;                // see track_losses
static _Atomic uint64_t changes;               // see track_changes

// The calling thread's id, its client, and the device of the context that it used last. A new context may get
// the address of one that ended: `ends` counts ended contexts.
static __thread struct {
    uint32_t thread;
    uint32_t client;
    int device;
    CUcontext context;
    unsigned ends;
    uint64_t freed_base, freed_serial;  // what track_freeing has marked last
} this_thread __attribute__((tls_model("initial-exec")));
static _Atomic unsigned ends;

// Prefetches what a call will need, while it does other work.
static void prefetch_registry(enum guard_count count)
{
    __builtin_prefetch(&registry.lock, 1);
    __builtin_prefetch(&registry.memory.items, 1);
    __builtin_prefetch(&registry.spares, 1);
    __builtin_prefetch((const void *)&guard.counts[count], 1);
    // Relaxed: only a hint.
    __builtin_prefetch((const void *)atomic_load_explicit(&registry.memory.root, memory_order_relaxed));
}

static uint64_t frees(void)
{
    return atomic_load_explicit(&registry.queue_last, memory_order_relaxed);
}

uint64_t track_frees(void)
{
    return frees();
}

static bool is_freed(const struct track_block *b)
{
    // Acquire: pairs with mark_freed, so that freed_by and freed_stack are visible.
    return atomic_load_explicit(&b->freed, memory_order_acquire);
}

void track_after_fork(void)
{
    lock_after_fork(&registry.lock);
    epoch_after_fork();
    slab_pool_after_fork(&blocks);
    index_after_fork(&registry.memory);
    index_after_fork(&registry.announced);
    index_after_fork(&registry.handles);
    // Another thread of the parent may have been about to free the last one.
    struct track_block **last = &queue[(frees() - 1) % TRACK_FREED];
    if (frees() > registry.queue_first && *last && !is_freed(*last))
        *last = NULL;
    // Blocks that another thread of the parent was about to retire are leaked.
    registry.removed = 0;
    registry.first_removed = NULL;
    inherited = registry.serial;
    this_thread.thread = 0;
}

void track_listen(const struct track_listener *l)
{
    listener = l;
}

void track_divided(uint64_t base, uint64_t bytes, uint64_t stride)
{
    if (listener)
        listener->divided(base, bytes, stride);
}

void track_pool(uint64_t base, uint64_t end, bool is_one)
{
    if (listener && listener->pool)
        listener->pool(base, end, is_one);
}

void track_client_set(uint32_t client)
{
    this_thread.client = client;
}

uint32_t track_client(void)
{
    return this_thread.client;
}

uint64_t track_inherited(void)
{
    return inherited;
}

static void release(struct epoch_node *node)
{
    slab_pool_put(&blocks, (char *)node - offsetof(struct track_block, range.retired));
}

static struct index *index_of(enum track_family family)
{
    switch (family) {
    case TRACK_ANNOUNCED: return &registry.announced;
    case TRACK_ARRAY: return &registry.handles;
    default: return &registry.memory;
    }
}

// Requires the lock.
static void retire_removed(void)
{
    struct epoch_node *first = registry.first_removed;
    registry.first_removed = NULL;
    registry.removed = 0;
    epoch_retire_list(first, registry.last_removed);
}

// Requires the lock. A freed block may have lost its place in the queue before: when there was no memory to
// remove it, or to another thread of the process that forked this one.
static void leave_queue(const struct track_block *b)
{
    struct track_block **place = &queue[b->freed_at % TRACK_FREED];
    if (*place == b)
        *place = NULL;
}

// Requires the lock. Call it after the change, so that a thread that sees the number sees the change too.
static void note_loss(void)
{
    // Release: pairs with track_losses. Only the holder of the lock writes it.
    atomic_store_explicit(&losses, atomic_load_explicit(&losses, memory_order_relaxed) + 1,
                          memory_order_release);
}

// Requires the lock. Call it after the change, as note_loss.
static void note_change(void)
{
    // Release: pairs with track_changes. Only the holder of the lock writes it.
    atomic_store_explicit(&changes, atomic_load_explicit(&changes, memory_order_relaxed) + 1,
                          memory_order_release);
}

uint64_t track_changes(void)
{
    // Acquire: pairs with note_change, so that lookups that follow see the change.
    return atomic_load_explicit(&changes, memory_order_acquire);
}

void track_set_pooled(struct track_block *b)
{
    lock_take(&registry.lock);
    atomic_store_explicit(&b->pooled, true, memory_order_relaxed);
    note_change();
    lock_give(&registry.lock);
}

uint64_t track_losses(void)
{
    // Acquire: pairs with note_loss.
    return atomic_load_explicit(&losses, memory_order_acquire);
}

// Requires the lock. Queues a block to be retired that is in no index any more, so that no new reader finds
// it.
static void retire_later(struct track_block *b)
{
    if (is_freed(b))
        leave_queue(b);
    else
        note_loss();
    note_change();
    b->range.retired.release = release;
    b->range.retired.next = registry.first_removed;
    registry.first_removed = &b->range.retired;
    if (!registry.removed++)
        registry.last_removed = &b->range.retired;
    if (registry.removed == RETIRE_BATCH)
        retire_removed();
}

// Requires the lock.
static void drop(struct track_block *b)
{
    if (index_take(index_of(b->facts.family), &b->range))
        retire_later(b);
}

// Requires the lock. Returns the block that starts at base, or NULL.
static struct track_block *starting_at(const struct index *index, uint64_t base)
{
    struct track_block *b = (struct track_block *)index_find(index, base);
    return b && b->range.base == base ? b : NULL;
}

// Requires the lock. Returns a block that overlaps [base, end), or NULL.
static struct track_block *overlapping(const struct index *index, uint64_t base, uint64_t end)
{
    struct index_item *item = index_at_or_below(index, end - 1);
    return item && item->base + (item->size ? item->size : 1) > base ? (struct track_block *)item : NULL;
}

// Requires the lock. Removes all blocks that overlap [base, end) from an index.
static void clear_range(struct index *index, uint64_t base, uint64_t end)
{
    struct track_block *b, *last = NULL;
    // If out of memory, a block may stay.
    for (; (b = overlapping(index, base, end)) && b != last; last = b)
        drop(b);
}

// Requires the lock. Removes the blocks that the new one overlaps: freed ones are of no interest any more,
// and a live one was freed by a call that moat did not see. Usually the new block replaces one of the same
// base.
static int put(struct track_block *b)
{
    struct index *index = index_of(b->facts.family);
    uint64_t end = b->range.base + (b->range.size ? b->range.size : 1);
    struct index_item *former;
    int err = index_put(index, &b->range, &former);
    if (err == -EEXIST) {
        clear_range(index, b->range.base, end);
        err = index_put(index, &b->range, &former);
    }
    if (former)
        retire_later((struct track_block *)former);
    registry.any_announced |= index == &registry.announced;
    if (index == &registry.announced)
        note_loss();  // a pointer into the larger block now points into the smaller one
    // An allocator did not withdraw the blocks that it had announced in memory that was there before.
    if (index == &registry.memory && b->facts.family != TRACK_REGISTERED && registry.any_announced)
        clear_range(&registry.announced, b->range.base, end);
    note_change();
    return err;
}

// Requires the lock. Forgets the block that was freed first.
static void forget_oldest(void)
{
    struct track_block **oldest = &queue[registry.queue_first++ % TRACK_FREED];
    if (*oldest)
        drop(*oldest);
    *oldest = NULL;
}

// Requires the lock. If the queue is full, the oldest freed block is forgotten.
static void mark_freed(struct track_block *b, enum driver_id call, uint32_t stack)
{
    if (frees() - registry.queue_first == TRACK_FREED)
        forget_oldest();
    atomic_store_explicit(&b->freed_by, (uint16_t)call, memory_order_relaxed);
    atomic_store_explicit(&b->freed_stack, stack, memory_order_relaxed);
    b->freed_at = frees();
    queue[b->freed_at % TRACK_FREED] = b;
    atomic_store_explicit(&registry.queue_last, b->freed_at + 1, memory_order_relaxed);
    // Release: pairs with is_freed.
    atomic_store_explicit(&b->freed, true, memory_order_release);
    note_loss();
    note_change();
}

// Requires the lock.
static void mark_live(struct track_block *b)
{
    leave_queue(b);
    // Release, as in mark_freed; freed_by and freed_stack are then meaningless.
    atomic_store_explicit(&b->freed, false, memory_order_release);
    note_change();
}

// Requires the lock.
static struct track_block *take_spare(void)
{
    void *more[SPARES];
    unsigned have = atomic_load_explicit(&registry.spares, memory_order_relaxed);
    if (!have) {
        have = slab_pool_get_many(&blocks, more, SPARES) ? 1 : SPARES;
        if (have == 1 && !(more[0] = slab_pool_get(&blocks)))
            return NULL;
        memcpy(registry.spare, more, have * sizeof *more);
    }
    struct track_block *b = registry.spare[have - 1];
    if (have > 1) {
        // Prefetches both cache lines of the next spare for the next call: this one must not wait for them
        // when it releases the lock.
        __builtin_prefetch(&registry.spare[have - 2]->range, 1);
        __builtin_prefetch(&registry.spare[have - 2]->facts.serial, 1);
    }
    atomic_store_explicit(&registry.spares, have - 1, memory_order_release);
    return b;
}

static void tell_made(const struct track_copy *made)
{
    if (listener && made->facts.family != TRACK_ARRAY)
        listener->made(made);
}

// Inserts a block with these facts; assigns a serial unless the facts have one. Returns false if out of
// memory.
static bool insert_block(uint64_t base, uint64_t size, const struct track_facts *facts)
{
    struct track_copy made;
    lock_take(&registry.lock);
    struct track_block *b = take_spare();
    if (b) {
        b->range.base = base;
        b->range.size = size;
        b->facts = *facts;
        b->facts.serial = facts->serial ? facts->serial : ++registry.serial;
        atomic_store_explicit(&b->freed, false, memory_order_relaxed);
        atomic_store_explicit(&b->pooled, false, memory_order_relaxed);
        atomic_store_explicit(&b->freed_by, 0, memory_order_relaxed);
        atomic_store_explicit(&b->freed_stack, 0, memory_order_relaxed);
        made = track_copy(b, false);
        if (put(b)) {
            slab_pool_put(&blocks, b);
            b = NULL;
        }
    }
    lock_give(&registry.lock);
    if (b)
        tell_made(&made);
    return b;
}

static CUcontext current_context(void)
{
    CUcontext context = NULL;
    if (guard.real.cuCtxGetCurrent)
        guard.real.cuCtxGetCurrent(&context);
    return context;
}

// Queries the driver only when the thread has changed its context.
static int device_of(CUcontext current)
{
    // Relaxed: it only shows that the cached device may be outdated.
    unsigned now = atomic_load_explicit(&ends, memory_order_relaxed);
    if (current && current == this_thread.context && now == this_thread.ends)
        return this_thread.device;
    CUdevice device = 0;
    if (!guard.real.cuCtxGetDevice || guard.real.cuCtxGetDevice(&device))
        return -1;
    this_thread.device = device;
    this_thread.context = current;
    this_thread.ends = now;
    return device;
}

static void made_in(CUcontext current, enum track_family family, unsigned call, uint64_t base, uint64_t size,
                    const void *owner, const char *name)
{
    if (!this_thread.thread)
        this_thread.thread = (uint32_t)syscall(SYS_gettid);
    struct track_facts facts = {
        .family = family,
        .made_by = (uint16_t)call,
        .device = (int16_t)(track_families[family].host ? -1 : device_of(current)),
        .made_stack = stack_capture(NULL, (unsigned)guard.options.stack_depth),
        .thread = this_thread.thread,
        .owner = owner,
        .name = name,
        .bytes = size,
        .client = this_thread.client,
    };
    if (!insert_block(base, family == TRACK_ARRAY ? 0 : size, &facts))
        guard_count(GUARD_UNTRACKED);
}

void track_made_for(enum track_family family, unsigned call, uint64_t base, uint64_t size, const void *owner,
                    const char *name)
{
    made_in(current_context(), family, call, base, size, owner, name);
}

void track_made(enum track_family family, enum driver_id call, uint64_t base, uint64_t size)
{
    prefetch_registry(GUARD_ALLOCATIONS);
    CUcontext current = current_context();
    guard_count(GUARD_ALLOCATIONS);
    guard_add(GUARD_ALLOCATED_BYTES, size);
    made_in(current, family, call, base, size,
            track_families[family].of_context ? green_owner(current) : NULL, NULL);
}

void track_made_in_graph(enum driver_id call, uint64_t base, uint64_t size)
{
    guard_count(GUARD_GRAPH_MEMORY);
    if (base)
        track_made_for(TRACK_GRAPH, call, base, size, NULL, NULL);
}

bool track_freeing(uint64_t base, enum track_way way, enum driver_id call)
{
    if (!base)
        return false;
    prefetch_registry(GUARD_FREES);
    // Before the lock is taken, because the unwinder takes the dynamic loader's lock.
    uint32_t stack = stack_capture(NULL, (unsigned)guard.options.stack_depth);
    lock_take(&registry.lock);
    __builtin_prefetch(&queue[frees() % TRACK_FREED], 1);
    struct track_block *b = starting_at(way == TRACK_BY_ARRAY ? &registry.handles : &registry.memory, base);
    bool right = b && !is_freed(b) && track_families[b->facts.family].freed_by == way;
    if (right) {
        this_thread.freed_base = base;
        this_thread.freed_serial = b->facts.serial;
        mark_freed(b, call, stack);
    }
    lock_give(&registry.lock);
    if (right)
        guard_count(GUARD_FREES);
    return right;
}

// Requires that the lock is not held. Calls f for the freed block that starts at base.
static void undo(const struct index *index, uint64_t base, void (*f)(struct track_block *))
{
    lock_take(&registry.lock);
    struct track_block *b = starting_at(index, base);
    if (b && is_freed(b))
        f(b);
    lock_give(&registry.lock);
}

void track_not_freed(uint64_t base)
{
    undo(&registry.memory, base, mark_live);
    unsigned section = epoch_enter();
    const struct track_block *b = listener ? track_live(base) : NULL;
    struct track_copy made = b ? track_copy(b, false) : (struct track_copy){0};
    epoch_leave(section);
    if (made.base == base && base)
        tell_made(&made);
}

void track_was_freed(uint64_t base)
{
    if (listener && this_thread.freed_base == base)
        listener->freed(base, this_thread.freed_serial);
}

void track_array_not_freed(uint64_t handle)
{
    undo(&registry.handles, handle, mark_live);
}

void track_array_foreign(uint64_t handle)
{
    undo(&registry.handles, handle, drop);
}

void track_changed(uint64_t base, uint64_t size, const char *name)
{
    struct track_facts facts;
    unsigned section = epoch_enter();
    const struct track_block *old = track_announced(base);
    bool found = old && old->range.base == base;
    if (found)
        facts = old->facts;
    epoch_leave(section);
    if (!found)
        return;
    facts.name = name;
    facts.bytes = size;
    if (!insert_block(base, size, &facts))
        guard_count(GUARD_UNTRACKED);
}

void track_withdraw(uint64_t base)
{
    lock_take(&registry.lock);
    struct track_block *b = starting_at(&registry.announced, base);
    if (b)
        drop(b);
    lock_give(&registry.lock);
    if (b && listener)
        listener->withdrawn(base, base + 1);
}

void track_withdraw_range(uint64_t base, uint64_t end)
{
    lock_take(&registry.lock);
    clear_range(&registry.announced, base, end);
    lock_give(&registry.lock);
    if (listener)
        listener->withdrawn(base, end);
}

struct owner_gone {
    const void *owner;
    enum driver_id call;
    uint32_t stack;
};

static int block_gone(struct index_item *item, void *context)
{
    const struct owner_gone *gone = context;
    struct track_block *b = (struct track_block *)item;
    if (b->facts.owner != gone->owner)
        return 0;
    lock_take(&registry.lock);
    // Another block may have been made there in the meantime.
    bool gone_now = !is_freed(b) && index_find(index_of(b->facts.family), item->base) == item;
    if (gone_now)
        mark_freed(b, gone->call, gone->stack);
    lock_give(&registry.lock);
    if (gone_now && listener && b->facts.family != TRACK_ARRAY)
        listener->freed(item->base, b->facts.serial);
    return 0;
}

void track_owner_gone(const void *owner, enum driver_id call)
{
    struct owner_gone gone = {owner, call, stack_capture(NULL, (unsigned)guard.options.stack_depth)};
    // Relaxed: see device_of.
    atomic_fetch_add_explicit(&ends, 1, memory_order_relaxed);
    unsigned section = epoch_enter();
    index_each(&registry.memory, block_gone, &gone);
    index_each(&registry.handles, block_gone, &gone);
    epoch_leave(section);
}

struct track_copy track_copy(const struct track_block *b, bool was_freed)
{
    return (struct track_copy){
        .base = b->range.base,
        .size = b->range.size,
        .facts = b->facts,
        .freed = was_freed,
        .freed_by = atomic_load_explicit(&b->freed_by, memory_order_relaxed),
        .freed_stack = atomic_load_explicit(&b->freed_stack, memory_order_relaxed),
    };
}

// Returns the block if it is freed as requested, otherwise NULL.
static struct track_block *in_state(struct index_item *item, bool freed)
{
    struct track_block *b = (struct track_block *)item;
    return b && is_freed(b) == freed ? b : NULL;
}

struct track_block *track_live(uint64_t address)
{
    return in_state(index_find(&registry.memory, address), false);
}

struct track_block *track_freed(uint64_t address)
{
    return in_state(index_find(&registry.memory, address), true);
}

struct track_block *track_handle(uint64_t handle)
{
    return in_state(index_find(&registry.handles, handle), false);
}

struct track_block *track_freed_handle(uint64_t handle)
{
    return in_state(index_find(&registry.handles, handle), true);
}

struct track_block *track_announced(uint64_t address)
{
    return (struct track_block *)index_find(&registry.announced, address);
}

struct track_block *track_before(uint64_t address, uint64_t near)
{
    uint64_t at = address;
    for (;;) {
        struct track_block *b = (struct track_block *)index_at_or_below(&registry.memory, at);
        if (!b || (address >= track_end(b) && address - track_end(b) >= near))
            return NULL;
        if (!is_freed(b))
            return b;
        if (!b->range.base)
            return NULL;
        at = b->range.base - 1;
    }
}

struct track_block *track_after(uint64_t address, uint64_t end)
{
    for (;;) {
        struct track_block *b = (struct track_block *)index_above(&registry.memory, address);
        if (!b || b->range.base >= end)
            return NULL;
        if (!is_freed(b))
            return b;
        address = b->range.base;
    }
}

bool track_freed_after(uint64_t address, uint64_t end, uint64_t since, struct track_copy *out)
{
    struct track_block *b;
    bool found = false;
    lock_take(&registry.lock);
    while (!found && (b = (struct track_block *)index_above(&registry.memory, address)) &&
           b->range.base < end) {
        address = b->range.base;
        found = is_freed(b) && b->freed_at >= since;
        if (found)
            *out = track_copy(b, true);
    }
    lock_give(&registry.lock);
    return found;
}

unsigned track_last_freed(struct track_copy *copies, unsigned most)
{
    unsigned n = 0;
    lock_take(&registry.lock);
    for (uint64_t i = frees(); i > registry.queue_first && n < most; i--) {
        const struct track_block *b = queue[(i - 1) % TRACK_FREED];
        if (b && b->facts.family != TRACK_ARRAY)
            copies[n++] = track_copy(b, true);
    }
    lock_give(&registry.lock);
    return n;
}

struct last_made {
    struct track_copy *copies;
    unsigned count, most;
};

// Keeps the copies sorted by age, youngest first.
static int keep_young(struct index_item *item, void *context)
{
    struct last_made *l = context;
    const struct track_block *b = (const struct track_block *)item;
    if (is_freed(b) || track_families[b->facts.family].host || b->facts.family == TRACK_VARIABLE)
        return 0;
    unsigned at = l->count;
    while (at && l->copies[at - 1].facts.serial < b->facts.serial)
        at--;
    if (at == l->most)
        return 0;
    l->count += l->count < l->most;
    memmove(&l->copies[at + 1], &l->copies[at], (l->count - 1 - at) * sizeof *l->copies);
    l->copies[at] = track_copy(b, false);
    return 0;
}

unsigned track_last_made(struct track_copy *copies, unsigned most)
{
    struct last_made l = {copies, 0, most};
    unsigned section = epoch_enter();
    index_each(&registry.memory, keep_young, &l);
    epoch_leave(section);
    return l.count;
}

struct each_live {
    int (*f)(struct index_item *, void *);
    void *context;
};

static int if_live(struct index_item *item, void *context)
{
    const struct each_live *each = context;
    return is_freed((struct track_block *)item) ? 0 : each->f(item, each->context);
}

int track_each(int (*f)(struct index_item *, void *), void *context)
{
    struct each_live each = {f, context};
    unsigned section = epoch_enter();
    int r = index_each(&registry.memory, if_live, &each);
    r = r ? r : index_each(&registry.handles, if_live, &each);
    epoch_leave(section);
    return r;
}

static int add_one(struct index_item *item, void *count)
{
    ++*(size_t *)count;
    return 0;
}

size_t track_count(void)
{
    size_t count = 0;
    track_each(add_one, &count);
    return count;
}
