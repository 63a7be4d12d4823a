// SPDX-License-Identifier: MIT
// The bytes of the shadow around an address, for reports.
#ifndef MOAT_SHADOW_SHADOW_TEXT_H
#define MOAT_SHADOW_SHADOW_TEXT_H

#include <stddef.h>
#include <stdint.h>

// Writes a sentence with the bytes around an address, that of the address in brackets. The bytes are made
// from the blocks that are known, as those on the devices were: nothing is copied.
void shadow_text(unsigned shift, uint64_t address, char *text, size_t size);

#endif
