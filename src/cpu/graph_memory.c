// SPDX-License-Identifier: MIT
#include "cpu/graph_memory.h"

#include <assert.h>

#include "base/mem.h"
#include "base/mutex.h"

enum { CHUNK = 32 << 20 };

static struct memory_slabs slabs[CONFIG_DEVICES] = {
    [0 ... CONFIG_DEVICES - 1] = {.granule = MEMORY_GRANULE, .chunk = CHUNK, .keep = CHUNK},
};
static struct memory_tree known;  // all, by address
static uint64_t used[CONFIG_DEVICES], used_high[CONFIG_DEVICES];

static void lock(void)
{
    mutex_lock(&memory_lock);
}

static void unlock(void)
{
    mutex_unlock(&memory_lock);
}

CUresult graph_memory_new(uint64_t size, int device, struct graph_memory **out)
{
    struct graph_memory *m = mem_zalloc(1, sizeof *m);
    struct memory_block *b = memory_block_new(MEMORY_GRAPH, NULL);
    if (!m || !b) {
        mem_free(m);
        mem_free(b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    b->device = device;
    lock();
    m->piece = memory_slab_take(memory_slab_of(slabs, device), size, MEMORY_GRANULE);
    if (m->piece) {
        m->node.base = m->piece->base;
        m->node.size = size;
        memory_range_insert(&known, &m->node);
    }
    unlock();
    if (!m->piece) {
        mem_free(m);
        mem_free(b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->block = b;
    b->graph = m;
    m->refs = 1;
    *out = m;
    return CUDA_SUCCESS;
}

// While m is shown, whoever will hide it has a reference.
static void drop(struct graph_memory *m)
{
    if (--m->refs)
        return;
    assert(!m->shown);
    memory_range_remove(&known, &m->node);
    memory_slab_give(memory_slab_of(slabs, m->block->device), m->piece);
    mem_free(m->block);
    mem_free(m);
}

struct graph_memory *graph_memory_find(uint64_t address)
{
    lock();
    struct graph_memory *m = (struct graph_memory *)memory_range_at(&known, address);
    if (m && m->node.base != address)
        m = NULL;
    if (m)
        m->refs++;
    unlock();
    return m;
}

bool graph_memory_covers(uint64_t address, uint64_t size)
{
    lock();
    const struct memory_range *r = memory_range_at(&known, address);
    bool covered = r && size <= memory_range_end(r) - address;
    unlock();
    return covered;
}

void graph_memory_keep(struct graph_memory *m)
{
    lock();
    m->refs++;
    unlock();
}

void graph_memory_drop(struct graph_memory *m)
{
    if (!m)
        return;
    lock();
    drop(m);
    unlock();
}

static void show(struct graph_memory *m)
{
    if (m->shown++)
        return;
    int device = m->block->device;
    memory_block_add(m->block, m->node.base, m->node.size);
    used[device] += m->node.size;
    if (used[device] > used_high[device])
        used_high[device] = used[device];
}

static void hide(struct graph_memory *m)
{
    if (--m->shown)
        return;
    memory_block_remove(m->block);
    used[m->block->device] -= m->node.size;
}

void graph_memory_show(struct graph_memory *m)
{
    lock();
    show(m);
    unlock();
}

void graph_memory_hide(struct graph_memory *m)
{
    lock();
    hide(m);
    unlock();
}

bool graph_memory_begin(struct graph_memory *m)
{
    if (m->live)
        return false;
    graph_memory_restore(m);
    show(m);
    return true;
}

bool graph_memory_end(struct graph_memory *m)
{
    if (!m->live)
        return false;
    m->live = false;
    drop(m);
    return true;
}

void graph_memory_restore(struct graph_memory *m)
{
    assert(!m->live);
    m->live = true;
    m->refs++;
}

// The reference of the live allocation passes to the caller.
struct graph_memory *graph_memory_retire(struct memory_block *b)
{
    struct graph_memory *m = b->graph;
    if (!m->live)
        return NULL;
    m->live = false;
    return m;
}

void graph_memory_retired(struct graph_memory *m)
{
    hide(m);
    drop(m);
}

bool graph_memory_release(struct memory_block *b)
{
    struct graph_memory *m = graph_memory_retire(b);
    if (m)
        graph_memory_retired(m);
    return m;
}

void graph_memory_undo(struct graph_memory *m)
{
    if (graph_memory_end(m))
        hide(m);
}

void graph_memory_use(int device, struct graph_memory_use *out)
{
    lock();
    const struct memory_slabs *s = &slabs[device];
    *out = (struct graph_memory_use){used[device], used_high[device], s->reserved, s->high};
    unlock();
}

void graph_memory_reset_high(int device, bool of_used, bool of_reserved)
{
    lock();
    if (of_used)
        used_high[device] = used[device];
    if (of_reserved)
        slabs[device].high = slabs[device].reserved;
    unlock();
}

void graph_memory_trim(int device)
{
    lock();
    memory_slab_trim(memory_slab_of(slabs, device), 0);
    unlock();
}
