// SPDX-License-Identifier: MIT
#include "check/check_slab.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "check/check_host.h"
#include "core/guard.h"
#include "core/index.h"
#include "core/lock.h"
#include "pages/pages_block.h"

enum {
    SLAB = 2 << 20,
    STEPS = 8,  // sizes of slots between two powers of two
    CLASSES = 128,
    WORDS = SLAB / 512 / 64,  // of a bit for each slot
    REMAP = 4,                // a slab is mapped anew when 1 / REMAP of its slots are free
    LOOKS = 8,                // most waiting buffers that an allocation looks at
};

struct mapping {
    struct index_item range;  // first
    struct slab *slab;
    uint32_t next, live;
    bool divided;      // the table has a record for each slot
    uint32_t sizes[];  // of the live buffer in each slot; 0: none
};

struct slab {
    CUmemGenericAllocationHandle handle;
    CUcontext context;
    CUdevice device;
    unsigned class;
    uint32_t stride, slots, free;
    uint32_t mapped;  // mappings
    struct mapping *newest;
    struct slab *next;  // in the list of slabs that have room, if `listed`
    bool listed;
    uint64_t bits[WORDS];  // 1: free
};

// Addresses that may be used again, a ring.
struct retired {
    uint64_t at[CHECK_SLAB_RETIRED];
    uint64_t first, last;
};

struct waiting {
    CUevent event;
    uint64_t pointer;
};

static struct lock lock = LOCK_INIT(CHECK_SLAB);  // held over calls of the driver
static struct index mappings = INDEX_INIT;
static struct slab *open_slabs[CONTEXT_CONTEXTS][CLASSES];
static struct retired *retired[CLASSES];
static VEC(struct waiting) waiting;

// What a parent has mapped does not exist in its child.
void check_slab_after_fork(void)
{
    lock_after_fork(&lock);
    index_after_fork(&mappings);
}

// --- sizes -------------------------------------------------------------------------------------------------

uint32_t check_slab_stride(uint64_t size, uint32_t alignment)
{
    uint32_t need = (uint32_t)size + CHECK_SLAB_APART, power = 1;
    while (power <= need / 2)
        power *= 2;
    uint32_t step = power / STEPS > alignment ? power / STEPS : alignment;
    return (need + step - 1) & ~(step - 1);
}

// Returns a number for a stride; strides of one alignment have different numbers.
static unsigned class_of(uint32_t stride)
{
    unsigned bits = 31 - (unsigned)__builtin_clz(stride);
    return ((bits - 8) * STEPS + (stride * STEPS >> bits & (STEPS - 1))) % CLASSES;
}

static bool is_free(const struct slab *s, uint32_t slot)
{
    return s->bits[slot / 64] >> slot % 64 & 1;
}

// --- mappings ----------------------------------------------------------------------------------------------

// Returns addresses for a mapping, that were used before if there are too many. *again: they are divided
// already.
static int take_addresses(unsigned class, uint64_t *base, bool *again)
{
    struct retired *r = retired[class];
    bool reused;
    *again = r && r->last - r->first == CHECK_SLAB_RETIRED;
    if (*again) {
        *base = r->at[r->first++ % CHECK_SLAB_RETIRED];
        return 0;
    }
    return pages_block_take_addresses(1, base, &reused);
}

// Addresses that find no room are never used again.
static void retire(unsigned class, uint64_t base)
{
    struct retired **r = &retired[class];
    if (!*r)
        *r = mem_zalloc(1, sizeof **r);
    if (*r && (*r)->last - (*r)->first < CHECK_SLAB_RETIRED)
        (*r)->at[(*r)->last++ % CHECK_SLAB_RETIRED] = base;
}

static CUresult set_access(const struct slab *s, uint64_t base, uint64_t peers)
{
    CUmemAccessDesc access[1 + CONTEXT_DEVICES];
    size_t n = 0;
    for (int d = 0; d < CONTEXT_DEVICES; d++)
        if (d == s->device || peers >> d & 1)
            access[n++] =
                (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, d}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return guard.real.cuMemSetAccess(base, SLAB, access, n);
}

// Returns false if out of memory: the mapping stays, without buffers.
static bool unmap(struct mapping *m)
{
    if (!index_take(&mappings, &m->range))
        return false;
    guard.real.cuMemUnmap(m->range.base, SLAB);
    retire(m->slab->class, m->range.base);
    m->slab->mapped--;
    mem_free(m);
    return true;
}

// Maps a slab at new addresses. Returns false if that is not possible.
static bool map(struct slab *s, uint64_t peers)
{
    struct mapping *m = mem_zalloc(1, sizeof *m + s->slots * sizeof *m->sizes);
    struct index_item *former;
    uint64_t base;
    bool again;
    if (!m || take_addresses(s->class, &base, &again)) {
        mem_free(m);
        return false;
    }
    m->range.base = base;
    m->range.size = SLAB;
    m->slab = s;
    if (guard.real.cuMemMap(base, SLAB, 0, s->handle, 0))
        goto fail;
    if (set_access(s, base, peers) || index_put(&mappings, &m->range, &former)) {
        guard.real.cuMemUnmap(base, SLAB);
        goto fail;
    }
    if (again)
        guard_count(GUARD_CHECK_REUSED);
    m->divided = again;
    struct mapping *old = s->newest;
    s->newest = m;
    s->mapped++;
    if (old && !old->live)
        unmap(old);
    return true;
fail:
    retire(s->class, base);
    mem_free(m);
    return false;
}

// --- slabs -------------------------------------------------------------------------------------------------

static void list(struct slab *s, unsigned number)
{
    s->next = open_slabs[number][s->class];
    open_slabs[number][s->class] = s;
    s->listed = true;
}

static void unlist(struct slab *s, unsigned number)
{
    struct slab **link = &open_slabs[number][s->class];
    while (*link && *link != s)
        link = &(*link)->next;
    if (*link)
        *link = s->next;
    s->listed = false;
}

static struct slab *make(struct context *ctx, uint32_t stride)
{
    const struct context_device *d = context_device_of(ctx->device);
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, ctx->device},
        .requestedHandleTypes =
            d->exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,
        .allocFlags = {.gpuDirectRDMACapable = d->rdma},
    };
    struct slab *s = mem_zalloc(1, sizeof *s);
    if (!s || guard.real.cuMemCreate(&s->handle, SLAB, &prop, 0)) {
        mem_free(s);
        return NULL;
    }
    s->context = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
    s->device = ctx->device;
    s->stride = stride;
    s->class = class_of(stride);
    s->slots = s->free = SLAB / stride;
    for (uint32_t i = 0; i < s->slots; i++)
        s->bits[i / 64] |= (uint64_t)1 << i % 64;
    if (!map(s, atomic_load_explicit(&ctx->peers, memory_order_relaxed))) {
        guard.real.cuMemRelease(s->handle);
        mem_free(s);
        return NULL;
    }
    list(s, context_number(ctx));
    return s;
}

// Releases a slab without buffers.
static void discard(struct slab *s, unsigned number)
{
    if (s->mapped > 1 || !unmap(s->newest))
        return;
    if (s->listed)
        unlist(s, number);
    guard.real.cuMemRelease(s->handle);
    mem_free(s);
}

// Takes the next slot of the newest mapping that is free. Returns 0 if there is none.
static uint64_t take_slot(struct slab *s, uint64_t size)
{
    struct mapping *m = s->newest;
    while (m->next < s->slots && !is_free(s, m->next))
        m->next++;
    if (m->next == s->slots)
        return 0;
    uint32_t slot = m->next++;
    s->bits[slot / 64] &= ~((uint64_t)1 << slot % 64);
    s->free--;
    m->live++;
    m->sizes[slot] = (uint32_t)size;
    return m->range.base + (uint64_t)slot * s->stride;
}

static void poll_waiting(void);

int check_slab_alloc(struct context *ctx, uint64_t size, uint64_t *pointer)
{
    uint32_t stride = check_slab_stride(size, (uint32_t)context_device_of(ctx->device)->alignment);
    unsigned number = context_number(ctx), class = class_of(stride);
    uint64_t p = 0, peers = atomic_load_explicit(&ctx->peers, memory_order_relaxed);
    lock_take(&lock);
    poll_waiting();
    struct slab *s;
    while (!p && (s = open_slabs[number][class])) {
        p = s->stride == stride ? take_slot(s, size) : 0;
        if (!p && s->stride == stride && s->free * REMAP >= s->slots && map(s, peers))
            p = take_slot(s, size);
        if (!p)
            unlist(s, number);
    }
    if (!p && (s = make(ctx, stride)))
        p = take_slot(s, size);
    bool divided = !p || s->newest->divided;
    uint64_t base = p ? s->newest->range.base : 0;
    if (p)
        s->newest->divided = true;
    lock_give(&lock);
    // Another thread may be so quick that its buffer is in the table first: then the table divides as it can.
    if (!divided)
        check_host_divide(base, stride);
    *pointer = p;
    return p ? 0 : -ENOMEM;
}

// --- frees -------------------------------------------------------------------------------------------------

// Returns the mapping of a live buffer that starts there, and its slot; NULL: there is none. Requires the
// lock.
static struct mapping *at(uint64_t pointer, uint32_t *slot)
{
    struct mapping *m = (struct mapping *)index_find(&mappings, pointer);
    uint64_t offset = m ? pointer - m->range.base : 0;
    *slot = m ? (uint32_t)(offset / m->slab->stride) : 0;
    return m && offset % m->slab->stride == 0 && *slot < m->slab->slots && m->sizes[*slot] ? m : NULL;
}

// Gives a slot back, in which there is no buffer any more. Requires the lock.
static void give_slot(struct mapping *m, uint32_t slot)
{
    struct slab *s = m->slab;
    struct context *ctx = context_find(s->context);
    s->bits[slot / 64] |= (uint64_t)1 << slot % 64;
    s->free++;
    m->live--;
    if (m != s->newest && !m->live)
        unmap(m);
    if (!ctx)
        return;
    unsigned number = context_number(ctx);
    const struct slab *first = open_slabs[number][s->class];
    if (s->free == s->slots && first && (first != s || s->next))
        discard(s, number);
    else if (!s->listed && s->free * REMAP >= s->slots)
        list(s, number);
}

bool check_slab_free(uint64_t pointer)
{
    uint32_t slot;
    lock_take(&lock);
    struct mapping *m = at(pointer, &slot);
    if (m) {
        m->sizes[slot] = 0;
        give_slot(m, slot);
    }
    lock_give(&lock);
    return m;
}

// The slot stays counted as live in its mapping until the stream has come so far.
CUresult check_slab_free_in_order(uint64_t pointer, CUstream stream, bool per_thread)
{
    const struct driver *d = &guard.real;
    CUevent event = NULL;
    uint32_t slot;
    CUresult r = d->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (!r)
        r = (per_thread ? d->cuEventRecord_ptsz : d->cuEventRecord)(event, stream);
    lock_take(&lock);
    struct mapping *m = r ? NULL : at(pointer, &slot);
    if (!r && !m)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && vec_push(&waiting, (struct waiting){event, pointer}))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r)
        m->sizes[slot] = 0;
    lock_give(&lock);
    if (r && event)
        d->cuEventDestroy_v2(event);
    return r;
}

// Gives back the slots of some waiting buffers whose streams have come so far. Requires the lock.
static void poll_waiting(void)
{
    static size_t turn;
    for (unsigned i = 0; i < LOOKS && waiting.len; i++) {
        size_t n = turn++ % waiting.len;
        struct waiting w = waiting.items[n];
        if (guard.real.cuEventQuery(w.event) == CUDA_ERROR_NOT_READY)
            continue;
        waiting.items[n] = waiting.items[--waiting.len];
        guard.real.cuEventDestroy_v2(w.event);
        struct mapping *m = (struct mapping *)index_find(&mappings, w.pointer);
        if (m)
            give_slot(m, (uint32_t)((w.pointer - m->range.base) / m->slab->stride));
    }
}

bool check_slab_find(uint64_t address, struct check_slab_buffer *b)
{
    lock_take(&lock);
    const struct mapping *m = (const struct mapping *)index_find(&mappings, address);
    *b = (struct check_slab_buffer){0};
    if (m) {
        const struct slab *s = m->slab;
        uint32_t slot = (uint32_t)((address - m->range.base) / s->stride);
        uint64_t offset = (uint64_t)slot * s->stride;
        if (slot < s->slots && address - m->range.base - offset < m->sizes[slot])
            *b = (struct check_slab_buffer){m->range.base + offset, m->sizes[slot], s->context, s->handle,
                                            offset};
    }
    lock_give(&lock);
    return m;
}

// --- contexts ----------------------------------------------------------------------------------------------

struct search {
    CUcontext context;
    const CUmemAccessDesc *desc;
    struct mapping *found;
};

static int find_any(struct index_item *item, void *argument)
{
    struct search *s = argument;
    struct mapping *m = (struct mapping *)item;
    if (m->slab->context != s->context)
        return 0;
    s->found = m;
    return 1;
}

static int give_access(struct index_item *item, void *argument)
{
    const struct search *s = argument;
    const struct mapping *m = (const struct mapping *)item;
    if (m->slab->context == s->context)
        guard.real.cuMemSetAccess(m->range.base, SLAB, s->desc, 1);
    return 0;
}

void check_slab_set_access(CUcontext context, const CUmemAccessDesc *desc)
{
    struct search s = {.context = context, .desc = desc};
    lock_take(&lock);
    index_each(&mappings, give_access, &s);
    lock_give(&lock);
}

// Requires the lock. Events end with their context.
static void forget_waiting(CUcontext context)
{
    for (size_t i = 0; i < waiting.len;) {
        const struct mapping *m = (const struct mapping *)index_find(&mappings, waiting.items[i].pointer);
        if (!m || m->slab->context == context)
            waiting.items[i] = waiting.items[--waiting.len];
        else
            i++;
    }
}

// Plain memory would have ended with its context.
void check_slab_context_gone(CUcontext context)
{
    struct context *ctx = context_find(context);
    struct search any = {.context = context};
    lock_take(&lock);
    forget_waiting(context);
    while (index_each(&mappings, find_any, &any)) {
        struct slab *s = any.found->slab;
        if (ctx && s->listed)
            unlist(s, context_number(ctx));
        if (!unmap(any.found))
            break;
        if (!s->mapped) {
            guard.real.cuMemRelease(s->handle);
            mem_free(s);
        }
    }
    lock_give(&lock);
}

static int mapping_wrong(struct index_item *item, void *argument)
{
    const struct mapping *m = (const struct mapping *)item;
    const struct slab *s = m->slab;
    uint32_t live = 0, free = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        live += m->sizes[i] != 0;
        free += is_free(s, i);
        if (m->sizes[i] && (is_free(s, i) || i >= m->next || m->sizes[i] + CHECK_SLAB_APART > s->stride))
            return 1;
    }
    return live > m->live || free != s->free || free + m->live > s->slots || (m != s->newest && !m->live);
}

bool check_slab_valid(void)
{
    lock_take(&lock);
    bool wrong = index_each(&mappings, mapping_wrong, NULL);
    lock_give(&lock);
    return !wrong;
}
