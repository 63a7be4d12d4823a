// SPDX-License-Identifier: MIT
#include "heap/heap_wait.h"

#include <errno.h>
#include <string.h>

#include "heap/guarded.h"
#include "heap/heap_key.h"

int heap_wait_add(struct heap_wait *w, void *block, uint64_t size)
{
    if (!w->blocks) {
        w->blocks = guarded_map(HEAP_WAIT_BLOCKS * sizeof *w->blocks);
        if (!w->blocks)
            return -ENOMEM;
    }
    w->blocks[(w->first + w->count++) % HEAP_WAIT_BLOCKS] = block;
    w->bytes += size;
    return 0;
}

void *heap_wait_oldest(const struct heap_wait *w, uint64_t limit, uint64_t room)
{
    if (!w->count || (w->bytes + room <= limit && w->count < HEAP_WAIT_BLOCKS))
        return NULL;
    return w->blocks[w->first];
}

void heap_wait_drop(struct heap_wait *w, uint64_t size)
{
    w->first = (w->first + 1) % HEAP_WAIT_BLOCKS;
    w->count--;
    w->bytes -= size < w->bytes ? size : w->bytes;
}

// One byte, so that any place of a block can be compared with any other.
static unsigned char filler(void)
{
    return (unsigned char)(heap_key.word[7] | 0x80);
}

void heap_wait_fill(void *block, uint64_t size)
{
    if (size <= 2 * HEAP_WAIT_FILLED) {
        memset(block, filler(), size);
        return;
    }
    memset(block, filler(), HEAP_WAIT_FILLED);
    memset((char *)block + size - HEAP_WAIT_FILLED, filler(), HEAP_WAIT_FILLED);
}

static int64_t first_other(const unsigned char *p, uint64_t size)
{
    unsigned char f = filler();
    if (!size || (p[0] == f && memcmp(p, p + 1, size - 1) == 0))
        return -1;
    for (uint64_t i = 0; i < size; i++)
        if (p[i] != f)
            return (int64_t)i;
    return -1;
}

int64_t heap_wait_changed(const void *block, uint64_t size)
{
    if (size <= 2 * HEAP_WAIT_FILLED)
        return first_other(block, size);
    int64_t at = first_other(block, HEAP_WAIT_FILLED);
    if (at >= 0)
        return at;
    uint64_t last = size - HEAP_WAIT_FILLED;
    at = first_other((const unsigned char *)block + last, HEAP_WAIT_FILLED);
    return at >= 0 ? (int64_t)last + at : -1;
}
