// SPDX-License-Identifier: MIT
#include "context/kernels.h"

#include <string.h>
#include <sys/mman.h>

#include "context/context.h"
#include "context/names.h"
#include "core/lock.h"
#include "core/guard.h"
#include "core/slab_pool.h"

enum {
    MOST = KERNELS_SLOTS / 4 * 3,  // a search for an unknown handle would not end in a full table
    OWNERS = 4096,                 // buckets
    ROOM = 8 << 20,  // bytes of layouts; address space is reserved, and memory is committed as it is filled
    LAYOUTS = 1 << 14,
};

_Atomic(struct kernels_slot *) kernels_slots;

static struct lock lock = LOCK_INIT(KERNELS);  // held over a pool's lock only
static _Atomic uint64_t found;  // relaxed: a thread that unloads a module has found its kernels before
static struct slab_pool pool = SLAB_POOL(struct kernel);
static struct slab_pool old_pool = SLAB_POOL(struct kernels_old);
static unsigned filled;
static struct kernel *owners[OWNERS];
static atomic_int numbers;

// Each layout is kept once; a table of offsets finds it again. Protected by the lock.
static char *room;
static size_t used = 8;  // offset 0 means none
static uint32_t layouts[LAYOUTS];
static unsigned nlayouts;
static const struct kernels_layout unknown;  // a query that failed; never returned to callers

static void *reserve(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

// --- entries -----------------------------------------------------------------------------------------------

// Requires the lock. Returns the table, or NULL if out of memory.
static struct kernels_slot *table(void)
{
    struct kernels_slot *slots = atomic_load_explicit(&kernels_slots, memory_order_relaxed);
    if (!slots && (slots = reserve(KERNELS_SLOTS * sizeof *slots)))
        atomic_store_explicit(&kernels_slots, slots, memory_order_release);  // partner: kernels_find
    return slots;
}

// Requires the lock.
static struct kernel *get(const void *handle)
{
    struct kernels_slot *slots = table();
    struct kernel *k = kernels_find(handle);
    if (k || !slots || !handle || filled == MOST || !(k = slab_pool_get(&pool)))
        return k;
    memset(k, 0, sizeof *k);
    k->handle = handle;
    uint32_t i = kernels_hash(handle);
    while (atomic_load_explicit(&slots[i].kernel, memory_order_relaxed))
        i = (i + 1) & (KERNELS_SLOTS - 1);
    atomic_store_explicit(&slots[i].kernel, k, memory_order_release);  // partner: kernels_find
    filled++;
    return k;
}

__attribute__((noinline)) static struct kernel *make_entry(const void *handle)
{
    lock_take(&lock);
    struct kernel *k = get(handle);
    lock_give(&lock);
    return k;
}

struct kernel *kernels_get(const void *handle)
{
    struct kernel *k = kernels_find(handle);
    return k ? k : make_entry(handle);
}

static struct kernel **bucket_of(const void *owner)
{
    return &owners[(uintptr_t)owner * 0x9e3779b97f4a7c15u >> 52];
}

// Requires the lock. Clears the entry except its name and what cuFuncSet* and cuParamSet* have set.
static void forget(struct kernel *k)
{
    const void *owner = atomic_load_explicit(&k->owner, memory_order_relaxed);
    for (struct kernel **p = owner ? bucket_of(owner) : NULL; p && *p; p = &(*p)->next)
        if (*p == k) {
            *p = k->next;
            break;
        }
    for (int i = 0; i < KERNELS_DATA; i++)
        atomic_store_explicit(&k->data[i], NULL, memory_order_release);
    atomic_store_explicit(&k->owner, NULL, memory_order_release);
    atomic_store_explicit(&k->layout, NULL, memory_order_release);
    atomic_store_explicit(&k->hidden, 0, memory_order_release);
    atomic_store_explicit(&k->own, NULL, memory_order_release);
}

// Requires the lock. Clears what cuFuncSet* and cuParamSet* had set in a function that is gone.
static void forget_old(struct kernel *k)
{
    struct kernels_old *old = atomic_load_explicit(&k->old, memory_order_relaxed);
    if (old)
        *old = (struct kernels_old){.block = {1, 1, 1}};
}

// Requires the lock.
static void set_owner(struct kernel *k, const void *owner)
{
    struct kernel **bucket = bucket_of(owner);
    if (!owner)
        return;
    atomic_store_explicit(&k->owner, owner, memory_order_release);
    k->next = *bucket;
    *bucket = k;
}

void kernels_found(const void *handle, enum kernels_kind kind, const void *owner, const char *name)
{
    const char *kept = names_keep(name);
    struct kernel *k = kernels_find(handle);
    // A program may ask for its kernels again and again. The driver is queried for the layout again, in case
    // that another kernel has come under the handle by a way that moat does not see.
    if (k && !atomic_load_explicit(&k->ending, memory_order_acquire) &&
        (!owner || atomic_load_explicit(&k->owner, memory_order_acquire) == owner) &&
        (!kept || atomic_load_explicit(&k->name, memory_order_acquire) == kept) &&
        (!kind || atomic_load_explicit(&k->kind, memory_order_acquire) == kind)) {
        atomic_store_explicit(&k->layout, NULL, memory_order_release);
        return;
    }
    CUcontext context = kind == KERNELS_KERNEL ? NULL : context_current_owner();
    lock_take(&lock);
    k = get(handle);
    if (k) {
        const void *former = atomic_load_explicit(&k->owner, memory_order_relaxed);
        forget(k);
        forget_old(k);
        set_owner(k, owner ? owner : former);
        k->serial = atomic_fetch_add_explicit(&found, 1, memory_order_relaxed);
        k->context = context;
        atomic_store_explicit(&k->ending, false, memory_order_release);
        atomic_store_explicit(&k->kind, kind, memory_order_release);
        if (kept)
            atomic_store_explicit(&k->name, kept, memory_order_release);
    }
    lock_give(&lock);
}

void kernels_owner_ends(const void *owner, bool ends)
{
    lock_take(&lock);
    for (struct kernel *k = owner ? *bucket_of(owner) : NULL; k; k = k->next)
        if (atomic_load_explicit(&k->owner, memory_order_relaxed) == owner)
            atomic_store_explicit(&k->ending, ends, memory_order_release);
    lock_give(&lock);
}

void kernels_context_ends(CUcontext context, bool ends)
{
    lock_take(&lock);
    for (unsigned i = 0; i < OWNERS && context; i++)
        for (struct kernel *k = owners[i]; k; k = k->next)
            if (k->context == context)
                atomic_store_explicit(&k->ending, ends, memory_order_release);
    lock_give(&lock);
}

CUcontext kernels_context(const void *handle)
{
    const struct kernel *k = handle ? kernels_find(handle) : NULL;
    lock_take(&lock);
    CUcontext context = k ? k->context : NULL;
    lock_give(&lock);
    return context;
}

uint64_t kernels_found_so_far(void)
{
    return atomic_load_explicit(&found, memory_order_relaxed);
}

void kernels_owner_gone(const void *owner, uint64_t before)
{
    if (!owner)
        return;
    lock_take(&lock);
    for (struct kernel *k = *bucket_of(owner), *next; k; k = next) {
        next = k->next;
        if (atomic_load_explicit(&k->owner, memory_order_relaxed) == owner && k->serial < before) {
            forget(k);
            forget_old(k);
        }
    }
    lock_give(&lock);
}

const char *kernels_plain_name(const char *name)
{
    static const char prefix[] = "__moat_";
    const char *word =
        strncmp(name, prefix, sizeof prefix - 1) ? NULL : strchr(name + sizeof prefix - 1, '_');
    return word ? word + 1 : name;
}

const char *kernels_name(const void *handle)
{
    const struct kernel *k = kernels_own(kernels_find(handle));
    return k ? atomic_load_explicit(&k->name, memory_order_acquire) : NULL;
}

void kernels_stands_for(struct kernel *instead, const struct kernel *own)
{
    // Release: pairs with the acquire in kernels_own.
    if (instead && own && instead != own && kernels_own(instead) != own)
        atomic_store_explicit(&instead->own, own, memory_order_release);
}

struct kernels_old *kernels_old(struct kernel *k)
{
    struct kernels_old *old = k ? atomic_load_explicit(&k->old, memory_order_acquire) : NULL;
    if (old || !k)
        return old;
    struct kernels_old *made = slab_pool_get(&old_pool);
    if (!made)
        return NULL;
    *made = (struct kernels_old){.block = {1, 1, 1}};
    // Release: pairs with the acquire above and with that of a failing exchange.
    if (atomic_compare_exchange_strong_explicit(&k->old, &old, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    slab_pool_put(&old_pool, made);
    return old;
}

int kernels_take_number(void)
{
    int n = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
    return n < KERNELS_DATA ? n : -1;
}

// --- layouts -----------------------------------------------------------------------------------------------

static size_t bytes_of(uint32_t count)
{
    return (sizeof(struct kernels_layout) + count * sizeof(struct kernels_parameter) + 7) / 8 * 8;
}

static uint32_t hash(const struct kernels_parameter *p, uint32_t count)
{
    uint64_t h = count;
    for (uint32_t i = 0; i < count; i++)
        h = (h ^ (uint64_t)(p[i].offset << 16 | p[i].size)) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 40) & (LAYOUTS - 1);
}

// Requires the lock. Returns NULL if there is no room.
static const struct kernels_layout *keep(const struct kernels_parameter *p, uint32_t count)
{
    uint32_t at = hash(p, count);
    if (!room && !(room = reserve(ROOM)))
        return NULL;
    for (; layouts[at]; at = (at + 1) & (LAYOUTS - 1)) {
        const struct kernels_layout *l = (const void *)(room + layouts[at]);
        if (l->count == count && memcmp(l->parameter, p, count * sizeof *p) == 0)
            return l;
    }
    if (bytes_of(count) > ROOM - used || nlayouts == LAYOUTS / 4 * 3)
        return NULL;
    struct kernels_layout *l = (void *)(room + used);
    l->count = count;
    memcpy(l->parameter, p, count * sizeof *p);
    for (uint32_t i = 0; i < count; i++)
        if (l->size < (uint32_t)p[i].offset + p[i].size)
            l->size = (uint32_t)p[i].offset + p[i].size;
    size_t offset = used;
    used += bytes_of(count);
    nlayouts++;
    layouts[at] = (uint32_t)offset;
    return l;
}

static const struct kernels_layout *keep_locked(const struct kernels_parameter *p, uint32_t count)
{
    lock_take(&lock);
    const struct kernels_layout *l = keep(p, count);
    lock_give(&lock);
    return l;
}

// A handle of unknown kind may be either: both calls are tried.
static CUresult ask(const struct kernel *k, uint32_t index, size_t *offset, size_t *size)
{
    enum kernels_kind kind = atomic_load_explicit(&k->kind, memory_order_acquire);
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;
    if (kind != KERNELS_KERNEL && guard.real.cuFuncGetParamInfo)
        r = guard.real.cuFuncGetParamInfo((CUfunction)k->handle, index, offset, size);
    if (kind == KERNELS_KERNEL || (kind == KERNELS_UNKNOWN && r && r != CUDA_ERROR_INVALID_VALUE))
        r = guard.real.cuKernelGetParamInfo
                ? guard.real.cuKernelGetParamInfo((CUkernel)k->handle, index, offset, size)
                : CUDA_ERROR_NOT_SUPPORTED;
    return r;
}

// Returns how many parameters there are, or -1 if unknown. The driver refuses the first index that does not
// exist.
static int ask_all(const struct kernel *k, struct kernels_parameter *p)
{
    uint32_t n = 0;
    for (CUresult r = CUDA_SUCCESS;; n++) {
        size_t offset = 0, size = 0;
        r = ask(k, n, &offset, &size);
        if (r == CUDA_ERROR_INVALID_VALUE)
            return (int)n;
        if (r || n == KERNELS_PARAMETERS || offset > UINT16_MAX || size > UINT16_MAX)
            return -1;
        p[n] = (struct kernels_parameter){(uint16_t)offset, (uint16_t)size};
    }
}

// A separate function, so that a launch whose layout is known needs no stack for it.
__attribute__((noinline)) static const struct kernels_layout *ask_layout(struct kernel *k)
{
    const struct kernels_layout *l;
    struct kernels_parameter p[KERNELS_PARAMETERS];
    CUstreamCaptureMode mode = context_capture_relax();
    int count = ask_all(k, p);
    context_capture_restore(mode);
    int hidden = (int)atomic_load_explicit(&k->hidden, memory_order_acquire);
    l = count >= hidden ? keep_locked(p, (uint32_t)(count - hidden)) : NULL;
    // Release: pairs with the acquire in kernels_layout, so that a thread that sees the layout sees its
    // contents.
    atomic_store_explicit(&k->layout, l ? l : &unknown, memory_order_release);
    return l;
}

const struct kernels_layout *kernels_layout(struct kernel *k)
{
    const struct kernels_layout *l = k ? atomic_load_explicit(&k->layout, memory_order_acquire) : NULL;
    if (!l && k)
        l = ask_layout(k);
    return l == &unknown ? NULL : l;
}

bool kernels_set_layout(struct kernel *k, const struct kernels_parameter *parameters, uint32_t count)
{
    const struct kernels_layout *l = count <= KERNELS_PARAMETERS ? keep_locked(parameters, count) : NULL;
    if (l)
        atomic_store_explicit(&k->layout, l, memory_order_release);
    return l;
}

void kernels_hide(struct kernel *k, uint32_t count)
{
    if (atomic_load_explicit(&k->hidden, memory_order_acquire) == count)
        return;
    atomic_store_explicit(&k->hidden, count, memory_order_release);
    atomic_store_explicit(&k->layout, NULL, memory_order_release);
}

void kernels_after_fork(void)
{
    lock_after_fork(&lock);
    slab_pool_after_fork(&pool);
    slab_pool_after_fork(&old_pool);
}
