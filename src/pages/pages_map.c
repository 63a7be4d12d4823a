// SPDX-License-Identifier: MIT
#include "pages/pages_map.h"

#include <stdatomic.h>

#include "core/guard.h"
#include "pages/pages_address.h"

// What was reserved. Several threads may add a piece; one that is not complete yet has size 0.
static struct {
    uint64_t base;
    _Atomic uint64_t size, used;
} pieces[PAGES_MAP_PIECES];
static _Atomic unsigned npieces;
static uint64_t piece_align;  // 0: any

static void add_piece(uint64_t base, uint64_t size)
{
    unsigned n = atomic_fetch_add_explicit(&npieces, 1, memory_order_relaxed);
    if (n >= PAGES_MAP_PIECES)
        return;
    pieces[n].base = base;
    // Release: pairs with the acquire in pages_map_owns.
    atomic_store_explicit(&pieces[n].size, size, memory_order_release);
}

bool pages_map_owns(uint64_t base, uint64_t size)
{
    for (unsigned i = 0; i < PAGES_MAP_PIECES; i++) {
        uint64_t bytes = atomic_load_explicit(&pieces[i].size, memory_order_acquire);
        if (size <= bytes && base >= pieces[i].base && base - pieces[i].base <= bytes - size)
            return true;
    }
    return false;
}

// Notes that addresses up to `end` are handed out.
static void note_used(uint64_t end)
{
    for (unsigned i = 0; i < PAGES_MAP_PIECES; i++) {
        uint64_t size = atomic_load_explicit(&pieces[i].size, memory_order_acquire), used = 0;
        if (!size || end <= pieces[i].base || end - pieces[i].base > size)
            continue;
        // Relaxed: the buffer there is known to others only later.
        used = atomic_load_explicit(&pieces[i].used, memory_order_relaxed);
        while (used < end - pieces[i].base &&
               !atomic_compare_exchange_weak_explicit(&pieces[i].used, &used, end - pieces[i].base,
                                                      memory_order_relaxed, memory_order_relaxed))
            continue;
    }
}

uint64_t pages_map_used(unsigned n, uint64_t *base)
{
    if (n >= PAGES_MAP_PIECES || !atomic_load_explicit(&pieces[n].size, memory_order_acquire))
        return 0;
    *base = pieces[n].base;
    return atomic_load_explicit(&pieces[n].used, memory_order_relaxed);
}

// Some drivers do not align as they are asked: then more is reserved, and the start is left out.
static CUresult reserve_aligned(uint64_t size, CUdeviceptr *p)
{
    CUresult r = guard.real.cuMemAddressReserve(p, size, piece_align, 0, 0);
    if (!piece_align || (!r && *p % piece_align == 0))
        return r;
    if (!r && guard.real.cuMemAddressFree)
        guard.real.cuMemAddressFree(*p, size);
    r = guard.real.cuMemAddressReserve(p, size + piece_align, 0, 0, 0);
    *p = (*p + piece_align - 1) & ~(piece_align - 1);
    return r;
}

static int reserve(uint64_t size, uint64_t *base)
{
    CUdeviceptr p = 0;
    if (reserve_aligned(size, &p))
        return -1;
    if (p % PAGES_ADDRESS_UNIT == 0 && p + size <= (uint64_t)1 << 47) {
        *base = p;
        add_piece(p, size);
        return 0;
    }
    if (guard.real.cuMemAddressFree)
        guard.real.cuMemAddressFree(p, size);
    return -1;
}

static struct pages_address addresses = PAGES_ADDRESS_INIT(reserve);

// Smaller pieces than usual: the CPU device has few addresses for what else needs many.
void pages_map_align(uint64_t align)
{
    piece_align = align;
    addresses.piece = PAGES_ADDRESS_LARGEST / 4;
}

void pages_map_after_fork(void)
{
    lock_after_fork(&addresses.lock);
}

bool pages_map_open(uint64_t base, uint64_t bytes, CUdevice device, uint64_t peers)
{
    CUmemAccessDesc access[1 + CONTEXT_DEVICES];
    size_t count = 0;
    access[count++] =
        (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    for (int d = 0; d < CONTEXT_DEVICES; d++)
        if (peers >> d & 1 && d != device)
            access[count++] =
                (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, d}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return !guard.real.cuMemSetAccess(base, bytes, access, count);
}

int pages_map(CUmemGenericAllocationHandle handle, uint64_t bytes, uint32_t front, uint32_t units,
              CUdevice device, uint64_t peers, uint64_t *base)
{
    bool again;
    if (pages_address_take(&addresses, front + units, base, &again))
        return -1;
    if (again)
        guard_count(GUARD_PAGES_REUSED);
    *base += front * PAGES_ADDRESS_UNIT;
    note_used(*base + units * PAGES_ADDRESS_UNIT);
    if (!guard.real.cuMemMap(*base, bytes, 0, handle, 0)) {
        if (pages_map_open(*base, bytes, device, peers))
            return 0;
        guard.real.cuMemUnmap(*base, bytes);
    }
    pages_address_give(&addresses, *base - front * PAGES_ADDRESS_UNIT, front + units);
    return -1;
}

bool pages_unmap(uint64_t base, uint64_t bytes, uint32_t front, uint32_t units)
{
    if (guard.real.cuMemUnmap(base, bytes))
        return false;
    pages_address_give(&addresses, base - front * PAGES_ADDRESS_UNIT, front + units);
    return true;
}
