// SPDX-License-Identifier: MIT
#include "shadow/shadow_behind.h"

#include "core/guard.h"
#include "core/index.h"
#include "core/slab_pool.h"
#include "pages/pages_redzone.h"

enum { UNIT = 256 };

struct buffer {
    struct index_item range;  // first member; with the room
    uint64_t size;            // the program's
    CUcontext context;        // that was current: the memory ends with it
};

static struct index buffers = INDEX_INIT;
static struct slab_pool pool = SLAB_POOL(struct buffer);

static void release(struct epoch_node *node)
{
    slab_pool_put(&pool, (char *)node - offsetof(struct buffer, range.retired));
}

// Returns the bytes to ask for, a multiple of 256; 0: too many.
static uint64_t with_room(uint64_t size)
{
    uint64_t all = size > UINT64_MAX / 4 ? 0 : size + pages_redzone(size);
    return (all + UNIT - 1) & ~(uint64_t)(UNIT - 1);
}

static CUresult ask_driver(const struct mode_alloc *a, uint64_t bytes, uint64_t *pointer)
{
    const struct driver *d = &guard.real;
    CUdeviceptr managed = 0;
    void *host = NULL;
    CUresult r = a->kind == MODE_MANAGED ? d->cuMemAllocManaged(&managed, bytes, *a->flags)
                 : a->flags              ? d->cuMemHostAlloc(&host, bytes, *a->flags)
                                         : d->cuMemAllocHost_v2(&host, bytes);
    *pointer = a->kind == MODE_MANAGED ? managed : (uintptr_t)host;
    return r;
}

bool shadow_behind_alloc(const struct mode_alloc *a, uint64_t *pointer, CUresult *r)
{
    uint64_t bytes = a->kind == MODE_MANAGED || a->kind == MODE_HOST ? with_room(a->size) : 0;
    if (!a->size || !bytes)
        return false;
    CUcontext context = NULL;
    guard.real.cuCtxGetCurrent(&context);
    struct buffer *b = slab_pool_get(&pool);
    if (!b)
        return false;
    *r = ask_driver(a, bytes, pointer);
    if (!*r)
        *b = (struct buffer){.range = {.base = *pointer, .size = bytes}, .size = a->size, .context = context};
    if (*r || index_insert(&buffers, &b->range))
        slab_pool_put(&pool, b);
    // It may have room for the buffer alone.
    return *r != CUDA_ERROR_OUT_OF_MEMORY;
}

uint64_t shadow_behind_room(uint64_t base, uint64_t size)
{
    unsigned section = epoch_enter();
    const struct buffer *b = (const struct buffer *)index_find(&buffers, base);
    uint64_t room = b && b->range.base == base && b->size == size ? b->range.size - size : 0;
    epoch_leave(section);
    return room;
}

uint64_t shadow_behind_forget(uint64_t base, uint64_t *size)
{
    struct buffer *b = index_count(&buffers) ? (struct buffer *)index_remove(&buffers, base) : NULL;
    if (!b)
        return 0;
    uint64_t room = b->range.size - b->size;
    *size = b->size;
    epoch_retire(&b->range.retired, release);
    return room;
}

struct search {
    CUcontext context;
    uint64_t base;
};

static int of_context(struct index_item *item, void *argument)
{
    struct search *s = argument;
    s->base = item->base;
    return ((const struct buffer *)item)->context == s->context;
}

void shadow_behind_context_gone(CUcontext context)
{
    struct search s = {.context = context};
    uint64_t size;
    for (bool found = true; found;) {
        unsigned section = epoch_enter();
        found = index_each(&buffers, of_context, &s);
        epoch_leave(section);
        found = found && shadow_behind_forget(s.base, &size);
    }
}

enum mode_what shadow_behind_ask(uint64_t address, struct mode_answer *answer)
{
    unsigned section = epoch_enter();
    const struct buffer *b = (const struct buffer *)index_find(&buffers, address);
    if (b)
        *answer = (struct mode_answer){.base = b->range.base, .size = b->size};
    epoch_leave(section);
    return !b ? MODE_NOT_OURS : address - answer->base < answer->size ? MODE_BUFFER : MODE_AROUND;
}

void shadow_behind_after_fork(void)
{
    slab_pool_after_fork(&pool);
    index_after_fork(&buffers);
}
