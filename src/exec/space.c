// SPDX-License-Identifier: MIT
#include "exec/space.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

struct space space;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank: leaf
static int status;

static const uint64_t coarse_size = (uint64_t)1 << SPACE_COARSE_BITS;
static const uint64_t fine_size = (uint64_t)1 << SPACE_FINE_BITS;

static void *reserve(uint64_t size, int protection)
{
    void *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static uint64_t reserve_aligned(uint64_t size, uint64_t align)
{
    char *p = reserve(size + align, PROT_NONE);
    if (!p)
        return 0;
    uint64_t at = ((uintptr_t)p + align - 1) & ~(align - 1);
    munmap(p, at - (uintptr_t)p);
    munmap((void *)(uintptr_t)(at + size), (uintptr_t)p + align - at);
    return at;
}

static void init(void)
{
    status = -ENOMEM;
    space.coarse = reserve((uint64_t)1 << (SPACE_BITS - SPACE_COARSE_BITS), PROT_READ | PROT_WRITE);
    space.fine = reserve((uint64_t)1 << (SPACE_BITS - SPACE_FINE_BITS), PROT_READ | PROT_WRITE);
    space.shared_window = reserve_aligned(2 * SPACE_WINDOW, SPACE_WINDOW);
    if (!space.coarse || !space.fine || !space.shared_window)
        return;
    space.local_window = space.shared_window + SPACE_WINDOW;
    // Sanitizers, valgrind and limits leave less room: try smaller sizes.
    for (unsigned bits = 43; bits >= 30 && !space.device_base; bits--) {
        space.device_size = (uint64_t)1 << bits;
        space.device_base = reserve_aligned(2 * space.device_size, coarse_size);
    }
    space.alias = space.device_size;
    if (space.device_base)
        status = 0;
}

int space_init(void)
{
    pthread_once(&once, init);
    return status;
}

static void fill_fine(uint64_t first, uint64_t n, uint8_t rights)
{
    for (uint64_t k = 0; k < n; k++)
        __atomic_store_n(&space.fine[first + k], rights, __ATOMIC_RELAXED);
}

static void set_fine(uint64_t addr, uint64_t size, unsigned rights)
{
    uint64_t chunk = addr >> SPACE_COARSE_BITS;
    if (!(space.coarse[chunk] & SPACE_FINE)) {
        fill_fine(chunk << (SPACE_COARSE_BITS - SPACE_FINE_BITS), coarse_size / fine_size,
                  space.coarse[chunk]);
        __atomic_store_n(&space.coarse[chunk], SPACE_FINE, __ATOMIC_RELEASE);
    }
    fill_fine(addr >> SPACE_FINE_BITS, size >> SPACE_FINE_BITS, (uint8_t)rights);
}

void space_set(uint64_t addr, uint64_t size, unsigned rights)
{
    assert(addr % fine_size == 0 && size % fine_size == 0 && !((addr + size) >> SPACE_BITS));
    pthread_mutex_lock(&lock);
    while (size) {
        uint64_t piece = coarse_size - addr % coarse_size;
        if (piece > size)
            piece = size;
        if (piece == coarse_size)
            __atomic_store_n(&space.coarse[addr >> SPACE_COARSE_BITS], (uint8_t)rights, __ATOMIC_RELEASE);
        else
            set_fine(addr, piece, rights);
        addr += piece;
        size -= piece;
    }
    pthread_mutex_unlock(&lock);
}

bool space_allows(uint64_t addr, uint64_t size, unsigned rights)
{
    uint64_t end = addr + size;
    if (end < addr || end >> SPACE_BITS)
        return false;
    while (addr < end) {
        if ((space_rights(addr) & rights) != rights)
            return false;
        bool fine = __atomic_load_n(&space.coarse[addr >> SPACE_COARSE_BITS], __ATOMIC_RELAXED) & SPACE_FINE;
        uint64_t step = fine ? fine_size : coarse_size;
        addr = (addr & ~(step - 1)) + step;
    }
    return true;
}
