// SPDX-License-Identifier: MIT
// Which variable or function of the program an address of the process belongs to, by the symbols in the file
// that is mapped there.
#ifndef MOAT_BASE_HOST_SYMBOL_H
#define MOAT_BASE_HOST_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

struct host_symbol {
    char name[256];  // mangled
    bool function;   // else it is a variable
};

// Returns false if no symbol contains the address; a stripped program has few. Takes no memory and keeps
// errno.
bool host_symbol_find(uint64_t address, struct host_symbol *out);

// Does the same for an address as an ELF file counts it. What is wrong in the file is passed over.
bool host_symbol_in_file(int file, uint64_t address, struct host_symbol *out);

#endif
