// SPDX-License-Identifier: MIT
#include "cpu/graph_memory.h"

#include "base/mem.h"

enum { CHUNK = 32 << 20 };

static struct memory_slabs slabs = {.granule = MEMORY_GRANULE, .chunk = CHUNK, .keep = CHUNK};
static struct memory_tree known;  // all, by address
static uint64_t used, used_high;

static void lock(void)
{
    pthread_mutex_lock(&memory_lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&memory_lock);
}

CUresult graph_memory_new(uint64_t size, struct graph_memory **out)
{
    struct graph_memory *m = mem_zalloc(1, sizeof *m);
    struct memory_block *b = memory_block_new(MEMORY_GRAPH, NULL);
    if (!m || !b) {
        mem_free(m);
        mem_free(b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    lock();
    m->piece = memory_slab_take(&slabs, size, MEMORY_GRANULE);
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

static void drop(struct graph_memory *m)
{
    if (--m->refs)
        return;
    memory_range_remove(&known, &m->node);
    memory_slab_give(&slabs, m->piece);
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
    memory_block_add(m->block, m->node.base, m->node.size);
    used += m->node.size;
    if (used > used_high)
        used_high = used;
}

static void hide(struct graph_memory *m)
{
    if (--m->shown)
        return;
    memory_block_remove(m->block);
    used -= m->node.size;
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
    lock();
    bool fresh = !m->live;
    if (fresh) {
        m->live = true;
        m->refs++;
        show(m);
    }
    unlock();
    return fresh;
}

bool graph_memory_end(struct graph_memory *m)
{
    lock();
    bool was = m->live;
    m->live = false;
    if (was)
        drop(m);
    unlock();
    return was;
}

bool graph_memory_release(struct memory_block *b)
{
    struct graph_memory *m = b->graph;
    if (!m->live)
        return false;
    m->live = false;
    hide(m);
    drop(m);
    return true;
}

void graph_memory_use(struct graph_memory_use *out)
{
    lock();
    *out = (struct graph_memory_use){used, used_high, slabs.reserved, slabs.high};
    unlock();
}

void graph_memory_reset_high(bool of_used, bool of_reserved)
{
    lock();
    if (of_used)
        used_high = used;
    if (of_reserved)
        slabs.high = slabs.reserved;
    unlock();
}

void graph_memory_trim(void)
{
    lock();
    memory_slab_trim(&slabs, 0);
    unlock();
}
