// SPDX-License-Identifier: MIT
#include "canary/canary_store.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "canary/canary_regions.h"
#include "canary/canary_verify.h"
#include "canary/canary_suballoc.h"
#include "canary/canary_mapped.h"
#include "share/share.h"
#include "core/lock.h"

enum {
    UNIT = CANARY_SUBALLOC_UNIT,
    CLASSES = 128,        // strides of slabs of several slots, in units
    LEAST_SLOTS = 8,      // slots of a slab with a small stride, at least
    SMALL_STRIDE = 4096,  // up to this, a stride is small
    MOST_SLAB = 4 << 20,  // bytes
    FEWER = 4,            // a slab has up to so many times fewer slots, rather than a region of its own
    BATCH = 32,           // this many unverified free slots are worth a scan of a slab
    TRIED = 8,            // slabs that are tried for a buffer, and free slots of each
};

// The slabs and memory of a context.
struct store {
    struct canary_suballoc suballoc;
    struct canary_slab *open[CLASSES + 1];
    uint32_t live[CLASSES + 1], made[CLASSES + 1];  // buffers; slots
    _Atomic uint32_t empty;                         // open slabs without buffers. Relaxed: a hint
};

static struct store stores[CONTEXT_CONTEXTS];
static struct lock lock = LOCK_INIT(CANARY_STORE);  // a leaf but for pools and the index
static struct index places = INDEX_INIT;            // changes under the lock
static struct canary_slab *evicted;                 // under the lock; see evict
static _Atomic uint64_t extra;

void canary_store_after_fork(void)
{
    lock_after_fork(&lock);
    index_after_fork(&places);
    evicted = NULL;
    canary_slab_after_fork();
    canary_regions_after_fork();
    canary_mapped_after_fork();
    canary_suballoc_after_fork();
}

static struct store *store_of(const struct context *ctx)
{
    return &stores[context_number(ctx)];
}

// For assertions.
static bool is_locked(void)
{
    return lock_is_held(&lock);
}

// --- slabs -------------------------------------------------------------------------------------------------

// Returns the number of slots for the next slab of a stride: as many as exist, so that few slabs hold many
// buffers.
static uint32_t slots_for(const struct store *store, uint64_t stride)
{
    if (stride / UNIT > CLASSES)
        return 1;
    uint64_t n = store->live[stride / UNIT], made = store->made[stride / UNIT];
    uint64_t least = stride <= SMALL_STRIDE ? LEAST_SLOTS : 1;
    n = n < made ? made : n;
    n = n < least ? least : n;
    return (uint32_t)(n * stride > MOST_SLAB ? MOST_SLAB / stride : n);
}

// Returns how many of these slots fit into the largest free range, if those are not far fewer; else `slots`.
static uint32_t slots_that_fit(const struct store *store, uint64_t stride, uint32_t slots)
{
    uint64_t fit = slots > 1 ? canary_slab_room(stride, canary_suballoc_largest(&store->suballoc)) : slots;
    return fit < slots && fit > 1 && fit >= slots / FEWER ? (uint32_t)fit : slots;
}

static void list_add(struct store *store, struct canary_slab *s)
{
    checked_assert(is_locked());
    assert(!s->open && s->slots > 1 && s->stride / UNIT <= CLASSES);
    s->open = true;
    s->next = store->open[s->stride / UNIT];
    store->open[s->stride / UNIT] = s;
}

static void list_remove(struct store *store, struct canary_slab *s)
{
    checked_assert(is_locked());
    assert(s->open);
    struct canary_slab **at = &store->open[s->stride / UNIT];
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->open = false;
}

// Removes from the index what contexts that are ending have in memory that the driver has given us: it has
// ended the context, and canary_store_context_gone, which closes the slabs, is still to come. Until then they
// are in a list. Requires the lock.
static void evict(uint64_t base, uint64_t bytes)
{
    for (;;) {
        struct canary_slab *s = (struct canary_slab *)index_at_or_below(&places, base + bytes - 1);
        if (!s || s->range.base + s->range.size <= base || !context_is_closed(s->ctx) ||
            !index_remove(&places, s->range.base))
            return;
        s->unindexed = true;
        s->next_evicted = evicted;
        evicted = s;
    }
}

// Makes room for memory that the driver has just given us.
static void claim(uint64_t base, uint64_t bytes)
{
    lock_take(&lock);
    struct canary_slab *before = evicted;
    evict(base, bytes);
    bool any = evicted != before;
    lock_give(&lock);
    if (any)
        share_withdraw_within(base, bytes);
}

static bool is_for_mapped(uint64_t bytes, uint32_t slots)
{
    return slots == 1 && bytes > CANARY_MAPPED_LEAST;
}

// Requires the lock.
static void give_range(const struct context *ctx, bool mapped, uint64_t base, uint64_t bytes)
{
    if (mapped)
        canary_mapped_give(ctx, base, bytes);
    else
        canary_suballoc_give(&store_of(ctx)->suballoc, base, bytes);
}

// Creates a slab. Returns NULL if out of memory, on the device or on the host. A slab of several slots is not
// in use until canary_store_open. Requires the lock.
static struct canary_slab *slab_make(struct context *ctx, uint64_t size, uint32_t slots)
{
    struct store *store = store_of(ctx);
    uint64_t bytes = canary_slab_bytes(size, slots);
    uint64_t at = is_for_mapped(bytes, slots) ? canary_mapped_take(ctx, bytes) : 0;
    bool mapped = at;
    if (!at && !(at = canary_suballoc_take(&store->suballoc, bytes)))
        return NULL;
    struct canary_slab *s = canary_slab_new(ctx, &canary_slab_memory[CANARY_SUBALLOCATED], slots);
    if (!s)
        goto give_back;
    s->range.base = at;
    s->range.size = bytes;
    s->base = at + canary_slab_front(slots);
    s->stride = canary_slab_stride(size);
    s->unindexed = true;
    s->mapped = mapped;
    s->filled_from = slots > 1 ? (uint32_t)size : 0;
    if (slots > 1)
        return s;
    if (index_insert(&places, &s->range)) {
        canary_slab_release(&s->range.retired);
        goto give_back;
    }
    s->unindexed = false;
    return s;
give_back:
    give_range(ctx, mapped, at, bytes);
    return NULL;
}

// Removes a slab from the index and retires it. Returns false if out of memory; the slab then stays. Requires
// the lock.
static bool slab_close(struct canary_slab *s)
{
    struct store *store = store_of(s->ctx);
    checked_assert(is_locked() && canary_slab_valid(s));
    if (!s->unindexed && !index_remove(&places, s->range.base))
        return false;
    if (s->open) {
        list_remove(store, s);
        store->made[s->stride / UNIT] -= s->slots;
        if (!s->used)
            atomic_fetch_sub_explicit(&store->empty, 1, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < s->fresh; i++)
        canary_slot_set_freed(&s->slot[i], 0);
    if (s->memory->kind == CANARY_SUBALLOCATED)
        give_range(s->ctx, s->mapped, s->range.base, s->range.size);
    epoch_retire(&s->range.retired, canary_slab_release);
    return true;
}

// Takes a free slot that a scan has verified off the list and returns its number plus one, or 0 if there is
// none among the first ones. ready: only a slot whose canary is intact behind a buffer of this size.
static uint32_t free_slot(struct canary_slab *s, uint64_t size, bool ready)
{
    uint32_t before = 0, at = s->first;
    for (unsigned i = 0; at && i < TRIED; i++) {
        struct canary_slot *t = &s->slot[at - 1];
        if (!canary_slot_is_checked(s, at - 1))
            return 0;
        if (!ready || (t->from <= size && !canary_slot_reported(s, at - 1))) {
            *(before ? &s->slot[before - 1].next : &s->first) = t->next;
            if (s->last == at)
                s->last = before;
            atomic_fetch_sub_explicit(&s->idle, 1, memory_order_relaxed);
            return at;
        }
        before = at;
        at = t->next;
    }
    return 0;
}

static struct canary_place slot_use(struct canary_slab *s, uint32_t number, uint64_t size)
{
    struct store *store = store_of(s->ctx);
    checked_assert(is_locked());
    assert(number < s->fresh && s->used < s->fresh && size && size <= s->stride);
    if (!s->used++ && s->open)
        atomic_fetch_sub_explicit(&store->empty, 1, memory_order_relaxed);
    if (s->open && !s->first && s->fresh == s->slots) {
        list_remove(store, s);
        store->made[s->stride / UNIT] -= s->slots;
    }
    if (s->memory->kind == CANARY_SUBALLOCATED && s->stride / UNIT <= CLASSES)
        store->live[s->stride / UNIT]++;
    // Relaxed: a scan that misses the new slot misses a buffer that came after it began.
    if (number >= atomic_load_explicit(&s->high, memory_order_relaxed))
        atomic_store_explicit(&s->high, number + 1, memory_order_relaxed);
    if (size < atomic_load_explicit(&s->least, memory_order_relaxed))
        atomic_store_explicit(&s->least, size, memory_order_relaxed);
    if (size > atomic_load_explicit(&s->most, memory_order_relaxed))
        atomic_store_explicit(&s->most, size, memory_order_relaxed);
    atomic_fetch_add_explicit(&extra,
                              s->stride - size + (canary_slab_is_lone(s) ? s->range.size - s->stride : 0),
                              memory_order_relaxed);
    checked_assert(canary_slab_valid(s));
    return (struct canary_place){
        .slab = s, .number = number, .base = canary_slab_base(s, number), .size = size};
}

static struct canary_place take_only(struct canary_slab *s, uint64_t size)
{
    s->fresh = 1;
    return slot_use(s, 0, size);
}

// --- places ------------------------------------------------------------------------------------------------

// Gets memory for a slab, in a region or mapped. A slab of several slots may get less than it needs.
static int get_region(struct context *ctx, uint64_t need, uint32_t slots)
{
    struct store *store = store_of(ctx);
    uint64_t base, bytes;
    if (is_for_mapped(need, slots) && !canary_mapped_grow(ctx, need))
        return 0;
    lock_take(&lock);
    uint64_t total = store->suballoc.bytes;
    lock_give(&lock);
    if (canary_regions_get(ctx, CANARY_LEAD + need, slots > 1, total, &base, &bytes))
        return -ENOMEM;
    claim(base, bytes);
    lock_take(&lock);
    int err = canary_suballoc_add(&store->suballoc, base + CANARY_LEAD, bytes - CANARY_LEAD);
    lock_give(&lock);
    if (err)
        canary_regions_give(base);
    return err;
}

// Takes a slot in the open slabs of a stride. Returns CANARY_NONE if a new slab is needed. Requires the lock.
static enum canary_took take_open(struct store *store, uint64_t stride, uint64_t size, bool patient,
                                  struct canary_place *place)
{
    struct canary_slab *fullest = NULL, *s = store->open[stride / UNIT];
    uint32_t waiting = 0, most = 0;
    for (unsigned i = 0; s && i < TRIED; i++, s = s->next) {
        uint32_t at = free_slot(s, size, true), unused = s->fresh - s->used, clear_from = 0;
        bool stale = false;
        if (!at && s->fresh < s->slots) {
            s->slot[s->fresh].from = s->filled_from;
            at = ++s->fresh;
            stale = s->filled_from != size;
            clear_from = s->filled_from < size ? s->filled_from : 0;
        }
        if (!at) {
            at = free_slot(s, size, false);
            stale = at;
        }
        if (at) {
            canary_slot_set_freed(&s->slot[at - 1], 0);
            if (stale)
                s->slot[at - 1].from = (uint32_t)size;  // as soon as the caller has written it
            *place = slot_use(s, at - 1, size);
            place->clear_from = clear_from;
            return stale ? CANARY_TOOK_STALE : CANARY_TOOK;
        }
        waiting += unused;
        if (unused > most) {
            most = unused;
            fullest = s;
        }
    }
    if (!patient || waiting < BATCH)
        return CANARY_NONE;
    *place = (struct canary_place){.slab = fullest};
    return CANARY_CHECK;
}

enum canary_took canary_store_take(struct context *ctx, uint64_t size, bool patient,
                                   struct canary_place *place)
{
    struct store *store = store_of(ctx);
    uint64_t stride = canary_slab_stride(size);
    bool alone = false;
    assert(size && size < stride);
    for (int attempt = 0; attempt < 4; attempt++) {
        enum canary_took took = CANARY_NONE;
        lock_take(&lock);
        if (stride / UNIT <= CLASSES)
            took = take_open(store, stride, size, patient, place);
        uint32_t slots =
            alone || took != CANARY_NONE ? 1 : slots_that_fit(store, stride, slots_for(store, stride));
        struct canary_slab *s = took == CANARY_NONE ? slab_make(ctx, size, slots) : NULL;
        if (s && slots == 1) {
            *place = take_only(s, size);
            took = CANARY_TOOK_STALE;
        } else if (s) {
            *place = (struct canary_place){.slab = s};
            took = CANARY_FILL;
        }
        lock_give(&lock);
        if (took != CANARY_NONE)
            return took;
        if (!get_region(ctx, canary_slab_bytes(size, slots), slots))
            continue;
        if (slots == 1)
            break;
        alone = true;  // the device is nearly full
    }
    return CANARY_NONE;
}

bool canary_store_open(struct canary_slab *s, bool filled)
{
    struct store *store = store_of(s->ctx);
    lock_take(&lock);
    filled = filled && !index_insert(&places, &s->range);
    s->unindexed = !filled;
    if (filled) {
        list_add(store, s);
        store->made[s->stride / UNIT] += s->slots;
        atomic_fetch_add_explicit(&store->empty, 1, memory_order_relaxed);
    } else {
        slab_close(s);
    }
    lock_give(&lock);
    return filled;
}

int canary_store_adopt(struct context *ctx, const struct canary_memory *memory, uint64_t real, uint64_t size,
                       CUevent ready, struct canary_place *place)
{
    assert(size && (!ready || memory->kind == CANARY_POOL));
    struct canary_slab *s = canary_slab_new(ctx, memory, 1);
    if (!s)
        return -ENOMEM;
    s->range.base = real;
    s->range.size = canary_slab_padded(memory, size);
    s->base = real + memory->offset;
    s->stride = canary_slab_stride(size);
    s->ready = ready;
    s->is_ready = !ready;
    claim(s->range.base, s->range.size);
    lock_take(&lock);
    int err = index_insert(&places, &s->range);
    if (!err)
        *place = take_only(s, size);
    lock_give(&lock);
    if (err)
        canary_slab_release(&s->range.retired);
    return err ? -ENOMEM : 0;
}

struct canary_slab *canary_store_find(uint64_t address)
{
    return (struct canary_slab *)index_find(&places, address);
}

int canary_store_each(int (*f)(struct index_item *, void *), void *context)
{
    return index_each(&places, f, context);
}

size_t canary_store_slabs(void)
{
    return index_count(&places);
}

bool canary_store_withdraw(uint64_t pointer, struct canary_place *place)
{
    unsigned section = epoch_enter();
    struct canary_slab *s = canary_store_find(pointer);
    bool found = s && pointer >= s->base && (pointer - s->base) % s->stride == 0 &&
                 (pointer - s->base) / s->stride < s->slots;
    uint32_t number = found ? (uint32_t)((pointer - s->base) / s->stride) : 0;
    // Read this before the withdrawal: after it, scans skip the buffer and may find everything else clean.
    uint64_t clean = found ? canary_verify_clean_so_far(s->ctx) : 0;
    // Acquire and release: the thread that gets the buffer sees all that the allocating thread did.
    uint64_t size = found ? atomic_exchange_explicit(&s->slot[number].size, 0, memory_order_acq_rel) : 0;
    epoch_leave(section);
    if (size && s->memory->kind == CANARY_SUBALLOCATED)
        canary_slot_set_freed(&s->slot[number], size);
    // The slot belongs to the caller until it is given back, and so the slab stays.
    *place =
        (struct canary_place){.slab = s, .number = number, .base = pointer, .size = size, .clean = clean};
    return size;
}

bool canary_store_unindex(const struct canary_place *place)
{
    lock_take(&lock);
    bool removed = index_remove(&places, place->slab->range.base);
    place->slab->unindexed = removed;
    lock_give(&lock);
    return removed;
}

void canary_store_reindex(const struct canary_place *place)
{
    lock_take(&lock);
    place->slab->unindexed = index_insert(&places, &place->slab->range);
    lock_give(&lock);
}

// Puts a slot of several on the free list. Requires the lock.
static void slot_give(struct store *store, const struct canary_place *place)
{
    struct canary_slab *s = place->slab;
    struct canary_slot *t = &s->slot[place->number];
    bool whole = atomic_load_explicit(&t->freed_size, memory_order_relaxed);
    checked_assert(is_locked());
    t->next = 0;
    t->from = !whole                                           ? UINT32_MAX
              : t->from < place->size && t->from != UINT32_MAX ? (uint32_t)place->size
                                                               : t->from;
    atomic_fetch_add_explicit(&s->idle, 1, memory_order_relaxed);
    *(s->last ? &s->slot[s->last - 1].next : &s->first) = place->number + 1;
    s->last = place->number + 1;
    if (!s->open) {
        list_add(store, s);
        store->made[s->stride / UNIT] += s->slots;
    }
    if (!s->used)
        atomic_fetch_add_explicit(&store->empty, 1, memory_order_relaxed);
    checked_assert(canary_slab_valid(s));
}

void canary_store_give(const struct canary_place *place, uint64_t scan)
{
    struct canary_slab *s = place->slab;
    struct store *store = store_of(s->ctx);
    assert(place->number < s->slots && place->size && place->size <= s->stride);
    atomic_fetch_sub_explicit(
        &extra, s->stride - place->size + (canary_slab_is_lone(s) ? s->range.size - s->stride : 0),
        memory_order_relaxed);
    canary_slot_await(place, scan);
    lock_take(&lock);
    if (s->memory->kind == CANARY_SUBALLOCATED && s->stride / UNIT <= CLASSES)
        store->live[s->stride / UNIT]--;
    assert(s->used);
    s->used--;
    if (canary_slab_is_lone(s))
        slab_close(s);
    else
        slot_give(store, place);
    lock_give(&lock);
}

// --- memory ------------------------------------------------------------------------------------------------

uint64_t canary_store_spare(struct context *ctx, const struct canary_extent *assumed, unsigned n)
{
    lock_take(&lock);
    uint64_t bytes = canary_suballoc_empty(&store_of(ctx)->suballoc, assumed, n);
    lock_give(&lock);
    return bytes + canary_mapped_spare(ctx, assumed, n);
}

// Closes the slabs without buffers that a scan has verified: all, or those beside which others are open.
// Requires the lock.
static void close_empty(struct store *store, bool all)
{
    for (unsigned c = 0; c <= CLASSES; c++)
        for (struct canary_slab *s = store->open[c], *next; s; s = next) {
            next = s->next;
            bool another = store->open[c] != s || next;
            // Acquire: see canary_slot_is_checked.
            if (!s->used && (all || another) &&
                atomic_load_explicit(&s->checked, memory_order_acquire) >=
                    atomic_load_explicit(&s->freed, memory_order_relaxed))
                slab_close(s);
        }
}

void canary_store_tidy(struct context *ctx)
{
    struct store *store = store_of(ctx);
    if (!atomic_load_explicit(&store->empty, memory_order_relaxed))
        return;
    lock_take(&lock);
    close_empty(store, false);
    lock_give(&lock);
}

uint64_t canary_store_trim(struct context *ctx, uint64_t keep)
{
    struct store *store = store_of(ctx);
    uint64_t given = 0, mapped = canary_mapped_spare(ctx, NULL, 0);
    for (;;) {
        uint64_t bytes = 0, base = 0;
        lock_take(&lock);
        if (!keep)
            close_empty(store, true);
        uint64_t regions = canary_suballoc_empty(&store->suballoc, NULL, 0);
        if (regions + mapped > keep)
            base = canary_suballoc_remove_empty(&store->suballoc, &bytes);
        lock_give(&lock);
        if (!base)
            return given + (regions + mapped > keep ? canary_mapped_trim(ctx, regions + mapped - keep) : 0);
        canary_regions_give(base - CANARY_LEAD);
        given += bytes + CANARY_LEAD;
    }
}

uint64_t canary_store_extra(void)
{
    return atomic_load_explicit(&extra, memory_order_relaxed);
}

struct search {
    CUcontext context;
    struct canary_slab *found;
};

static int of_context(struct index_item *item, void *context)
{
    struct search *search = context;
    struct canary_slab *s = (struct canary_slab *)item;
    search->found = s->context == search->context ? s : NULL;
    return search->found != NULL;
}

static void close_evicted(CUcontext context)
{
    lock_take(&lock);
    for (struct canary_slab **at = &evicted, *s; (s = *at);) {
        if (s->context != context) {
            at = &s->next_evicted;
            continue;
        }
        *at = s->next_evicted;
        slab_close(s);
    }
    lock_give(&lock);
}

void canary_store_context_gone(struct context *ctx, CUcontext context)
{
    struct store *store = store_of(ctx);
    for (;;) {
        struct search search = {.context = context};
        unsigned section = epoch_enter();
        bool any = index_each(&places, of_context, &search);
        epoch_leave(section);
        if (!any)
            break;
        // Another context's buffer may get the address.
        share_withdraw_within(search.found->range.base, search.found->range.size);
        lock_take(&lock);
        bool closed = search.found->unindexed || slab_close(search.found);
        lock_give(&lock);
        if (!closed)
            break;
    }
    close_evicted(context);
    canary_mapped_context_gone(ctx);
    canary_regions_context_gone(context);
    lock_take(&lock);
    canary_suballoc_clear(&store->suballoc);
    memset(store, 0, sizeof *store);
    lock_give(&lock);
}

// --- what must hold ----------------------------------------------------------------------------------------

struct tally {
    const struct context *ctx;
    uint32_t live[CLASSES + 1], made[CLASSES + 1], empty;
    bool valid;
};

static int count_slab(struct index_item *item, void *context)
{
    struct tally *tally = context;
    const struct canary_slab *s = (const struct canary_slab *)item;
    if (s->ctx != tally->ctx)
        return 0;
    tally->valid = !s->unindexed && canary_slab_valid(s) && canary_slab_slots_valid(s);
    if (s->memory->kind == CANARY_SUBALLOCATED && s->stride / UNIT <= CLASSES)
        tally->live[s->stride / UNIT] += s->used;
    tally->made[s->open ? s->stride / UNIT : 0] += s->open ? s->slots : 0;
    tally->empty += s->open && !s->used;
    return !tally->valid;
}

bool canary_store_valid(const struct context *ctx)
{
    const struct store *store = store_of(ctx);
    struct tally tally = {.ctx = ctx, .valid = true};
    unsigned section = epoch_enter();
    lock_take(&lock);
    index_each(&places, count_slab, &tally);
    bool valid = tally.valid && canary_suballoc_valid(&store->suballoc) &&
                 memcmp(tally.live, store->live, sizeof tally.live) == 0 &&
                 memcmp(tally.made, store->made, sizeof tally.made) == 0 &&
                 tally.empty == atomic_load_explicit(&store->empty, memory_order_relaxed);
    lock_give(&lock);
    epoch_leave(section);
    return valid;
}
