// SPDX-License-Identifier: MIT
// Device memory that other processes may open. Ordinary memory is private and has no extra cost. When an
// allocation is exported, the bytes of its whole chunk move to a file, which replaces the private pages at
// the same address. Nobody may write them meanwhile: kernels are stopped between two of their steps, and
// copies by host threads wait.
//
// Behind the bytes the file has a word for each granule: the id of the exported allocation that starts there,
// or 0. So a handle of a freed allocation is detected, even if other allocations in the chunk live on.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/memory.h"
#include "cpu/pool.h"
#include "cpu/share_file.h"
#include "exec/space.h"

// Writers are preferred: threads that copy all the time must not delay the thread that moves memory. No
// thread takes the lock twice.
pthread_rwlock_t memory_share_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

uint64_t memory_share_ids_size(uint64_t size)
{
    uint64_t bytes = size / MEMORY_GRANULE * sizeof(uint64_t);
    return (bytes + MEMORY_PAGE - 1) & ~(uint64_t)(MEMORY_PAGE - 1);
}

// Pages that were never written stay without memory.
static void copy_pages(char *to, const char *from, uint64_t size)
{
    static const char zeros[MEMORY_PAGE];
    for (uint64_t at = 0; at < size; at += MEMORY_PAGE) {
        if (memcmp(from + at, zeros, MEMORY_PAGE) != 0)
            memcpy(to + at, from + at, MEMORY_PAGE);
    }
}

static int move(uint64_t base, uint64_t size, int fd)
{
    void *old = space_host(base);
    void *new = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (new == MAP_FAILED)
        return -ENOMEM;
    if (size > MEMORY_UNIT)
        madvise(new, size, MADV_HUGEPAGE);
    copy_pages(new, old, size);
    // mremap replaces the pages in one step: a concurrent reader finds the same bytes before and after.
    if (mremap(new, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, old) == old)
        return 0;
    munmap(new, size);
    return -ENOMEM;
}

struct memory_share *memory_share_new(uint64_t base, uint64_t size)
{
    struct memory_share *s = mem_zalloc(1, sizeof *s);
    uint64_t words = memory_share_ids_size(size);
    if (!s)
        return NULL;
    s->base = base;
    s->size = size;
    s->fd = share_file_new(size + words);
    if (s->fd < 0)
        goto no_file;
    void *ids = mmap(NULL, words, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, (off_t)size);
    if (ids == MAP_FAILED)
        goto no_ids;
    s->ids = ids;
    if (!move(base, size, s->fd))
        return s;
    munmap(ids, words);
no_ids:
    close(s->fd);
no_file:
    mem_free(s);
    return NULL;
}

void memory_share_free(struct memory_share *s)
{
    // If this fails, the file stays mapped until the addresses are mapped again.
    memory_slab_clear(s->base, s->size);
    munmap(s->ids, memory_share_ids_size(s->size));
    close(s->fd);
    mem_free(s);
}

_Atomic uint64_t *memory_share_id(const struct memory_share *s, uint64_t addr)
{
    return &s->ids[(addr - s->base) / MEMORY_GRANULE];
}

void memory_share_pause(void)
{
    mutex_lock_write(&memory_share_lock);
    pool_pause();
}

void memory_share_resume(void)
{
    pool_resume();
    mutex_unlock_rw(&memory_share_lock);
}
