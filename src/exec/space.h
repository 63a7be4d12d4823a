// SPDX-License-Identifier: MIT
// The address space of the CPU device: what kernels may access, and where the bytes lie.
//
// There is one space per process, as with unified addressing. Kernels use these addresses:
//
//   device memory    [device_base, device_base + device_size): reserved once, never accessible at these
//                    addresses to the host. The bytes lie at address + alias, so a host program that
//                    dereferences a device pointer faults as it would with a GPU.
//   host memory      pinned, registered or managed: the same address on both sides
//   shared window    [shared_window, + SPACE_WINDOW): generic addresses of .shared
//   local window     [local_window, + SPACE_WINDOW): generic addresses of .local
//
// Access rights are bytes of enum space_right: coarse[] has one per 2 MiB; SPACE_FINE there means that fine[]
// has one per 4 KiB. Both cover the 47 bits of a process's address space; their pages are touched only where
// memory is. Readers take no lock: whoever removes rights waits for running kernels, or lets them fault.
#ifndef MOAT_EXEC_SPACE_H
#define MOAT_EXEC_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum space_right {
    SPACE_READ = 1,
    SPACE_WRITE = 2,
    SPACE_FINE = 128,  // in coarse[] only
};

enum {
    SPACE_BITS = 47,
    SPACE_COARSE_BITS = 21,
    SPACE_FINE_BITS = 12,
};
#define SPACE_WINDOW ((uint64_t)1 << 30)

struct space {
    uint8_t *coarse, *fine;
    uint64_t device_base, device_size, alias;
    uint64_t shared_window, local_window;
};

// Valid after space_init; never moved or freed.
extern struct space space;

// Idempotent and thread-safe. Returns 0, or -ENOMEM if the address space is too small (ulimit -v).
int space_init(void);

// Sets the rights of [addr, addr + size); both must be multiples of 4 KiB. Rights of 0 forbid all access.
// Thread-safe.
void space_set(uint64_t addr, uint64_t size, unsigned rights);

// Returns whether all of [addr, addr + size) has the rights; true if size is 0.
bool space_allows(uint64_t addr, uint64_t size, unsigned rights);

static inline bool space_is_device(uint64_t addr)
{
    return addr - space.device_base < space.device_size;
}

// Returns the host address of addr's bytes. Does not check rights.
static inline char *space_host(uint64_t addr)
{
    return (char *)(uintptr_t)(space_is_device(addr) ? addr + space.alias : addr);
}

static inline unsigned space_rights(uint64_t addr)
{
    if (addr >> SPACE_BITS)
        return 0;
    // Pairs with the releases in space_set.
    unsigned r = __atomic_load_n(&space.coarse[addr >> SPACE_COARSE_BITS], __ATOMIC_ACQUIRE);
    return r & SPACE_FINE ? __atomic_load_n(&space.fine[addr >> SPACE_FINE_BITS], __ATOMIC_RELAXED) : r;
}

// Like space_allows, for one access of 1 to 4096 bytes.
static inline bool space_access(uint64_t addr, unsigned size, unsigned rights)
{
    return (space_rights(addr) & space_rights(addr + size - 1) & rights) == rights;
}

#endif
