// SPDX-License-Identifier: MIT
// The function by which rewritten kernels report errors. Weak: linked modules share one copy.
#include "ring/error_ring_write.h"

__attribute__((address_space(1), weak)) uint64_t moat_ring_writer;

void moat_ring_report(uint64_t what, uint64_t address, uint64_t a, uint64_t b, uint64_t c);

__attribute__((weak)) void moat_ring_report(uint64_t what, uint64_t address, uint64_t a, uint64_t b,
                                            uint64_t c)
{
    error_ring_write_report(moat_ring_writer, what, address, a, b, c);
}
