// SPDX-License-Identifier: MIT
#include "pages/pages_pool.h"

#include "core/lock.h"
#include "core/guard.h"

enum { POOLS = 256 };

// What is known of a pool. One that is not in the table is usable only if it is its device's default pool.
struct known {
    CUmemoryPool pool;  // NULL: a free row
    CUdevice device;    // -1: not to be replaced
};

static struct known table[POOLS];
static struct lock lock = LOCK_INIT(PAGES_POOL);  // a leaf

void pages_pool_after_fork(void)
{
    lock_after_fork(&lock);
}

// Requires the lock.
static struct known *find(CUmemoryPool pool)
{
    for (unsigned i = 0; i < POOLS; i++)
        if (table[i].pool == pool)
            return &table[i];
    return NULL;
}

static void set(CUmemoryPool pool, CUdevice device)
{
    lock_take(&lock);
    struct known *k = find(pool);
    k = k ? k : find(NULL);
    if (k)
        *k = (struct known){pool, device};
    lock_give(&lock);
}

void pages_pool_made(CUmemoryPool pool, const CUmemPoolProps *p)
{
    bool simple = p->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                  p->handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                  p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !p->maxSize;
    set(pool, simple ? p->location.id : -1);
}

void pages_pool_gone(CUmemoryPool pool)
{
    lock_take(&lock);
    struct known *k = find(pool);
    if (k)
        k->pool = NULL;
    lock_give(&lock);
}

void pages_pool_opened(CUmemoryPool pool)
{
    set(pool, -1);
}

bool pages_pool_usable(CUdevice device, CUmemoryPool *pool)
{
    CUmemoryPool own = NULL;
    if (!*pool && (!guard.real.cuDeviceGetMemPool || guard.real.cuDeviceGetMemPool(pool, device)))
        return false;
    lock_take(&lock);
    const struct known *k = find(*pool);
    bool known = k, fits = k && k->device == device;
    lock_give(&lock);
    if (known)
        return fits;
    return guard.real.cuDeviceGetDefaultMemPool && !guard.real.cuDeviceGetDefaultMemPool(&own, device) &&
           own == *pool;
}
