// SPDX-License-Identifier: MIT
#include "pages/pages_packed.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "core/guard.h"
#include "core/lock.h"
#include "core/slab_pool.h"
#include "pages/pages_address.h"
#include "pages/pages_map.h"
#include "pages/pages_redzone.h"
#include "track/track.h"

enum {
    STEPS = 4,  // sizes of slots for each doubling
    CLASSES = 14 * STEPS,
    SMALL_STRIDE = 1 << 16,  // slabs of larger slots have LARGE_UNITS units instead of one
    LARGE_UNITS = 4,
    MOST_SLOTS = 1 << (PAGES_ADDRESS_BITS - 9),
    WORDS = MOST_SLOTS / 64,
    WORTH = 4,  // a slab is mapped again when at least 1/WORTH of its slots were freed
};

struct packed_slab;

struct pages_view {
    struct packed_slab *slab;
    struct pages_view *next;  // older views of the slab
    uint64_t base;
    uint64_t peers;  // devices that were given access
    uint32_t held;
};

// In the list of its device and class; where it stands there does not matter.
struct packed_slab {
    struct packed_slab *next, **link;
    struct pages_view *views;  // newest first
    CUmemGenericAllocationHandle handle;
    uint64_t stride;
    CUdevice device;
    uint32_t class, units;
    uint32_t slots, held, nfresh, nfreed;
    bool busy;  // a thread maps it once more, without the lock
    uint64_t fresh[WORDS], freed[WORDS];
};

static struct slab_pool slabs = SLAB_POOL(struct packed_slab);
static struct slab_pool views = SLAB_POOL(struct pages_view);
static struct packed_slab *lists[CONTEXT_DEVICES][CLASSES];
static struct lock lock = LOCK_INIT(PAGES_PACKED);

void pages_packed_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&slabs);
    slab_pool_after_fork(&views);
}

// --- sizes -------------------------------------------------------------------------------------------------

// Rounds bytes up to STEPS * 2^n, (STEPS + 1) * 2^n, ... units. Returns its class; *stride is the size.
static unsigned class_of(uint64_t bytes, uint64_t unit, uint64_t *stride)
{
    uint64_t n = (bytes + unit - 1) / unit;
    unsigned shift = 0;
    while (n >> shift >= 2 * STEPS)
        shift++;
    uint64_t steps = (n + ((uint64_t)1 << shift) - 1) >> shift;
    *stride = (steps << shift) * unit;
    // 2 * STEPS steps of one shift are STEPS steps of the next.
    if (steps == 2 * STEPS) {
        steps = STEPS;
        shift++;
    }
    return shift * STEPS + (unsigned)steps;
}

static uint32_t units_of(uint64_t stride)
{
    return stride <= SMALL_STRIDE ? 1 : LARGE_UNITS;
}

uint64_t pages_packed_shape(uint64_t size, uint64_t unit, uint64_t *stride)
{
    class_of(size + pages_redzone(size), unit, stride);
    return units_of(*stride) * PAGES_ADDRESS_UNIT;
}

static uint64_t bytes_of(const struct packed_slab *s)
{
    return s->units * PAGES_ADDRESS_UNIT;
}

// --- lists and bits, under the lock ------------------------------------------------------------------------

static void link_slab(struct packed_slab *s)
{
    struct packed_slab **list = &lists[s->device][s->class];
    s->next = *list;
    s->link = list;
    if (s->next)
        s->next->link = &s->next;
    *list = s;
}

static void unlink_slab(struct packed_slab *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
}

static void move_to_front(struct packed_slab *s)
{
    if (lists[s->device][s->class] == s)
        return;
    unlink_slab(s);
    link_slab(s);
}

static uint32_t take_fresh(struct packed_slab *s)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (s->fresh[i]) {
            uint32_t bit = (uint32_t)__builtin_ctzll(s->fresh[i]);
            s->fresh[i] &= s->fresh[i] - 1;
            s->nfresh--;
            return i * 64 + bit;
        }
    assert(!"a slab with nfresh > 0 has a fresh slot");
    return 0;
}

// Removes a view without buffers from its slab if it hands out no more. Returns it for the caller to unmap.
static struct pages_view *retire_view(struct pages_view *v)
{
    struct packed_slab *s = v->slab;
    if (v->held || (v == s->views && s->nfresh))
        return NULL;
    struct pages_view **at = &s->views;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    return v;
}

// --- driver calls, without the lock ------------------------------------------------------------------------

static void unmap_view(struct pages_view *v, const struct packed_slab *s)
{
    if (v)
        pages_unmap(v->base, bytes_of(s), 0, s->units + 1);
    if (v)
        slab_pool_put(&views, v);
}

static struct pages_view *map_view(struct packed_slab *s, uint64_t peers)
{
    struct pages_view *v = slab_pool_get(&views);
    if (!v)
        return NULL;
    *v = (struct pages_view){.slab = s, .peers = peers};
    // The unit behind the slab stays unmapped.
    if (!pages_map(s->handle, bytes_of(s), 0, s->units + 1, s->device, peers, &v->base)) {
        track_divided(v->base, bytes_of(s), s->stride);
        return v;
    }
    slab_pool_put(&views, v);
    return NULL;
}

// Requires that the slab is in no list and has no buffers.
static void release_slab(struct packed_slab *s)
{
    for (struct pages_view *v = s->views, *next; v; v = next) {
        next = v->next;
        unmap_view(v, s);
    }
    pages_memory_release(s->handle, bytes_of(s));
    slab_pool_put(&slabs, s);
}

static struct packed_slab *new_slab(CUdevice device, unsigned class, uint64_t stride, uint64_t asked,
                                    uint64_t peers, int *err)
{
    struct packed_slab *s = slab_pool_get(&slabs);
    *err = -ENOMEM;
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->device = device;
    s->class = class;
    s->stride = stride;
    s->units = units_of(stride);
    s->slots = s->nfresh = (uint32_t)(bytes_of(s) / stride);
    for (uint32_t i = 0; i < s->slots; i++)
        s->fresh[i / 64] |= (uint64_t)1 << i % 64;
    *err = pages_memory_create(device, bytes_of(s), asked, &s->handle);
    if (!*err && !(s->views = map_view(s, peers))) {
        pages_memory_release(s->handle, bytes_of(s));
        *err = -ENOMEM;
    }
    if (*err) {
        slab_pool_put(&slabs, s);
        return NULL;
    }
    return s;
}

// --- taking ------------------------------------------------------------------------------------------------

// Returns a slab with a fresh slot, else one that is worth another view; NULL if there is neither.
static struct packed_slab *find_slab(CUdevice device, unsigned class)
{
    struct packed_slab *again = NULL;
    for (struct packed_slab *s = lists[device][class]; s; s = s->next) {
        if (s->nfresh) {
            move_to_front(s);
            return s;
        }
        if (!again && !s->busy && s->nfreed * WORTH >= s->slots)
            again = s;
    }
    return again;
}

// Maps a slab at new addresses, at which its freed slots are fresh. Requires the lock, which it releases
// meanwhile.
static void renew(struct packed_slab *s, uint64_t peers)
{
    s->busy = true;
    lock_give(&lock);
    struct pages_view *v = map_view(s, peers);
    lock_take(&lock);
    s->busy = false;
    if (!v)
        return;
    struct pages_view *old = s->views;
    memcpy(s->fresh, s->freed, sizeof s->fresh);
    memset(s->freed, 0, sizeof s->freed);
    s->nfresh = s->nfreed;
    s->nfreed = 0;
    v->next = old;
    s->views = v;
}

// Returns a slab with a fresh slot, and the lock held; NULL, and the lock not held, if there is no memory.
static struct packed_slab *slab_for(CUdevice device, unsigned class, uint64_t stride, uint64_t asked,
                                    uint64_t peers, int *err)
{
    lock_take(&lock);
    struct packed_slab *s = find_slab(device, class);
    if (s && !s->nfresh)
        renew(s, peers);
    if (s && s->nfresh)
        return s;
    lock_give(&lock);
    s = new_slab(device, class, stride, asked, peers, err);
    if (!s)
        return NULL;
    lock_take(&lock);
    link_slab(s);
    return s;
}

int pages_packed_take(CUdevice device, uint64_t size, uint64_t peers, struct pages_memory *memory,
                      uint64_t *slot, uint64_t *stride)
{
    uint64_t unit = context_device_of(device)->alignment;
    unsigned class = class_of(size + pages_redzone(size), unit, stride);
    int err = 0;
    assert(class < CLASSES);
    struct packed_slab *s = slab_for(device, class, *stride, size, peers, &err);
    if (!s)
        return err;
    struct pages_view *v = s->views;
    uint32_t number = take_fresh(s);
    v->held++;
    s->held++;
    bool open = peers & ~v->peers;
    v->peers |= peers;
    *memory = (struct pages_memory){.handle = s->handle,
                                    .bytes = bytes_of(s),
                                    .offset = number * s->stride,
                                    .asked = size,
                                    .view = v,
                                    .slot = number};
    *slot = v->base + memory->offset;
    lock_give(&lock);
    // The view stays mapped, since the caller holds a slot of it.
    if (open)
        pages_map_open(v->base, memory->bytes, device, v->peers);
    pages_memory_use(size);
    return 0;
}

// --- giving ------------------------------------------------------------------------------------------------

// Returns whether an empty slab should be released: others of its class have room.
static bool is_spare(const struct packed_slab *s)
{
    return !s->held && !s->busy && (s->next || lists[s->device][s->class] != s);
}

void pages_packed_give(const struct pages_memory *memory)
{
    struct pages_view *v = memory->view;
    struct packed_slab *s = v->slab;
    lock_take(&lock);
    assert(v->held && s->held && !(s->freed[memory->slot / 64] >> memory->slot % 64 & 1));
    v->held--;
    s->held--;
    s->freed[memory->slot / 64] |= (uint64_t)1 << memory->slot % 64;
    s->nfreed++;
    bool spare = is_spare(s);
    struct pages_view *gone = NULL;
    if (spare)
        unlink_slab(s);
    else
        gone = retire_view(v);
    // The slab may be released by another thread as soon as the lock is free.
    const struct packed_slab about = {.units = s->units};
    lock_give(&lock);
    pages_memory_unuse(memory->asked);
    if (spare)
        release_slab(s);
    else
        unmap_view(gone, &about);
}

static struct packed_slab *take_empty(void)
{
    for (unsigned d = 0; d < CONTEXT_DEVICES; d++)
        for (unsigned c = 0; c < CLASSES; c++)
            for (struct packed_slab *s = lists[d][c]; s; s = s->next)
                if (!s->held && !s->busy) {
                    unlink_slab(s);
                    return s;
                }
    return NULL;
}

void pages_packed_trim(void)
{
    for (;;) {
        lock_take(&lock);
        struct packed_slab *s = take_empty();
        lock_give(&lock);
        if (!s)
            return;
        release_slab(s);
    }
}

void pages_packed_set_access(const struct pages_memory *memory, const CUmemAccessDesc *desc, size_t count)
{
    guard.real.cuMemSetAccess(memory->view->base, memory->bytes, desc, count);
}

// --- invariants --------------------------------------------------------------------------------------------

static bool slab_valid(const struct packed_slab *s)
{
    uint32_t fresh = 0, freed = 0, held = 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        fresh += (uint32_t)__builtin_popcountll(s->fresh[i]);
        freed += (uint32_t)__builtin_popcountll(s->freed[i]);
        if (s->fresh[i] & s->freed[i])
            return false;
    }
    for (const struct pages_view *v = s->views; v; v = v->next) {
        held += v->held;
        if (v->slab != s || (!v->held && !(v == s->views && s->nfresh)))
            return false;
    }
    return fresh == s->nfresh && freed == s->nfreed && held == s->held && (s->views || !s->nfresh) &&
           s->slots == s->held + s->nfresh + s->nfreed;
}

bool pages_packed_valid(void)
{
    bool valid = true;
    lock_take(&lock);
    for (unsigned d = 0; d < CONTEXT_DEVICES; d++)
        for (unsigned c = 0; c < CLASSES; c++)
            for (const struct packed_slab *s = lists[d][c]; s && valid; s = s->next)
                valid = slab_valid(s);
    lock_give(&lock);
    return valid;
}
