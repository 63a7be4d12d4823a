// SPDX-License-Identifier: MIT
#include "canary/canary_slab.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "canary/canary_slot.h"
#include "core/slab_pool.h"

enum {
    UNIT = CANARY_SUBALLOC_UNIT,
    PAGE = 4096,  // pinned memory is aligned to it, and so is the buffer in it
    // Bytes of canary behind a lone buffer at most: a row of them ends where the next buffer's head starts,
    // and whatever lies before a buffer has as many bytes that may be read.
    LONE_TAIL = UNIT - CANARY_HEAD,
    POOL_TAIL = 256,  // the same for a pool's, whose rows have less room (CANARY_READBACK_ROW)
    MOST_SLOTS = 1 << 20,
    KEPT = CANARY_HEAD,  // bytes at the end of a slab for the head of what lies behind it
    // more than a row of a slab, which is a slot's tail and a head
    ROW = UNIT + CANARY_HEAD + CANARY_TAIL_LEAST,
};

_Static_assert(LONE_TAIL + KEPT <= UNIT && (int)LONE_TAIL <= (int)CANARY_LEAD &&
                   (int)KEPT <= (int)CANARY_LEAD,
               "what lies before a buffer has room for its head, and for a row to be read");
_Static_assert((int)LONE_TAIL <= (int)CANARY_TAIL_MOST &&
                   (int)UNIT + CANARY_TAIL_LEAST <= (int)CANARY_TAIL_MOST,
               "tails fit");

static struct slab_pool slabs = SLAB_POOL(struct canary_slab);

void canary_slab_after_fork(void)
{
    slab_pool_after_fork(&slabs);
}

uint64_t canary_slab_stride(uint64_t size)
{
    return canary_suballoc_round(size + CANARY_TAIL_LEAST + CANARY_HEAD, UNIT);
}

bool canary_slab_is_flat(const struct canary_slab *s, uint64_t size)
{
    return s->memory->kind == CANARY_POOL && size % 4 == 0;
}

struct canary_seed canary_slab_seed(const struct canary_place *place)
{
    return canary_slab_is_flat(place->slab, place->size)
               ? canary_bytes_flat_seed(place->base, place->size)
               : canary_bytes_seed(place->base, canary_slab_head_number(place->slab, place->size));
}

uint32_t canary_slab_tail(const struct canary_slab *s, uint64_t size)
{
    if (canary_slab_is_flat(s, size))
        return CANARY_HEAD;  // it is alone in its slab, so that no head follows

    uint64_t room =
        (canary_slab_is_lone_suballocated(s) ? s->range.size - KEPT : s->stride - CANARY_HEAD) - size;
    uint64_t most = s->memory->kind == CANARY_POOL ? POOL_TAIL : LONE_TAIL;
    return (uint32_t)(canary_slab_is_lone(s) && room > most ? most : room);
}

void canary_slab_release(struct epoch_node *node)
{
    struct canary_slab *s =
        (struct canary_slab *)((char *)node - offsetof(struct canary_slab, range.retired));
    if (s->slot != &s->one)
        munmap(s->slot, s->slots * sizeof *s->slot);
    if (s->fingerprints)
        munmap(s->fingerprints, s->slots * sizeof *s->fingerprints);
    slab_pool_put(&slabs, s);
}

struct canary_slab *canary_slab_new(struct context *ctx, const struct canary_memory *memory, uint32_t slots)
{
    assert(memory && slots && slots <= MOST_SLOTS);
    struct canary_slab *s = slab_pool_get(&slabs);
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->memory = memory;
    s->ctx = ctx;
    s->context = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
    s->slots = slots;
    s->slot = &s->one;
    s->least = UINT64_MAX;
    s->is_ready = true;
    if (slots > 1) {
        void *p =
            mmap(NULL, slots * sizeof *s->slot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            slab_pool_put(&slabs, s);
            return NULL;
        }
        s->slot = p;
    }
    return s;
}

static bool sizes_valid(const struct canary_slab *s)
{
    uint64_t least = atomic_load_explicit(&s->least, memory_order_relaxed);
    uint64_t most = atomic_load_explicit(&s->most, memory_order_relaxed);
    return !atomic_load_explicit(&s->high, memory_order_relaxed) ||
           (least && least <= most && most <= s->stride - CANARY_HEAD - CANARY_TAIL_LEAST);
}

bool canary_slab_valid(const struct canary_slab *s)
{
    bool many = s->slots > 1, full = s->used == s->slots;
    bool is_ready = atomic_load_explicit(&s->is_ready, memory_order_relaxed);
    return s->slots && s->stride && s->stride % UNIT == 0 && (s->slot == &s->one) == !many &&
           s->range.base <= s->base && s->base + s->slots * s->stride <= s->range.base + s->range.size &&
           s->used <= s->fresh && s->fresh <= s->slots &&
           atomic_load_explicit(&s->high, memory_order_relaxed) == s->fresh &&
           (!s->ready || s->memory->kind == CANARY_POOL) && (is_ready || s->ready) && !s->first == !s->last &&
           !(s->open && (full || !many)) && (!many || s->unindexed || s->open || full) && sizes_valid(s);
}

// A free slot belongs to nobody, and so it does not change.
static bool free_valid(const struct canary_slab *s, uint32_t number)
{
    const struct canary_slot *t = &s->slot[number];
    return number < s->fresh && !atomic_load_explicit(&t->size, memory_order_relaxed) &&
           atomic_load_explicit(&t->since, memory_order_relaxed) <
               atomic_load_explicit(&s->freed, memory_order_relaxed);
}

static bool list_valid(const struct canary_slab *s)
{
    uint32_t count = 0, last = 0;
    for (uint32_t at = s->first; at; last = at, at = s->slot[at - 1].next)
        if (!free_valid(s, at - 1) || ++count > s->slots)
            return false;
    return last == s->last && count == s->fresh - s->used &&
           count == atomic_load_explicit(&s->idle, memory_order_relaxed);
}

bool canary_slab_slots_valid(const struct canary_slab *s)
{
    uint64_t least = atomic_load_explicit(&s->least, memory_order_relaxed);
    uint64_t most = atomic_load_explicit(&s->most, memory_order_relaxed);
    for (uint32_t i = 0; i < s->fresh; i++) {
        uint64_t size = atomic_load_explicit(&s->slot[i].size, memory_order_relaxed);
        if (!canary_slot_valid(s, i) || (size && (size < least || size > most)))
            return false;
    }
    return canary_slab_is_lone(s) || list_valid(s);
}

uint64_t canary_slab_front(uint32_t slots)
{
    return slots == 1 ? 0 : UNIT;
}

// A lone buffer of any size takes one unit more than its rounded size, for the tail and the bytes that are
// kept.
uint64_t canary_slab_bytes(uint64_t size, uint32_t slots)
{
    return slots == 1 ? canary_suballoc_round(size, UNIT) + UNIT
                      : canary_slab_front(slots) + slots * canary_slab_stride(size) + UNIT;
}

uint64_t canary_slab_room(uint64_t stride, uint64_t bytes)
{
    return bytes < 2 * UNIT ? 0 : (bytes - 2 * UNIT) / stride;
}

uint32_t canary_slab_canary_start(uint64_t stride)
{
    return (uint32_t)(stride > ROW ? stride - ROW : 0);
}

uint64_t canary_slab_row(const struct canary_slab *s, uint32_t *width)
{
    *width = (uint32_t)(s->stride - canary_slab_canary_start(s->stride));
    return s->base - *width;
}

void canary_slab_make_row(const struct canary_slab *s, uint32_t row, uint32_t width, uint8_t *bytes)
{
    uint32_t tail = width - CANARY_HEAD, zeros = s->filled_from - canary_slab_canary_start(s->stride);
    memset(bytes, 0, width);
    if (row) {
        struct canary_seed seed = canary_bytes_seed(canary_slab_base(s, row - 1), s->stride);
        canary_bytes_slot(&seed, s->filled_from, bytes + zeros, tail - zeros);
    }
    if (row < s->slots) {
        struct canary_seed seed = canary_bytes_seed(canary_slab_base(s, row), s->stride);
        canary_bytes_head(&seed, s->stride, bytes + tail);
    }
}

const struct canary_memory canary_slab_memory[] = {
    [CANARY_SUBALLOCATED] = {.kind = CANARY_SUBALLOCATED},
    [CANARY_MANAGED] = {.kind = CANARY_MANAGED, .offset = UNIT, .bytes = canary_slab_stride},
    [CANARY_HOST] = {.kind = CANARY_HOST, .offset = PAGE, .bytes = canary_slab_stride, .direct = true},
    [CANARY_POOL] = {.kind = CANARY_POOL, .offset = UNIT, .bytes = canary_slab_stride},
};

uint64_t canary_slab_padded(const struct canary_memory *memory, uint64_t size)
{
    return memory->offset + memory->bytes(size);
}

struct canary_fingerprint *canary_slab_fingerprints(struct canary_slab *s)
{
    if (s->fingerprints)
        return s->fingerprints;
    assert(s->slots);
    void *p = mmap(NULL, s->slots * sizeof *s->fingerprints, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return s->fingerprints = p == MAP_FAILED ? NULL : p;
}
