// SPDX-License-Identifier: MIT
#include "shadow/shadow_room.h"

#include "check/check_host.h"
#include "check/check_race.h"
#include "core/guard.h"
#include "core/index.h"
#include "core/slab_pool.h"
#include "pages/pages_redzone.h"

enum {
    UNIT = 256,
    FRONT = 4096,  // a page: the buffer lies in its page as the driver has chosen, large ones at the start
};

struct buffer {
    struct index_item range;  // first member; with the room
    uint64_t base, size;      // the program's
    enum mode_kind kind;      // MODE_MANAGED or MODE_HOST
    CUcontext context;        // that was current: the memory ends with it
    _Atomic(bool) freed;      // by the program; set once
    _Atomic(bool) forgotten;  // exactly one thread takes it out of the index
    struct buffer *next;      // the one that was freed after it, and is kept
};

static struct index buffers = INDEX_INIT;
static struct slab_pool pool = SLAB_POOL(struct buffer);

// Freed buffers that are kept, the oldest first. bytes == the sum of range.size over them
static struct lock lock = LOCK_INIT(SHADOW);
static struct buffer *oldest, **newest = &oldest;
static uint64_t bytes_kept;

static void release(struct epoch_node *node)
{
    slab_pool_put(&pool, (char *)node - offsetof(struct buffer, range.retired));
}

// Returns the bytes to ask for, a multiple of 256; 0: too many.
static uint64_t with_room(uint64_t size)
{
    uint64_t all = size > UINT64_MAX / 4 ? 0 : FRONT + size + pages_redzone(size);
    return (all + UNIT - 1) & ~(uint64_t)(UNIT - 1);
}

static CUresult ask_driver(const struct mode_alloc *a, uint64_t bytes, uint64_t *base)
{
    const struct driver *d = &guard.real;
    CUdeviceptr managed = 0;
    void *host = NULL;
    CUresult r = a->kind == MODE_MANAGED ? d->cuMemAllocManaged(&managed, bytes, *a->flags)
                 : a->flags              ? d->cuMemHostAlloc(&host, bytes, *a->flags)
                                         : d->cuMemAllocHost_v2(&host, bytes);
    *base = a->kind == MODE_MANAGED ? managed : (uintptr_t)host;
    return r;
}

static CUresult free_now(const struct buffer *b)
{
    const struct driver *d = &guard.real;
    bool pushed;
    if (!context_enter(b->context, &pushed))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult r = b->kind == MODE_MANAGED ? d->cuMemFree_v2(b->range.base)
                                         : d->cuMemFreeHost((void *)(uintptr_t)b->range.base);
    context_leave(pushed);
    return r;
}

bool shadow_room_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    uint64_t base, bytes = a->kind == MODE_MANAGED || a->kind == MODE_HOST ? with_room(a->size) : 0;
    if (!a->size || !bytes)
        return false;
    CUcontext context = NULL;
    guard.real.cuCtxGetCurrent(&context);
    struct buffer *b = slab_pool_get(&pool);
    if (!b)
        return false;
    *r = ask_driver(a, bytes, &base);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY && shadow_room_reclaim())
        *r = ask_driver(a, bytes, &base);
    if (!*r)
        *b = (struct buffer){.range = {.base = base, .size = bytes},
                             .base = base + FRONT,
                             .size = a->size,
                             .kind = a->kind,
                             .context = context};
    if (!*r && !index_insert(&buffers, &b->range)) {
        *pointer = b->base;
        return true;
    }
    // It may have room for the buffer alone; and what no free would find cannot be given to the program.
    if (!*r)
        free_now(b);
    slab_pool_put(&pool, b);
    return *r && *r != CUDA_ERROR_OUT_OF_MEMORY;
}

struct shadow_room shadow_room_around(uint64_t base, uint64_t size)
{
    unsigned section = epoch_enter();
    const struct buffer *b = (const struct buffer *)index_find(&buffers, base);
    struct shadow_room room = {.size = 0};
    if (b && b->base == base && b->size == size)
        room = (struct shadow_room){b->range.base, b->range.size};
    epoch_leave(section);
    return room;
}

// --- frees -------------------------------------------------------------------------------------------------

// Lets kernels access the whole of a buffer, room and all, or nothing of it.
static void set_shadow(const struct buffer *b, bool live)
{
    const struct check_shadow_change c = {
        .base = b->range.base, .size = b->range.size, .what = CHECK_SHADOW_RANGE, .live = live};
    check_host_shadow_change(&c);
}

// Takes a buffer out of the index whose memory is about to go back to the driver, or is back: then it may be
// anyone's. Returns false if another thread does.
static bool take_out(struct buffer *b)
{
    if (atomic_exchange(&b->forgotten, true))
        return false;
    index_remove(&buffers, b->range.base);
    set_shadow(b, true);
    return true;
}

// The driver refused to free a buffer that was taken out. It keeps its room, which is no longer forbidden.
static void put_back(struct buffer *b)
{
    atomic_store(&b->forgotten, false);
    atomic_store(&b->freed, false);
    if (index_insert(&buffers, &b->range))
        guard_count(GUARD_UNTRACKED);
}

static void retire(struct buffer *b)
{
    epoch_retire(&b->range.retired, release);
}

// Takes the oldest freed buffer if more than `most` bytes are kept; NULL: there are not.
static struct buffer *take_oldest(uint64_t most)
{
    lock_take(&lock);
    struct buffer *b = bytes_kept > most ? oldest : NULL;
    if (b) {
        oldest = b->next;
        newest = oldest ? newest : &oldest;
        bytes_kept -= b->range.size;
    }
    lock_give(&lock);
    return b;
}

// Gives memory back until at most so many bytes are kept. Returns false if there was nothing to give back.
static bool keep_at_most(uint64_t most)
{
    bool any = false;
    unsigned section = epoch_enter();
    for (struct buffer *b; (b = take_oldest(most)); any = true)
        if (take_out(b)) {
            free_now(b);
            retire(b);
        }
    epoch_leave(section);
    return any;
}

bool shadow_room_reclaim(void)
{
    return keep_at_most(0);
}

static void keep(struct buffer *b)
{
    lock_take(&lock);
    b->next = NULL;
    *newest = b;
    newest = &b->next;
    bytes_kept += b->range.size;
    lock_give(&lock);
}

// The driver's free waits for the kernels of the context. Returns false if they did not end well, or nobody
// may wait now: what the free is to return then only the driver knows.
static bool waits_well(const struct buffer *b)
{
    bool pushed;
    if (!context_enter(b->context, &pushed))
        return false;
    CUresult r = guard.real.cuCtxSynchronize();
    context_leave(pushed);
    check_race_order(MODE_ORDER_ALL);
    return !r;
}

bool shadow_room_free(const struct mode_free *f, CUresult *r)
{
    enum mode_kind kind = f->way == MODE_FREE_HOST ? MODE_HOST : MODE_MANAGED;
    uint64_t most = (uint64_t)guard.options.shadow_quarantine;
    bool not_yet = false, kept = false;
    if (!index_count(&buffers) || f->captured || !f->pointer)
        return false;
    *r = CUDA_ERROR_INVALID_VALUE;
    unsigned section = epoch_enter();
    struct buffer *b = (struct buffer *)index_find(&buffers, f->pointer);
    bool ours = b && b->base == f->pointer && b->kind == kind;
    bool first = ours && atomic_compare_exchange_strong(&b->freed, &not_yet, true);
    if (first && b->range.size <= most && waits_well(b)) {
        kept = true;
        *r = CUDA_SUCCESS;
        set_shadow(b, false);
        keep(b);
    } else if (first && take_out(b)) {
        *r = free_now(b);
        *r ? put_back(b) : retire(b);
    }
    epoch_leave(section);
    if (kept)
        keep_at_most(most);
    return ours;
}

// --- contexts and queries ----------------------------------------------------------------------------------

struct search {
    CUcontext context;
    struct buffer *found;
};

static int of_context(struct index_item *item, void *argument)
{
    struct search *s = argument;
    s->found = (struct buffer *)item;
    // Relaxed: who forgets a buffer of an ended context does no harm.
    return s->found->context == s->context &&
           !atomic_load_explicit(&s->found->forgotten, memory_order_relaxed);
}

// Takes the freed buffers of a context out of the list.
static void drop_kept(CUcontext context)
{
    lock_take(&lock);
    struct buffer **at = &oldest;
    while (*at) {
        if ((*at)->context == context) {
            bytes_kept -= (*at)->range.size;
            *at = (*at)->next;
        } else {
            at = &(*at)->next;
        }
    }
    newest = at;
    lock_give(&lock);
}

void shadow_room_context_gone(CUcontext context)
{
    struct search s = {.context = context};
    drop_kept(context);
    for (bool found = true; found;) {
        unsigned section = epoch_enter();
        found = index_each(&buffers, of_context, &s);
        if (found && take_out(s.found))
            retire(s.found);
        epoch_leave(section);
    }
}

enum mode_what shadow_room_ask(uint64_t address, struct mode_answer *answer)
{
    bool freed = false;
    unsigned section = epoch_enter();
    const struct buffer *b = (const struct buffer *)index_find(&buffers, address);
    if (b) {
        *answer = (struct mode_answer){.base = b->base, .size = b->size};
        freed = atomic_load_explicit(&b->freed, memory_order_relaxed);
    }
    epoch_leave(section);
    return !b ? MODE_NOT_OURS : !freed && address - answer->base < answer->size ? MODE_BUFFER : MODE_AROUND;
}

void shadow_room_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
    index_after_fork(&buffers);
}
