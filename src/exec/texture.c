// SPDX-License-Identifier: MIT
// The table of handles: chunks of slots that are never moved or freed, so that readers need no lock.
//
//   handle == (times the slot was taken before) << SLOT_BITS | (slot number + 1)
#include "exec/texture.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "exec/space.h"

enum { SLOT_BITS = 20, CHUNK_BITS = 6, CHUNK = 1 << CHUNK_BITS, CHUNKS = 1 << (SLOT_BITS - CHUNK_BITS) };

struct slot {
    _Atomic uint64_t handle;  // 0: free
    atomic_bool gone;
    uint64_t taken;
    uint32_t next_free;  // slot number + 1
    struct texture texture;
};

static _Atomic(struct slot *) chunks[CHUNKS];
// rank: leaf. Protects nslots and first_free.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t nslots, first_free;

static struct slot *at(uint32_t number)
{
    // Pairs with the release in grow.
    struct slot *chunk = atomic_load_explicit(&chunks[number >> CHUNK_BITS], memory_order_acquire);
    return chunk ? &chunk[number & (CHUNK - 1)] : NULL;
}

static bool grow(void)
{
    if (nslots >= (uint32_t)1 << SLOT_BITS)
        return false;
    struct slot *chunk = mem_zalloc(CHUNK, sizeof *chunk);
    if (!chunk)
        return false;
    for (uint32_t k = 0; k < CHUNK; k++)
        chunk[k].next_free = k + 1 < CHUNK ? nslots + k + 2 : 0;
    atomic_store_explicit(&chunks[nslots >> CHUNK_BITS], chunk, memory_order_release);  // partner: at
    first_free = nslots + 1;
    nslots += CHUNK;
    return true;
}

uint64_t texture_add(const struct texture *t)
{
    uint64_t handle = 0;
    pthread_mutex_lock(&lock);
    if (first_free || grow()) {
        uint32_t number = first_free - 1;
        struct slot *s = at(number);
        first_free = s->next_free;
        s->texture = *t;
        handle = s->taken++ << SLOT_BITS | (number + 1);
        atomic_store_explicit(&s->gone, false, memory_order_relaxed);
        atomic_store_explicit(&s->handle, handle, memory_order_release);  // partner: find_slot
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

static struct slot *find_slot(uint64_t handle)
{
    uint32_t number = (uint32_t)handle & ((1u << SLOT_BITS) - 1);
    struct slot *s = number ? at(number - 1) : NULL;
    // Pairs with the release in texture_add: a thread that reads the handle sees the texture.
    return s && atomic_load_explicit(&s->handle, memory_order_acquire) == handle ? s : NULL;
}

void texture_remove(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct slot *s = find_slot(handle);
    if (s) {
        atomic_store_explicit(&s->handle, 0, memory_order_relaxed);
        s->next_free = first_free;
        first_free = (uint32_t)handle & ((1u << SLOT_BITS) - 1);
    }
    pthread_mutex_unlock(&lock);
}

const struct texture *texture_get(uint64_t handle)
{
    struct slot *s = find_slot(handle);
    // Relaxed: a kernel that runs while its array is destroyed may see either value.
    return s && !atomic_load_explicit(&s->gone, memory_order_relaxed) ? &s->texture : NULL;
}

const struct texture *texture_find(uint64_t handle)
{
    if (space_is_device(handle)) {
        if (handle % 8 || !space_access(handle, 8, SPACE_READ))
            return NULL;
        memcpy(&handle, space_host(handle), sizeof handle);
    }
    return texture_get(handle);
}

void texture_lose(uint64_t from, uint64_t size)
{
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < nslots; k++) {
        struct slot *s = at(k);
        if (atomic_load_explicit(&s->handle, memory_order_relaxed) && s->texture.array &&
            s->texture.level[0].at - from < size)
            atomic_store_explicit(&s->gone, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
}
