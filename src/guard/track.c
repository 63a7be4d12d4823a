// SPDX-License-Identifier: MIT
#include "guard/track.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/guard.h"
#include "guard/slab_pool.h"
#include "guard/stack.h"

const struct track_family_row track_families[TRACK_FAMILIES] = {
#define FAMILY(id, text, way, host, leaks, of_context) {text, TRACK_BY_##way, host, leaks, of_context},
#include "guard/families.def"
#undef FAMILY
};

static struct index live = INDEX_INIT, announced = INDEX_INIT, handles = INDEX_INIT, freed = INDEX_INIT,
                    freed_handles = INDEX_INIT;
static struct slab_pool blocks = SLAB_POOL(struct track_block);
static _Atomic uint64_t serial;
static uint64_t inherited;  // changes in after_fork only

// Serialises changes that concern several indices. Held over nothing but those.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Blocks in `freed` and `freed_handles` in the order in which they went. Addresses come again, serials do not: an entry
// whose block is gone must not take a later one of the same base with it.
static struct {
    struct index *index;
    uint64_t base, serial;
} queue[TRACK_FREED];
static uint64_t queue_first, queue_last;  // queue_last - queue_first <= TRACK_FREED; under the lock

void track_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    epoch_after_fork();
    slab_pool_after_fork(&blocks);
    index_after_fork(&live);
    index_after_fork(&announced);
    index_after_fork(&handles);
    index_after_fork(&freed);
    index_after_fork(&freed_handles);
    inherited = atomic_load_explicit(&serial, memory_order_relaxed);
}

uint64_t track_inherited(void)
{
    return inherited;
}

static void release(struct epoch_node *node)
{
    slab_pool_put(&blocks, (char *)node - offsetof(struct track_block, range.retired));
}

static void drop(struct index *index, uint64_t base)
{
    struct index_item *item = index_remove(index, base);
    if (item)
        epoch_retire(&item->retired, release);
}

// Removes what overlaps [base, end) from an index. Under the lock.
static void clear_range(struct index *index, uint64_t base, uint64_t end)
{
    for (;;) {
        unsigned section = epoch_enter();
        struct index_item *item = index_at_or_below(index, end - 1);
        uint64_t found = item ? item->base : 0;
        bool overlaps = item && item->base + (item->size ? item->size : 1) > base;
        epoch_leave(section);
        if (!overlaps)
            return;
        drop(index, found);
    }
}

// Under the lock.
static void drop_oldest_freed(void)
{
    unsigned at = queue_first++ % TRACK_FREED;
    unsigned section = epoch_enter();
    const struct track_block *b = (const struct track_block *)index_find(queue[at].index, queue[at].base);
    bool same = b && b->facts.serial == queue[at].serial;
    epoch_leave(section);
    if (same)
        drop(queue[at].index, queue[at].base);
}

static struct index *freed_of(enum track_family family)
{
    return family == TRACK_ARRAY ? &freed_handles : &freed;
}

// Under the lock. A full queue lets the oldest go.
static void keep_freed(struct track_block *b)
{
    struct index *index = freed_of(b->facts.family);
    uint64_t base = b->range.base, number = b->facts.serial;
    if (queue_last - queue_first == TRACK_FREED)
        drop_oldest_freed();
    clear_range(index, base, base + (b->range.size ? b->range.size : 1));
    if (index_insert(index, &b->range)) {
        epoch_retire(&b->range.retired, release);
        return;
    }
    unsigned at = queue_last++ % TRACK_FREED;
    queue[at].index = index;
    queue[at].base = base;
    queue[at].serial = number;
}

static struct index *index_of(enum track_family family)
{
    switch (family) {
    case TRACK_ANNOUNCED: return &announced;
    case TRACK_ARRAY: return &handles;
    default: return &live;
    }
}

static void insert(struct track_block *b)
{
    struct index *index = index_of(b->facts.family);
    uint64_t end = b->range.base + (b->range.size ? b->range.size : 1);
    pthread_mutex_lock(&lock);
    clear_range(freed_of(b->facts.family), b->range.base, end);
    // Whoever announced blocks of memory that was there before did not withdraw them.
    if (index == &live && b->facts.family != TRACK_REGISTERED)
        clear_range(&announced, b->range.base, end);
    int err = index_insert(index, &b->range);
    if (err == -EEXIST) {
        // Memory that went by a way nobody told us of.
        clear_range(index, b->range.base, end);
        err = index_insert(index, &b->range);
    }
    pthread_mutex_unlock(&lock);
    if (err) {
        slab_pool_put(&blocks, b);
        guard_count(GUARD_UNTRACKED);
    }
}

static int current_device(enum track_family family)
{
    CUdevice device = 0;
    if (track_families[family].host || !guard.real.cuCtxGetDevice || guard.real.cuCtxGetDevice(&device))
        return -1;
    return device;
}

void track_made_for(enum track_family family, unsigned call, uint64_t base, uint64_t size, const void *owner,
                    const char *name)
{
    static __thread uint32_t thread __attribute__((tls_model("initial-exec")));
    struct track_block *b = slab_pool_get(&blocks);
    if (!b) {
        guard_count(GUARD_UNTRACKED);
        return;
    }
    thread = thread ? thread : (uint32_t)syscall(SYS_gettid);
    *b = (struct track_block){
        .range = {.base = base, .size = family == TRACK_ARRAY ? 0 : size},
        .facts =
            {
                .family = family,
                .made_by = (uint16_t)call,
                .device = (int16_t)current_device(family),
                .made_stack = stack_capture(NULL, (unsigned)guard.options.stack_depth),
                .thread = thread,
                .serial = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed) + 1,
                .owner = owner,
                .name = name,
                .bytes = size,
            },
    };
    insert(b);
}

void track_made(enum track_family family, enum driver_id call, uint64_t base, uint64_t size)
{
    CUcontext context = NULL;
    if (track_families[family].of_context && guard.real.cuCtxGetCurrent)
        guard.real.cuCtxGetCurrent(&context);
    guard_count(GUARD_ALLOCATIONS);
    guard_add(GUARD_ALLOCATED_BYTES, size);
    track_made_for(family, call, base, size, context, NULL);
}

void track_made_in_graph(enum driver_id call, uint64_t base, uint64_t size)
{
    guard_count(GUARD_GRAPH_MEMORY);
    if (base)
        track_made_for(TRACK_GRAPH, call, base, size, NULL, NULL);
}

// Under the lock: out of its index, into freed.
static bool move_to_freed(struct index *index, uint64_t base, enum driver_id call, uint32_t stack)
{
    struct track_block *b = (struct track_block *)index_remove(index, base);
    if (!b)
        return false;
    atomic_store_explicit(&b->freed_by, (uint16_t)call, memory_order_relaxed);
    atomic_store_explicit(&b->freed_stack, stack, memory_order_relaxed);
    keep_freed(b);
    return true;
}

bool track_freeing(uint64_t base, enum track_way way, enum driver_id call)
{
    unsigned section = epoch_enter();
    struct track_block *b = way == TRACK_BY_ARRAY ? track_handle(base) : track_live(base);
    bool right = b && b->range.base == base && track_families[b->facts.family].freed_by == way;
    struct index *index = right ? index_of(b->facts.family) : NULL;
    epoch_leave(section);
    if (!right)
        return false;
    uint32_t stack = stack_capture(NULL, (unsigned)guard.options.stack_depth);
    pthread_mutex_lock(&lock);
    right = move_to_freed(index, base, call, stack);
    pthread_mutex_unlock(&lock);
    if (right)
        guard_count(GUARD_FREES);
    return right;
}

static void put_back(struct index *from, uint64_t base)
{
    pthread_mutex_lock(&lock);
    struct index_item *item = index_remove(from, base);
    if (item && index_insert(index_of(((struct track_block *)item)->facts.family), item))
        epoch_retire(&item->retired, release);
    pthread_mutex_unlock(&lock);
}

void track_not_freed(uint64_t base)
{
    put_back(&freed, base);
}

void track_array_not_freed(uint64_t handle)
{
    put_back(&freed_handles, handle);
}

void track_forget_freed(uint64_t base)
{
    pthread_mutex_lock(&lock);
    drop(&freed, base);
    pthread_mutex_unlock(&lock);
}

void track_array_foreign(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    drop(&freed_handles, handle);
    pthread_mutex_unlock(&lock);
}

void track_changed(uint64_t base, uint64_t size, const char *name)
{
    struct track_block *b = slab_pool_get(&blocks);
    if (!b)
        return;
    unsigned section = epoch_enter();
    const struct track_block *old = track_announced(base);
    bool found = old && old->range.base == base;
    if (found)
        *b = (struct track_block){.range = {.base = base, .size = size}, .facts = old->facts};
    epoch_leave(section);
    b->facts.name = name;
    b->facts.bytes = size;
    if (found)
        insert(b);
    else
        slab_pool_put(&blocks, b);
}

void track_withdraw(uint64_t base)
{
    pthread_mutex_lock(&lock);
    drop(&announced, base);
    pthread_mutex_unlock(&lock);
}

void track_withdraw_range(uint64_t base, uint64_t end)
{
    pthread_mutex_lock(&lock);
    clear_range(&announced, base, end);
    pthread_mutex_unlock(&lock);
}

struct owner_gone {
    const void *owner;
    enum driver_id call;
    uint32_t stack;
};

static int block_gone(struct index_item *item, void *context)
{
    const struct owner_gone *gone = context;
    struct index *index = index_of(((struct track_block *)item)->facts.family);
    if (((struct track_block *)item)->facts.owner != gone->owner)
        return 0;
    pthread_mutex_lock(&lock);
    // Meanwhile another may have been made there.
    if (index_find(index, item->base) == item)
        move_to_freed(index, item->base, gone->call, gone->stack);
    pthread_mutex_unlock(&lock);
    return 0;
}

void track_owner_gone(const void *owner, enum driver_id call)
{
    struct owner_gone gone = {owner, call, stack_capture(NULL, (unsigned)guard.options.stack_depth)};
    unsigned section = epoch_enter();
    index_each(&live, block_gone, &gone);
    index_each(&handles, block_gone, &gone);
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

struct track_block *track_live(uint64_t address)
{
    return (struct track_block *)index_find(&live, address);
}

struct track_block *track_freed(uint64_t address)
{
    return (struct track_block *)index_find(&freed, address);
}

struct track_block *track_handle(uint64_t handle)
{
    return (struct track_block *)index_find(&handles, handle);
}

struct track_block *track_freed_handle(uint64_t handle)
{
    return (struct track_block *)index_find(&freed_handles, handle);
}

struct track_block *track_announced(uint64_t address)
{
    return (struct track_block *)index_find(&announced, address);
}

struct track_block *track_before(uint64_t address)
{
    return (struct track_block *)index_at_or_below(&live, address);
}

struct track_block *track_after(uint64_t address)
{
    return (struct track_block *)index_above(&live, address);
}

unsigned track_last_freed(struct track_copy *copies, unsigned most)
{
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    unsigned section = epoch_enter();
    for (uint64_t i = queue_last; i > queue_first && n < most; i--) {
        unsigned at = (i - 1) % TRACK_FREED;
        struct track_block *b = queue[at].index == &freed ? track_freed(queue[at].base) : NULL;
        if (b && b->facts.serial == queue[at].serial)
            copies[n++] = track_copy(b, true);
    }
    epoch_leave(section);
    pthread_mutex_unlock(&lock);
    return n;
}

struct last_made {
    struct track_copy *copies;
    unsigned count, most;
};

// Kept in the order of age, the youngest first.
static int keep_young(struct index_item *item, void *context)
{
    struct last_made *l = context;
    const struct track_block *b = (const struct track_block *)item;
    if (track_families[b->facts.family].host || b->facts.family == TRACK_VARIABLE)
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
    index_each(&live, keep_young, &l);
    epoch_leave(section);
    return l.count;
}

size_t track_count(void)
{
    return index_count(&live) + index_count(&handles);
}

int track_each(int (*f)(struct index_item *, void *), void *context)
{
    unsigned section = epoch_enter();
    int r = index_each(&live, f, context);
    r = r ? r : index_each(&handles, f, context);
    epoch_leave(section);
    return r;
}
