// SPDX-License-Identifier: MIT
#include "pages/pages_map.h"

#include "core/guard.h"
#include "pages/pages_address.h"

static int reserve(uint64_t size, uint64_t *base)
{
    CUdeviceptr p = 0;
    if (guard.real.cuMemAddressReserve(&p, size, 0, 0, 0))
        return -1;
    if (p % PAGES_ADDRESS_UNIT == 0 && p + size <= (uint64_t)1 << 47) {
        *base = p;
        return 0;
    }
    if (guard.real.cuMemAddressFree)
        guard.real.cuMemAddressFree(p, size);
    return -1;
}

static struct pages_address addresses = PAGES_ADDRESS_INIT(reserve);

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

int pages_map(CUmemGenericAllocationHandle handle, uint64_t bytes, uint32_t units, CUdevice device,
              uint64_t peers, uint64_t *base)
{
    bool again;
    if (pages_address_take(&addresses, units, base, &again))
        return -1;
    if (again)
        guard_count(GUARD_PAGES_REUSED);
    if (!guard.real.cuMemMap(*base, bytes, 0, handle, 0)) {
        if (pages_map_open(*base, bytes, device, peers))
            return 0;
        guard.real.cuMemUnmap(*base, bytes);
    }
    pages_address_give(&addresses, *base, units);
    return -1;
}

bool pages_unmap(uint64_t base, uint64_t bytes, uint32_t units)
{
    if (guard.real.cuMemUnmap(base, bytes))
        return false;
    pages_address_give(&addresses, base, units);
    return true;
}
