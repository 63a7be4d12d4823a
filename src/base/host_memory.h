// SPDX-License-Identifier: MIT
// What an address is in the process itself, by what the system says of its mappings.
#ifndef MOAT_BASE_HOST_MEMORY_H
#define MOAT_BASE_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Writes "the stack of the program", "the heap of the program", "memory of the program", "a mapping of FILE",
// or "the variable NAME" or "the function NAME", if the process may read the byte. Returns false if it may
// not, if a device has it, or if the system does not tell. Takes no memory and keeps errno.
bool host_memory_name(uint64_t address, char *text, size_t size);

#endif
