// SPDX-License-Identifier: MIT
#include "pages/pages_memory.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/lock.h"
#include "core/guard.h"
#include "pages/pages_address.h"
#include "pages/pages_redzone.h"
#include "core/slab_pool.h"

// Each small buffer at addresses of its own takes an entry of the GPU's TLB. Measured on an H200
// (bench/pages-small.sh): reads over 64 buffers take 1.02 times as long as over packed ones, over 96 buffers
// 1.12 times, over 512 buffers 1.59 times.
enum { MOST_APART = 64 };

enum {
    SLOT_BITS = 9,  // of the smallest slot
    CLASSES = PAGES_ADDRESS_BITS - SLOT_BITS,
    SLOTS = 1 << CLASSES,  // of the smallest size in a slab
};

// A handle and its free slots, each of 512 << order bytes. It is in the list of its device and order while a
// slot is free.
struct pages_slab {
    struct pages_slab *next, **link;  // *link == this; NULL: in no list
    CUmemGenericAllocationHandle handle;
    CUdevice device;
    uint32_t order, free, slots;
    uint64_t bits[SLOTS / 64];  // 1: free
};

static struct slab_pool pool = SLAB_POOL(struct pages_slab);
static struct pages_slab *open_slabs[CONTEXT_DEVICES][CLASSES];
static struct lock lock = LOCK_INIT(PAGES_MEMORY);  // of the slabs; a leaf
static uint64_t budget, least_own;
// Relaxed: threads that allocate at once may exceed the budget by their own buffers, which is good enough.
static _Atomic int64_t extra;
static _Atomic uint32_t apart;  // small buffers that live; relaxed, as extra is

void pages_memory_init(uint64_t budget_bytes, uint64_t own)
{
    budget = budget_bytes;
    least_own = own;
}

void pages_memory_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
}

uint64_t pages_memory_extra(void)
{
    int64_t bytes = atomic_load_explicit(&extra, memory_order_relaxed);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

static void add_extra(int64_t bytes)
{
    atomic_fetch_add_explicit(&extra, bytes, memory_order_relaxed);
}

int pages_memory_create(CUdevice device, uint64_t bytes, uint64_t asked, CUmemGenericAllocationHandle *handle)
{
    const struct context_device *d = context_device_of(device);
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
        .requestedHandleTypes =
            d->exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,
        .allocFlags = {.gpuDirectRDMACapable = d->rdma},
    };
    if (pages_memory_extra() + bytes - asked > budget)
        return -ENOSPC;
    if (guard.real.cuMemCreate(handle, bytes, &prop, 0))
        return -ENOMEM;
    add_extra((int64_t)bytes);
    return 0;
}

void pages_memory_release(CUmemGenericAllocationHandle handle, uint64_t bytes)
{
    guard.real.cuMemRelease(handle);
    add_extra(-(int64_t)bytes);
}

void pages_memory_use(uint64_t asked)
{
    add_extra(-(int64_t)asked);
}

void pages_memory_unuse(uint64_t asked)
{
    add_extra((int64_t)asked);
}

// The lists. All of these require the lock.

static void link_slab(struct pages_slab *s)
{
    struct pages_slab **list = &open_slabs[s->device][s->order];
    s->next = *list;
    s->link = list;
    if (s->next)
        s->next->link = &s->next;
    *list = s;
}

static void unlink_slab(struct pages_slab *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    s->link = NULL;
}

static uint32_t take_slot(struct pages_slab *s)
{
    for (uint32_t i = 0; i < SLOTS / 64; i++)
        if (s->bits[i]) {
            uint32_t bit = (uint32_t)__builtin_ctzll(s->bits[i]);
            s->bits[i] &= s->bits[i] - 1;
            if (!--s->free)
                unlink_slab(s);
            return i * 64 + bit;
        }
    assert(!"a slab in a list has a free slot");
    return 0;
}

static struct pages_slab *new_slab(CUdevice device, uint32_t order, uint64_t asked, int *err)
{
    struct pages_slab *s = slab_pool_get(&pool);
    *err = -ENOMEM;
    if (!s)
        return NULL;
    *s = (struct pages_slab){.device = device, .order = order, .slots = SLOTS >> order};
    *err = pages_memory_create(device, PAGES_ADDRESS_UNIT, asked, &s->handle);
    if (*err) {
        slab_pool_put(&pool, s);
        return NULL;
    }
    s->free = s->slots;
    for (uint32_t i = 0; i < s->slots; i++)
        s->bits[i / 64] |= (uint64_t)1 << i % 64;
    return s;
}

static int take_shared(CUdevice device, uint64_t size, uint64_t alignment, struct pages_memory *m)
{
    uint32_t order = 0;
    int err;
    while ((uint64_t)1 << (order + SLOT_BITS) < (size > alignment ? size : alignment))
        order++;
    lock_take(&lock);
    if (!open_slabs[device][order]) {
        lock_give(&lock);
        struct pages_slab *fresh = new_slab(device, order, size, &err);
        if (!fresh)
            return err;
        lock_take(&lock);
        link_slab(fresh);
    }
    struct pages_slab *s = open_slabs[device][order];
    m->slab = s;
    m->slot = take_slot(s);
    m->handle = s->handle;
    lock_give(&lock);
    atomic_fetch_add_explicit(&apart, 1, memory_order_relaxed);
    m->bytes = PAGES_ADDRESS_UNIT;
    m->offset = (uint64_t)m->slot << (order + SLOT_BITS);
    return 0;
}

bool pages_memory_is_packed(uint64_t size)
{
    // --mode=check looks at each access itself, and needs the distance between small buffers.
    int small = guard.options.pages_small;
    return size < least_own && size + pages_redzone(size) <= PAGES_ADDRESS_UNIT &&
           (small == OPTION_PAGES_SMALL_PACKED ||
            (small == OPTION_PAGES_SMALL_AUTO && guard.options.mode >> OPTION_MODE_CHECK & 1));
}

bool pages_memory_should_pack(uint64_t size)
{
    // The CPU device, which says where a kernel faulted, has no such TLB.
    return size < least_own && !guard.real_fault && guard.options.pages_small == OPTION_PAGES_SMALL_AUTO &&
           atomic_load_explicit(&apart, memory_order_relaxed) >= MOST_APART;
}

int pages_memory_take(CUdevice device, uint64_t size, struct pages_memory *m)
{
    uint64_t alignment = context_device_of(device)->alignment;
    uint64_t own = (uint64_t)guard.options.pages_align;
    own = own && own < alignment ? own : alignment;
    uint64_t room = (size + own - 1) & ~(own - 1);
    *m = (struct pages_memory){.asked = size};
    int err;
    if (size < least_own) {
        err = take_shared(device, size, alignment, m);
    } else {
        m->bytes = (size + PAGES_ADDRESS_UNIT - 1) & ~(PAGES_ADDRESS_UNIT - 1);
        if (room < size || m->bytes < size)
            return -ENOMEM;
        m->offset = m->bytes - room;
        err = pages_memory_create(device, m->bytes, size, &m->handle);
    }
    if (!err)
        pages_memory_use(size);
    return err;
}

// Frees a slot. An empty slab stays if it is the only one in its list: the next small buffer will need it.
static void give_slot(const struct pages_memory *m)
{
    struct pages_slab *s = m->slab, *gone = NULL;
    atomic_fetch_sub_explicit(&apart, 1, memory_order_relaxed);
    lock_take(&lock);
    s->bits[m->slot / 64] |= (uint64_t)1 << m->slot % 64;
    s->free++;
    if (!s->link)
        link_slab(s);
    if (s->free == s->slots && (s->next || s->link != &open_slabs[s->device][s->order])) {
        unlink_slab(s);
        gone = s;
    }
    lock_give(&lock);
    if (gone) {
        pages_memory_release(gone->handle, PAGES_ADDRESS_UNIT);
        slab_pool_put(&pool, gone);
    }
}

void pages_memory_give(const struct pages_memory *m)
{
    pages_memory_unuse(m->asked);
    if (m->slab)
        give_slot(m);
    else if (m->handle)
        pages_memory_release(m->handle, m->bytes);
}

static struct pages_slab *take_empty(void)
{
    for (unsigned d = 0; d < CONTEXT_DEVICES; d++)
        for (unsigned c = 0; c < CLASSES; c++)
            for (struct pages_slab *s = open_slabs[d][c]; s; s = s->next)
                if (s->free == s->slots) {
                    unlink_slab(s);
                    return s;
                }
    return NULL;
}

void pages_memory_trim(void)
{
    for (;;) {
        lock_take(&lock);
        struct pages_slab *s = take_empty();
        lock_give(&lock);
        if (!s)
            return;
        pages_memory_release(s->handle, PAGES_ADDRESS_UNIT);
        slab_pool_put(&pool, s);
    }
}
