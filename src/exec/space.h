// SPDX-License-Identifier: MIT
// The address space of the CPU device: what kernels may touch, and where the bytes lie.
//
// One space per process, as with unified addressing. Kernels use these addresses:
//
//   device memory    [device_base, device_base + device_size): reserved once, never accessible at these
//                    addresses to the host. The bytes lie `alias` further, so a host program that follows a
//                    device pointer faults as it would with a GPU.
//   host memory      pinned, registered or managed: the same address on both sides
//   shared window    [shared_window, + SPACE_WINDOW): generic addresses of .shared
//   local window     [local_window, + SPACE_WINDOW): generic addresses of .local
//
// Rights are kept in bytes of enum space_right: coarse[] has one for each 2 MiB; SPACE_FINE there means that
// fine[] has one for each 4 KiB. Both cover the 47 bits of a process and are touched only where memory is.
// Readers take no lock: whoever removes rights waits for running kernels, or lets them fault.
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

// Valid after space_init; never moves, never freed.
extern struct space space;

// Idempotent and thread-safe. 0, or -ENOMEM if the address space is too small (ulimit -v).
int space_init(void);

// Rights of [addr, addr + size), which must be multiples of 4 KiB. 0 takes them away. Thread-safe.
void space_set(uint64_t addr, uint64_t size, unsigned rights);

// Whether all of [addr, addr + size) has the rights. size may be 0: true.
bool space_allows(uint64_t addr, uint64_t size, unsigned rights);

static inline bool space_is_device(uint64_t addr)
{
    return addr - space.device_base < space.device_size;
}

// Where the bytes of addr lie for the host. Says nothing about rights.
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

// As space_allows for one access of at most 4 KiB.
static inline bool space_access(uint64_t addr, unsigned size, unsigned rights)
{
    return (space_rights(addr) & space_rights(addr + size - 1) & rights) == rights;
}

#endif
