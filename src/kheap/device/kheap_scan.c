// SPDX-License-Identifier: MIT
// The kernel with which the guard scans the heap.
#include "kheap/kscan.h"

void moat_kheap_scan(uint64_t heap, uint32_t zero);

void moat_kheap_scan(uint64_t heap, uint32_t zero)
{
    (void)zero;
    uint32_t threads, blocks;
    KPRIM_READ(threads, "%ntid.x");
    KPRIM_READ(blocks, "%nctaid.x");
    struct kscan_team t = kscan_team(UINT32_MAX);
    kscan_all(heap, kprim_number() / 32, threads / 32 * blocks, t);
}
